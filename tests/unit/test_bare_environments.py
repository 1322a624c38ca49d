"""Without a home directory, a name or a program, an error says what to set."""

import os
import pwd
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.hooks import run_hook
from esker.server.agents.private_folder import make_private
from esker.server.cli import main
from esker.server.cli.doctor import data_directory
from esker.server.cli.server_resources import listening
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.home import expanded
from esker.server.core.config.owner_file import make_folder
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError, Misconfigured
from esker.server.db import programs
from esker.server.db.data_dir import hold


@pytest.fixture
def nameless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user id without an entry in /etc/passwd, and without HOME."""

    def unknown(uid: int) -> Any:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.usefixtures("nameless")
@pytest.mark.parametrize("read", [Settings.from_environment, ClientSettings.from_environment])
def test_without_a_home_directory_the_error_says_to_set_home(read: Callable[[dict[str, str]], object]) -> None:
    with pytest.raises(Misconfigured, match="HOME is not set") as caught:
        read({})
    assert "Set HOME" in (caught.value.hint or "")


@pytest.mark.parametrize("given", ["somewhere", ""])
@pytest.mark.parametrize("read", [Settings.from_environment, ClientSettings.from_environment])
def test_a_home_that_is_not_an_absolute_path_is_named(
    read: Callable[[dict[str, str]], object], nameless: None, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("HOME", given)
    with pytest.raises(Misconfigured, match=f"HOME is {given!r}, which is not an absolute path"):
        read({})


@pytest.mark.usefixtures("nameless")
def test_without_a_home_directory_named_directories_are_enough() -> None:
    settings = Settings.from_environment({"ESKER_DATA_DIR": "/data", "ESKER_STATE_DIR": "/state"})
    client = ClientSettings.from_environment({"ESKER_DATA_DIR": "/data", "ESKER_STATE_DIR": "/state"})
    assert (settings.data_dir, client.state_dir) == (Path("/data"), Path("/state"))


@pytest.mark.usefixtures("nameless")
def test_a_hook_without_a_home_directory_says_what_to_set_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_hook(["claude-code", "Stop"], {}) == 0
    assert capsys.readouterr().err.count("\n") == 1


def test_the_home_of_an_unknown_user_is_explained() -> None:
    with pytest.raises(Misconfigured, match="does not exist"):
        expanded(Path("~nobody-of-that-name/data"))


def test_a_program_that_is_missing_is_named_with_a_way_out() -> None:
    with pytest.raises(Misconfigured, match="/nowhere/initdb cannot be started") as caught:
        programs.start(["/nowhere/initdb"], -1)
    assert "ESKER_DATABASE_URL" in (caught.value.hint or "")


@pytest.mark.usefixtures("nameless")
def test_a_user_without_a_name_is_given_the_line_that_initdb_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    monkeypatch.setattr(programs, "has_nss_wrapper", lambda: False)
    with pytest.raises(Misconfigured, match="12345 has no entry") as caught, programs.initdb_identity(tmp_path / "new"):
        pass
    assert "esker:x:12345:" in (caught.value.hint or "")
    assert not (tmp_path / "new").exists()


def test_without_an_account_to_run_initdb_root_gets_an_explanation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def unknown(name: str) -> Any:
        raise KeyError(name)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(pwd, "getpwnam", unknown)
    with pytest.raises(Misconfigured, match="refuses to run as root"), programs.initdb_identity(tmp_path / "new"):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_root_hands_over_a_cluster_of_another_user_with_all_its_files(tmp_path: Path) -> None:
    cluster = tmp_path / "postgres"
    (cluster / "base").mkdir(parents=True)
    (cluster / "base" / "1").touch()
    (cluster / "link").symlink_to("/etc/passwd")
    programs.hand_over(cluster)
    owners = {path.lstat().st_uid for path in (cluster, *cluster.rglob("*"))}
    assert owners == {programs.postgres_uid()}
    assert Path("/etc/passwd").stat().st_uid == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs programs as another account")
def test_while_initdb_runs_no_other_process_of_its_account_may_enter(tmp_path: Path) -> None:
    with programs.initdb_identity(tmp_path / "new") as identity:
        about = (tmp_path / "new").stat()
        assert (about.st_uid, about.st_mode & 0o777) == (identity.get("user"), 0o700)
        assert tmp_path.stat().st_mode & 0o007 == 0
        assert identity.get("group") == programs.postgres_uid()
    assert tmp_path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(2, "No such file or directory", b"git"), "git: No such file or directory"),
        (PermissionError(13, "Permission denied", "/data"), "/data: Permission denied"),
        (KeyError("url"), "An unexpected KeyError"),
    ],
)
def test_no_command_ends_with_the_name_of_a_system_exception(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = fail_with(error, monkeypatch, capsys)
    assert message in shown
    assert not isinstance(error, OSError) or type(error).__name__ not in shown


def test_a_working_directory_that_was_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "The working directory no longer exists." in fail_with(FileNotFoundError(2, "No"), monkeypatch, capsys)


def test_an_error_quotes_names_as_they_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "esker:x:7" in fail_with(EskerError("Add esker:x:7."), monkeypatch, capsys)


def fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what the command line prints for an error of a command."""

    def command(**_: object) -> None:
        raise error

    monkeypatch.setattr(main.typer.main, "get_command", lambda _: command)
    monkeypatch.setattr(main.signal, "signal", lambda *_: None)
    monkeypatch.delenv("ESKER_LOG_LEVEL", raising=False)
    with pytest.raises(SystemExit) as caught:
        main.run()
    assert caught.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize("home", ["a-file", "a-file/deeper"])
def test_doctor_rejects_a_data_directory_below_a_file(home: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    settings = Settings.from_environment({"ESKER_DATA_DIR": str(tmp_path / home / "data")})
    assert [finding.status for finding in data_directory(settings)] == ["wrong"]


def test_a_home_that_does_not_exist_is_named_and_never_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "home"
    monkeypatch.setenv("HOME", str(missing))
    settings, named = Settings.from_environment({}), Settings.from_environment({"ESKER_DATA_DIR": str(tmp_path / "d")})
    with pytest.raises(Misconfigured, match=f"{missing} does not exist") as caught, hold(settings.data_dir, "serve"):
        pass
    assert "HOME" in (caught.value.hint or "")
    for make in (make_folder, make_private):
        with pytest.raises(FileNotFoundError, match=str(missing)):
            make(ClientSettings.from_environment({}).state_dir)
    assert [finding.what for finding in data_directory(settings) if str(missing) in finding.what]
    assert {finding.status for finding in data_directory(settings)} == {"wrong"}
    with hold(named.data_dir, "command"):
        assert not missing.exists()


@pytest.mark.parametrize("host", ["ü" * 80, "x\0y"])
def test_a_host_that_cannot_be_a_name_is_an_error_of_the_setting(host: str) -> None:
    settings = Settings.from_environment({}, host=host, port=0)
    with pytest.raises(Misconfigured, match="not the address"), listening(settings):
        pass
