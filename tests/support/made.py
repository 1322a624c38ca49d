"""Shared by the processes of a run: the one first start of a database, and how long the run lasts.

The process that needs the database first makes it, and all others copy it.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO

from esker.server.core.stop_signals import stop_signals
from esker.server.db.embedded import embedded, prepare
from tests.support.clearing import clear, clear_up_after, is_in_use

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Postgres settings that spare a small transaction most of its cost; a database that was killed with them is lost."""

_SHARED = "FOLDER_OF_THIS_TEST_RUN"
"""The environment variable by which the processes of a run find what they share."""
_PREFIX = "esker-run-"
"""The beginning of the names of folders that the processes of a run share."""
_ALIVE = "alive"
"""A named pipe that the process which began the run holds open: its reader sees an end when that process has ended."""
_held: list[int] = []
_clearing: list[tuple[int, int]] = []
"""The process that clears up after the run, and the file that holds it back."""


def begin_run() -> None:
    """Make the folder that all processes of this run share; the process that starts the others calls it.

    From then on the process ends as at Ctrl-C when it is stopped otherwise, so that fixtures stop what they started.
    """
    for number in stop_signals():
        if number != signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
    _remove_killed_runs()
    os.environ[_SHARED] = tempfile.mkdtemp(prefix=_PREFIX, dir=_fastest_folder())
    # Before the pipe, by which another run finds this folder: it removes one that is not in use.
    _clearing.append(clear_up_after(shared_folder()))
    os.mkfifo(shared_folder() / _ALIVE)
    _held.append(os.open(shared_folder() / _ALIVE, os.O_RDWR))


def _remove_killed_runs() -> None:
    """Clear up after runs of which all processes were killed, as when a machine has no memory left."""
    for pipe in Path(_fastest_folder()).glob(f"{_PREFIX}*/{_ALIVE}"):
        if not is_in_use(pipe.parent):
            clear(pipe.parent)


def end_run() -> None:
    """End what waits for the end of the run, and wait until the shared folder is removed."""
    leave_run()
    del os.environ[_SHARED]
    while _clearing:
        process, held = _clearing.pop()
        os.close(held)
        os.waitpid(process, 0)


def leave_run() -> None:
    """Hold the run open no longer, as a process that was forked from the one which began it."""
    while _held:
        os.close(_held.pop())


def beside(*steps: Callable[[], object]) -> None:
    """Begin to do what the tests will need, in a process of its own."""
    if not os.fork():
        try:
            leave_run()
            for step in steps:
                step()
        finally:  # a test that needs it tries again, and reports what is wrong
            os._exit(0)


def shared_folder() -> Path:
    """Return the folder that all processes of this run share; it goes with the run, whatever is left in it."""
    return Path(os.environ[_SHARED])


def end_of_run() -> IO[bytes]:
    """Return a stream that ends with the run."""
    return open(shared_folder() / _ALIVE, "rb")


@contextmanager
def once(name: str) -> Generator[bool]:
    """Keep out the other processes of the run that are about to do the same; yield whether it is still to be done."""
    done = shared_folder() / f"{name}.done"
    with open(shared_folder() / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not done.exists()
        done.touch()


def made_at(data_dir: Path) -> str:
    """Make a data directory with a migrated database, as a server would have made it, and return its path."""
    subprocess.run(["cp", "-a", first_database(), data_dir], check=True)
    return str(data_dir)


@cache
def first_database() -> Path:
    """Make the first database of the run, unless it exists, and return its data directory."""
    data_dir = shared_folder() / "d"
    with once("database") as missing:
        if missing:
            with embedded(data_dir, "serve", settings=FAST) as running:
                prepare(running)
            # Without syncing, commits survive a killed Postgres and are lost only if the machine crashes.
            with open(data_dir / "postgres" / "postgresql.auto.conf", "a", encoding="ascii") as settings:
                settings.write("fsync = off\n")
    return data_dir


def _fastest_folder() -> str:
    """Return a folder for the folders of runs: in memory where there is room, with a path short enough for a socket."""
    # A database for each test is gigabytes of writing in all, which memory takes faster than a disk. Containers often
    # have 64 MB of it; a test process needs a few hundred.
    memory = "/dev/shm"
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 * 1024**3:
        return memory
    # A Unix socket's path is limited to about a hundred bytes.
    default = tempfile.gettempdir()
    return default if len(default) < 40 else "/tmp"
