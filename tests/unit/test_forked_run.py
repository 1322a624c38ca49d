"""The processes of a test run."""

import operator
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.support.made import first_database
from tests.support.waiting import PATIENCE, eventually_here

_ROOT = Path(__file__).parents[2]
_CONFTEST = """
import os, pytest
from tests.support.forked_run import ForkedRun

def pytest_configure(config):
    config.pluginmanager.register(ForkedRun(config, 2))

@pytest.fixture(scope="session", autouse=True)
def held(tmp_path_factory):
    yield
    open("ended", "a").write("x")
"""
_OTHERS = """
import os, pytest

@pytest.mark.parametrize("number", range(25))
def test_passes(number, tmp_path):
    open("ran", "a").write(f"{number} {os.getpid()} {tmp_path}\\n")
"""
_TESTS = f"""
{_OTHERS}
import subprocess, sys
KEPT = sys.stderr  # as a default argument keeps it

def test_fails():
    subprocess.run(["true"], stderr=KEPT, check=True)
    print("said by the test that fails")
    assert False

@pytest.fixture
def broken():
    yield
    raise ValueError

def test_ends_badly(broken): pass

def test_skipped(): pytest.skip("on purpose")

def test_dies(): os._exit(7)

def test_after_it(): pass
"""

_BEGUN = """
import os
from tests.support.made import begin_run, end_run

begin_run()

def pytest_unconfigure(): end_run()
"""
_WAITS = """
import os, signal, subprocess
from esker.server.db.embedded import embedded
from tests.support.made import shared_folder

def test_waits():
    data_dir = shared_folder() / "t"
    subprocess.run(["cp", "-a", os.environ["FIRST_DATABASE"], data_dir], check=True)
    with embedded(data_dir, "serve") as running:
        os.write(int(os.environ["TOLD"]), f"{running._process.pid} {shared_folder()}".encode())
        signal.pause()
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder in two processes."""
    return subprocess.run(
        [*command(folder), *arguments], cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


def command(folder: Path) -> list[str]:
    """Return the words that run the tests of a folder."""
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", str(folder / "t")]


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a run."""
    return {**os.environ, "PYTHONPATH": str(_ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **more}


def test_each_test_runs_once_and_is_reported_also_when_its_process_dies(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_of_all_kinds.py").write_text(_TESTS)
    (tmp_path / "test_others.py").write_text(_OTHERS)

    done = run(tmp_path)

    assert done.returncode == 1
    assert "2 failed, 52 passed, 1 skipped, 1 error" in done.stdout
    assert "said by the test that fails" in done.stdout
    assert "the process of the test ended with 7" in done.stdout
    ran = [line.split() for line in (tmp_path / "ran").read_text().splitlines()]
    assert sorted(int(number) for number, _, _ in ran) == sorted([*range(25)] * 2)
    assert len({process for _, process, _ in ran}) == 2
    assert len({folder for _, _, folder in ran}) == 50
    # That of the process which died is missing, and that of the one which replaced it is not.
    assert (tmp_path / "ended").read_text() == "xx"


def test_the_first_failure_stops_all_processes_on_request(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_one.py").write_text("def test_it(): assert False\n")
    for number in range(50):
        (tmp_path / f"test_{number}.py").write_text("def test_it(): pass\n")

    done = run(tmp_path, "-x")

    assert done.returncode == 1
    assert "stopping after 1 failures" in done.stdout


@pytest.mark.parametrize(
    ("stop", "number"),
    [
        pytest.param(os.kill, signal.SIGTERM, marks=pytest.mark.slow, id="one-stopped"),
        pytest.param(os.kill, signal.SIGKILL, marks=pytest.mark.slow, id="one-killed"),
        pytest.param(os.killpg, signal.SIGKILL, id="all-killed"),
    ],
)
def test_a_run_that_is_stopped_leaves_no_postgres_and_no_folder(
    tmp_path: Path, stop: Callable[[int, int], None], number: signal.Signals
) -> None:
    (tmp_path / "conftest.py").write_text(_BEGUN + _CONFTEST)
    (tmp_path / "test_one.py").write_text(_WAITS)
    heard, told = os.pipe()
    more = environment(TOLD=str(told), FIRST_DATABASE=str(first_database()))
    stopped = subprocess.Popen(command(tmp_path), cwd=tmp_path, env=more, pass_fds=[told], start_new_session=True)
    os.close(told)
    with open(heard, "rb", buffering=0) as told_here:
        postgres, _, folder = told_here.read(200).decode().partition(" ")
    assert (runs(int(postgres)), Path(folder).is_dir()) == (True, True)

    stop(stopped.pid, number)
    stopped.wait(PATIENCE)

    eventually_here(Path(folder).exists, operator.not_)
    assert not runs(int(postgres))
    assert (tmp_path / "ended").exists() == (stop is os.kill), "a process that can still do so ends its fixtures"


def runs(pid: int) -> bool:
    """Return whether a process runs; one that has ended may have no parent that asks how."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False
