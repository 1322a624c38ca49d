"""Progress of sending: nothing unsent is skipped, and a damaged progress file is not an error."""

import json
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.server.agents.progress import SendProgress
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.config.client_settings import ClientSettings
from tests.support.waiting import PATIENCE


def transcript(*words: str, session: str = "s1") -> Transcript:
    """Return a session with these messages."""
    entries = [TranscriptEntry(f"m{number}", "user", word, None) for number, word in enumerate(words)]
    return Transcript("codex", session, entries=entries)


@pytest.fixture
def there(tmp_path: Path) -> ClientSettings:
    """Settings with a state folder of their own."""
    return ClientSettings(state_dir=tmp_path / "state", key="esk_1")


def words(entries: list[TranscriptEntry]) -> list[str]:
    """Return the contents of entries."""
    return [str(entry.content) for entry in entries]


def test_messages_after_the_known_beginning_are_unsent(there: ClientSettings) -> None:
    before = SendProgress(there)
    assert words(before.unsent(transcript("a", "b"))) == ["a", "b"]
    before.advance(transcript("a", "b"), 2)
    assert words(before.unsent(transcript("a", "b"))) == []
    assert words(SendProgress(there).unsent(transcript("a", "b", "c"))) == ["c"]
    assert words(before.unsent(transcript("a", "b", session="s2"))) == ["a", "b"]
    assert words(before.unsent(replace(transcript("a", "b"), client="pi"))) == ["a", "b"]


@pytest.mark.parametrize("changed", [("x", "b", "c"), ("a", "x", "c"), ("a",), ()])
def test_a_changed_beginning_is_sent_from_the_start(there: ClientSettings, changed: tuple[str, ...]) -> None:
    before = SendProgress(there)
    before.advance(transcript("a", "b"), 2)
    assert words(before.unsent(transcript(*changed))) == [*changed]


def test_the_same_words_with_another_id_are_a_changed_beginning(there: ClientSettings) -> None:
    before = SendProgress(there)
    before.advance(transcript("a"), 1)
    [entry] = transcript("a").entries
    renamed = replace(transcript("a"), entries=[replace(entry, external_id="other")])
    spoken = replace(transcript("a"), entries=[replace(entry, role="assistant")])
    assert before.unsent(renamed) == renamed.entries
    assert before.unsent(spoken) == spoken.entries


def test_another_server_or_key_starts_from_nothing_but_a_slash_does_not(there: ClientSettings) -> None:
    SendProgress(there).advance(transcript("a"), 1)
    for other in (replace(there, url="http://elsewhere:8377"), replace(there, key="esk_2"), replace(there, key=None)):
        assert words(SendProgress(other).unsent(transcript("a"))) == ["a"]
    assert SendProgress(replace(there, url=there.url + "/")).unsent(transcript("a")) == []


def test_again_ignores_earlier_progress_but_not_its_own(there: ClientSettings, tmp_path: Path) -> None:
    before = SendProgress(there)
    before.advance(transcript("a"), 1)
    before.finish(tmp_path, [1])
    again = SendProgress(there, again=True)
    assert words(again.unsent(transcript("a"))) == ["a"]
    assert not again.is_unchanged(tmp_path, [1])
    again.advance(transcript("a"), 1)
    assert before.unsent(transcript("a")) == []


def test_a_file_is_unchanged_as_long_as_its_stamp_is(there: ClientSettings, tmp_path: Path) -> None:
    before, path = SendProgress(there), tmp_path / "x.jsonl"
    assert not before.is_unchanged(path, [1, 2])
    before.finish(path, [1, 2])
    assert before.is_unchanged(path, [1, 2])
    assert not before.is_unchanged(path, [1, 3])
    assert not before.is_unchanged(tmp_path / "y.jsonl", [1, 2])
    before.finish(path, None)
    assert not before.is_unchanged(path, None)
    (tmp_path / "link.jsonl").symlink_to(path)
    path.touch()
    assert before.is_unchanged(tmp_path / "link.jsonl", [1, 2])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["count", "digest", "stamp"]), inner),
    ).map(lambda value: json.dumps(value).encode())
)
def test_garbage_in_a_progress_file_counts_as_nothing_sent(there: ClientSettings, garbage: bytes) -> None:
    before, path = SendProgress(there), there.state_dir / "x.jsonl"
    before.advance(transcript("a", "b"), 2)
    before.finish(path, [1])
    notes = sorted((there.state_dir / "sent").glob("*.json"))
    assert len(notes) == 2
    for note in notes:
        note.write_bytes(garbage)
    assert words(before.unsent(transcript("a", "b"))) == ["a", "b"]
    assert not before.is_unchanged(path, [1])


def test_an_unwritable_folder_counts_as_nothing_sent(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, where a folder is wanted")
    before = SendProgress(ClientSettings(state_dir=tmp_path / "state"))
    before.advance(transcript("a"), 1)
    before.finish(tmp_path, [1])
    assert words(before.unsent(transcript("a"))) == ["a"]
    with before.locked(transcript("a")) as alone:
        assert alone


def test_progress_files_are_owner_only_and_never_half_written(there: ClientSettings) -> None:
    before = SendProgress(there)
    before.advance(transcript("a"), 1)
    with before.locked(transcript("a")):
        pass
    folder = there.state_dir / "sent"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.suffix for path in folder.iterdir()) == [".json", ".lock"]
    assert not any("esk_1" in path.name or "esk_1" in path.read_text() for path in folder.iterdir())


def test_two_processes_never_send_one_session_at_once(there: ClientSettings) -> None:
    before, order = SendProgress(there), list[str]()
    waits = threading.Event()

    def second() -> None:
        with before.locked(transcript("a"), wait=False) as alone:
            order.append(f"not waiting: {alone}")
        with before.locked(transcript("a", session="s2"), wait=False) as alone:
            order.append(f"another session: {alone}")
        waits.set()
        with before.locked(transcript("a")) as alone:
            order.append(f"waiting: {alone}")

    with before.locked(transcript("a")) as alone:
        assert alone
        thread = threading.Thread(target=second)
        thread.start()
        assert waits.wait(PATIENCE)
        order.append("first is done")
    thread.join(PATIENCE)
    assert order == ["not waiting: False", "another session: True", "first is done", "waiting: True"]
