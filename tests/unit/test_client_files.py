"""Files of the state directory: the list of exclusions, kept keys, and the state of hooks."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from esker.server.agents.api import Api
from esker.server.agents.hook_log import HookLog
from esker.server.agents.hook_state import HookState
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.exclusion_list import ExclusionList
from esker.server.core.config.kept_keys import KeptKeys
from esker.server.core.config.owner_file import write_owner_only
from esker.server.core.errors import Misconfigured

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URL = "http://127.0.0.1:8377"


def test_the_environment_can_only_add_to_the_list_of_exclusions(tmp_path: Path) -> None:
    ExclusionList(tmp_path).add(["acme/*", "/private"])
    for environ, exclude in (({}, ("acme/*", "/private")), ({"ESKER_EXCLUDE": "/x"}, ("/x", "acme/*", "/private"))):
        assert ClientSettings.from_environment({"ESKER_STATE_DIR": str(tmp_path)} | environ).exclude == exclude


def test_a_person_may_edit_the_list_of_exclusions(tmp_path: Path) -> None:
    listed = ExclusionList(tmp_path)
    listed.path.write_text("# mine\n\n  acme/* \n#notes\n~/private")
    assert listed.patterns() == ("acme/*", "~/private")
    assert listed.add(["acme/*", " other ", "other"]) == ["other"]
    assert listed.remove(["~/private", "unknown"]) == ["~/private"]
    assert listed.path.read_text() == "# mine\n\n  acme/* \n#notes\nother\n"


@pytest.mark.parametrize("written", [b"/a/{b\n", b"\xff\xfe\n"])
def test_a_list_of_exclusions_that_is_not_valid_is_an_error_that_names_it(tmp_path: Path, written: bytes) -> None:
    listed = ExclusionList(tmp_path)
    listed.path.write_bytes(written)
    for read in (listed.patterns, lambda: ClientSettings.from_environment({"ESKER_STATE_DIR": str(tmp_path)})):
        with pytest.raises(Misconfigured, match=str(listed.path)):
            read()


@pytest.mark.parametrize("written", ["\ufeff/work/a\n/work/b\n", "/work/a\r\n/work/b\r\n"])
def test_a_list_that_another_editor_wrote_excludes_the_same(tmp_path: Path, written: str) -> None:
    listed = ExclusionList(tmp_path)
    listed.path.write_bytes(written.encode())
    assert listed.patterns() == ("/work/a", "/work/b")
    listed.add(["/work/c"])
    assert listed.patterns() == ("/work/a", "/work/b", "/work/c")


def test_a_list_that_leads_nowhere_or_is_no_file_is_an_error_and_a_link_stays_one(tmp_path: Path) -> None:
    listed = ExclusionList(tmp_path)
    listed.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Misconfigured, match="leads to no file"):
        listed.patterns()
    (tmp_path / "elsewhere").write_text("/work/a\n")
    assert listed.add(["/work/b"]) == ["/work/b"]
    assert listed.path.is_symlink()
    assert (tmp_path / "elsewhere").read_text() == "/work/a\n/work/b\n"
    listed.path.unlink()
    os.mkfifo(listed.path)
    with pytest.raises(Misconfigured, match="not a file"):
        listed.patterns()


@pytest.mark.parametrize("pattern", ["#notes", "/work/a # mine", "/work/a,/work/b", "/work/a\u2028b", "/work/a\x85b"])
def test_a_pattern_that_the_list_cannot_keep_is_not_added(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(Misconfigured, match="is not a valid pattern"):
        ExclusionList(tmp_path).add([pattern])


def test_a_failure_is_one_line_of_the_log_whatever_it_contains(tmp_path: Path) -> None:
    HookLog(tmp_path).write("codex\udcff Stop", "no\n2026-03-01T12:00:00+0000 pi x: \x1b[31m\udcff")
    assert len((tmp_path / "hooks.log").read_text().splitlines()) == 1
    assert [*HookLog(tmp_path).failures()] == ["codex"]


def test_a_home_is_written_out_since_hooks_may_have_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = ExclusionList(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    assert listed.add(["~/private"]) == ["/home/ada/private"]
    monkeypatch.setenv("HOME", "/elsewhere")
    assert listed.patterns() == ("/home/ada/private",)
    monkeypatch.setenv("HOME", "/home/ada")
    assert listed.remove(["~/private"]) == ["/home/ada/private"]


def test_a_pattern_that_is_not_valid_is_not_added(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="braces"):
        ExclusionList(tmp_path).add(["acme/*", "/a/{b"])
    assert ExclusionList(tmp_path).patterns() == ()


def test_patterns_that_are_added_at_once_are_all_in_the_list(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda n: ExclusionList(tmp_path).add([f"p{n}"]), range(40)))
    assert set(ExclusionList(tmp_path).patterns()) == {f"p{n}" for n in range(40)}


def test_a_kept_key_opens_only_its_server_and_only_if_the_environment_has_none(tmp_path: Path) -> None:
    KeptKeys(tmp_path).keep(f"{URL}/", "esk_kept")
    here = {"ESKER_STATE_DIR": str(tmp_path)}
    assert ClientSettings.from_environment(here).key == "esk_kept"
    assert ClientSettings.from_environment(here | {"ESKER_KEY": "esk_set"}).key == "esk_set"
    assert ClientSettings.from_environment(here | {"ESKER_URL": "http://elsewhere"}).key is None
    assert KeptKeys(tmp_path).path.stat().st_mode & 0o777 == 0o600
    assert KeptKeys(tmp_path).drop(URL)
    assert not KeptKeys(tmp_path).path.exists()


def test_a_key_with_a_line_end_is_used_and_one_that_fits_no_header_is_not_repeated(tmp_path: Path) -> None:
    here = {"ESKER_STATE_DIR": str(tmp_path)}
    assert ClientSettings.from_environment(here | {"ESKER_KEY": "esk_1\r\n"}).key == "esk_1"
    for key in ("esk_1\r\nX: y", "esk_€"):
        with pytest.raises(Misconfigured) as raised:
            Api(URL, key)
        assert "esk" not in str(raised.value)


def test_a_file_of_keys_that_others_can_read_is_refused(tmp_path: Path) -> None:
    KeptKeys(tmp_path).keep(URL, "esk_kept")
    KeptKeys(tmp_path).path.chmod(0o640)
    with pytest.raises(Misconfigured, match="Other users can read"):
        ClientSettings.from_environment({"ESKER_STATE_DIR": str(tmp_path)})


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "61", "soon"])
def test_the_seconds_that_a_hook_waits_are_checked(tmp_path: Path, seconds: str) -> None:
    with pytest.raises(Misconfigured, match="ESKER_HOOK_SECONDS must be a number above 0 and at most 60"):
        ClientSettings.from_environment({"ESKER_STATE_DIR": str(tmp_path), "ESKER_HOOK_SECONDS": seconds})


def test_a_silence_is_believed_for_half_a_minute_and_for_one_server(tmp_path: Path) -> None:
    HookState(tmp_path, NOW).note_silence(URL)
    for later, silent in ((0, True), (29, True), (30, False), (-40, False)):
        assert HookState(tmp_path, NOW + timedelta(seconds=later)).is_silent(URL) is silent, later
    assert not HookState(tmp_path, NOW).is_silent("http://elsewhere")
    HookState(tmp_path, NOW).forget_silence(URL)
    assert not HookState(tmp_path, NOW).is_silent(URL)


def test_a_notice_is_given_once_a_day_to_each_client(tmp_path: Path) -> None:
    def may_tell(hours: float, client: str = "codex") -> bool:
        return HookState(tmp_path, NOW + timedelta(hours=hours)).may_tell("401", client, URL)

    assert [may_tell(0), may_tell(23), may_tell(0, "pi"), may_tell(24), may_tell(25)] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_a_pack_is_owed_until_a_prompt_has_brought_it(tmp_path: Path) -> None:
    state = HookState(tmp_path, NOW)
    assert not state.owes_pack("gemini-cli", "s1")
    state.owe_pack("gemini-cli", "s1")
    assert state.owes_pack("gemini-cli", "s1")
    assert not state.owes_pack("gemini-cli", "s2")
    state.settle_pack("gemini-cli", "s1")
    assert not state.owes_pack("gemini-cli", "s1")


def test_marks_of_sessions_that_never_had_a_prompt_are_deleted_in_the_end(tmp_path: Path) -> None:
    HookState(tmp_path, NOW).owe_pack("gemini-cli", "s1")
    HookState(tmp_path, NOW + timedelta(days=31)).owe_pack("gemini-cli", "s2")
    assert len(list((tmp_path / "hooks").iterdir())) == 1


def test_state_that_cannot_be_written_or_read_counts_as_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = HookState(tmp_path / "file", NOW)
    blocked.note_silence(URL)
    assert not blocked.is_silent(URL)
    state = HookState(tmp_path, NOW)
    state.note_silence(URL)
    [mark] = (tmp_path / "hooks").iterdir()
    for damaged in (b"", b"\xff", b"2026-03-01", b"2026-03-01T12:00:00"):
        mark.write_bytes(damaged)
        assert not state.is_silent(URL)


def test_a_file_that_cannot_be_written_whole_stays_as_it_was_and_leaves_no_part_behind(tmp_path: Path) -> None:
    path = tmp_path / "exclude"
    write_owner_only(path, "before")
    path.unlink()
    path.mkdir()  # a file cannot replace a folder
    with pytest.raises(OSError, match="directory"):
        write_owner_only(path, "after")
    with pytest.raises(ValueError, match="surrogates"):
        write_owner_only(tmp_path / "other", "\ud800")
    assert list(tmp_path.iterdir()) == [path]
