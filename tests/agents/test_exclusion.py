"""Exclusion of whole sessions, and of messages after a session entered an excluded directory."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from esker.server.agents.exclusion import without_excluded
from esker.server.agents.project import is_excluded
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.project_names import project_name


def session(*cwds: str | None, cwd: str | None = "/work/shop", project: str | None = "shop") -> Transcript:
    """Return a session with a message in each directory; the ids are their numbers."""
    entries = [TranscriptEntry(str(number), "user", "Hi.", None, where) for number, where in enumerate(cwds)]
    return Transcript("claude-code", "s1", cwd, project, entries)


def kept(transcript: Transcript, *exclude: str) -> list[str]:
    """Return the ids of the messages that are not excluded."""
    found = without_excluded(transcript, exclude)
    return [entry.external_id for entry in found.entries] if found else []


def test_only_messages_of_excluded_directories_are_removed() -> None:
    there = session("/work/shop", "/private/diary", "/private/diary/2026", "/work/shop", "/private")
    assert kept(there, "/private/diary") == ["0", "3", "4"]
    assert kept(there, "diary") == ["0", "2", "3", "4"]
    assert kept(there) == ["0", "1", "2", "3", "4"]


def test_a_message_without_a_directory_has_that_of_the_one_before() -> None:
    assert kept(session(None, "/private", None, "/work/shop", None), "/private") == ["0", "3", "4"]


def test_a_session_that_began_in_an_excluded_directory_is_excluded() -> None:
    assert without_excluded(session("/work/shop", "/elsewhere"), ["/work/shop"]) is None
    assert without_excluded(session("/work/shop", "/elsewhere"), ["shop"]) is None
    assert without_excluded(session("/private", cwd=None, project=None), ["/private"]) is None


def test_a_link_before_a_wildcard_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "real" / "x" / "secret"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for pattern in (f"{tmp_path}/link/*/secret", f"{tmp_path}/real/*/secret", f"{tmp_path}/link/**"):
        assert is_excluded(str(real), None, [pattern])
        assert is_excluded(str(tmp_path / "link" / "x" / "secret" / "deep"), None, [pattern])
        assert not is_excluded(str(tmp_path / "other"), None, [pattern])


def test_a_project_is_excluded_in_any_case() -> None:
    for pattern in ("İstanbul", "i̇stanbul", "ACME/*"):
        assert is_excluded(None, project_name("ACME/shop" if "/" in pattern else "İstanbul"), [pattern])


places = st.sampled_from([None, "/work/shop", "/private", "/private/x", "/privately"])


@given(st.lists(places, max_size=8))
def test_excluded_messages_never_pass_and_the_others_keep_their_order(cwds: list[str | None]) -> None:
    transcript = session(*cwds)
    expected: list[str] = []
    here: str | None = "/work/shop"
    for number, where in enumerate(cwds):
        here = where or here
        if here not in ("/private", "/private/x"):
            expected.append(str(number))
    assert kept(transcript, "/private") == expected
