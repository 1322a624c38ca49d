"""Commands as processes in the environments of a container, of cron and of `su`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from esker.server.db.programs import has_nss_wrapper, postgres_uid
from tests.support.forks import run_forked
from tests.support.processes import ROOT
from tests.support.waiting import PATIENCE

_UID = 12_345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")


def environment(home: Path | None, **more: str) -> dict[str, str]:
    """Return an environment with no variable but HOME, unless that is None, and `more`."""
    return {"PYTHONPATH": str(ROOT), "ESKER_EMBEDDER": "none", **({"HOME": str(home)} if home else {}), **more}


def bare(home: Path | None, *arguments: str, uid: int | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program in such an environment, in an interpreter of its own."""
    command = [sys.executable, "-P", *arguments]
    return subprocess.run(
        command,
        env=environment(home, **more),
        cwd="/",
        input="{}",
        capture_output=True,
        text=True,
        check=False,
        user=uid,
        group=uid,
    )


def forked(home: Path | None, *arguments: str, uid: int) -> subprocess.CompletedProcess[str]:
    """Run a command in such an environment, forked."""
    return run_forked(arguments, Path("/"), environment(home), PATIENCE, b"{}", uid)


@pytest.fixture(scope="module")
def stranger() -> int:
    """The id of a user who has no entry in /etc/passwd and may read this checkout."""
    try:
        can_read = bare(None, "-c", "import pydantic, esker.server", uid=_UID).returncode == 0
    except PermissionError:
        can_read = False
    if not can_read:
        pytest.skip("Python, the checkout or its packages cannot be read by other users")
    return _UID


def test_a_first_database_needs_no_program_and_no_variable_but_home(tmp_path: Path) -> None:
    done = bare(tmp_path, "-m", "esker", "migrate", PATH="/nowhere", LC_ALL="C")
    assert (done.returncode, "Applied 0001" in done.stdout) == (0, True), done.stderr
    data_dir = tmp_path / ".local/share/esker"
    assert data_dir.stat().st_mode & 0o077 == 0
    assert (data_dir / "postgres/PG_VERSION").stat().st_uid == data_dir.stat().st_uid == postgres_uid()


@as_root
@pytest.mark.parametrize("verb", ["status", "doctor", "migrate", "spool", "install --all --dry-run"])
def test_without_home_and_user_name_the_error_says_to_set_home(stranger: int, verb: str) -> None:
    done = forked(None, *verb.split(), uid=stranger)
    assert (done.returncode, "Set HOME" in done.stdout + done.stderr) == (1, True)
    assert "unexpected" not in done.stderr


@as_root
def test_help_and_hooks_work_without_home_and_name(stranger: int) -> None:
    assert bare(None, "-m", "esker", "--help", uid=stranger).returncode == 0
    hook = bare(None, "-m", "esker", "hook", "claude-code", "SessionStart", uid=stranger)
    assert (hook.returncode, hook.stderr.count("\n")) == (0, 1)


@as_root
def test_a_home_that_cannot_be_written_is_named_with_the_variable_to_set(stranger: int, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    done = bare(tmp_path, "-m", "esker", "migrate", uid=stranger)
    assert (done.returncode, "ESKER_DATA_DIR" in done.stderr) == (1, True)
    said = json.loads(bare(tmp_path, "-m", "esker", "doctor", "--quick", "--json", uid=stranger).stdout)
    hints = [finding["hint"] for finding in said if "cannot be written" in finding["what"]]
    assert any("ESKER_DATA_DIR" in hint for hint in hints)
    assert any("ESKER_STATE_DIR" in hint for hint in hints)


@as_root
@pytest.mark.skipif(not has_nss_wrapper(), reason="libnss-wrapper is not installed")
def test_a_user_without_a_name_can_make_the_first_database(stranger: int, tmp_path: Path) -> None:
    os.chown(tmp_path, stranger, stranger)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    done = bare(tmp_path, "-m", "esker", "migrate", uid=stranger)
    assert (done.returncode, "Applied 0001" in done.stdout) == (0, True), done.stderr
    data_dir = tmp_path / ".local/share/esker"
    assert (data_dir / "postgres/PG_VERSION").stat().st_uid == stranger
    assert not list(data_dir.glob(".esker-*"))


@as_root
@pytest.mark.skipif(has_nss_wrapper(), reason="libnss-wrapper is installed, so the demo works")
def test_the_demo_passes_on_why_its_server_did_not_start(stranger: int, tmp_path: Path) -> None:
    os.chown(tmp_path, stranger, stranger)
    for folder in (tmp_path.parent, tmp_path.parent.parent):
        folder.chmod(0o755)
    done = bare(tmp_path, "-m", "esker", "demo", "--json", uid=stranger)
    said = json.loads(done.stdout)
    assert (done.returncode, f"User id {stranger} has no entry in /etc/passwd" in said["error"]) == (1, True)
    assert f"esker:x:{stranger}:" in said["hint"]
    assert "Traceback" not in done.stderr


@as_root
@pytest.mark.parametrize("verb", ["doctor --quick", "migrate", "spool", "hook claude-code SessionStart"])
def test_a_home_below_a_closed_folder_ends_no_command_unexpectedly(stranger: int, tmp_path: Path, verb: str) -> None:
    tmp_path.chmod(0o700)
    done = forked(tmp_path / "home", *verb.split(), uid=stranger)
    assert "unexpected" not in done.stdout + done.stderr
    assert "cannot be" in done.stdout + done.stderr or verb.split()[0] in ("spool", "hook")
