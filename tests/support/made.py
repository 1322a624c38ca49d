"""The one first start of a database in a run: the process that needs it first makes it, and all others copy it."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from esker.server.db.embedded import embedded, prepare

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""Postgres settings that spare a small transaction most of its cost; a database that was killed with them is lost."""

_SHARED = "FOLDER_OF_THIS_TEST_RUN"
"""The environment variable by which the processes of a run find what they share."""


def begin_run() -> None:
    """Make the folder that all processes of this run share; the process that starts the others calls it."""
    os.environ[_SHARED] = tempfile.mkdtemp(prefix="esker-run-", dir=scratch())


def end_run() -> None:
    """Remove the shared folder."""
    shutil.rmtree(os.environ.pop(_SHARED), ignore_errors=True)


def made_at(data_dir: Path) -> str:
    """Make a data directory with a migrated database, as a server would have made it, and return its path."""
    subprocess.run(["cp", "-a", _made(), data_dir], check=True)
    return str(data_dir)


@cache
def _made() -> Path:
    shared = Path(os.environ[_SHARED])
    data_dir, done = shared / "d", shared / "done"
    with open(shared / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            with embedded(data_dir, "serve", settings=FAST) as running:
                prepare(running)
            # Without syncing, commits survive a killed Postgres and are lost only if the machine crashes.
            with open(data_dir / "postgres" / "postgresql.auto.conf", "a", encoding="ascii") as settings:
                settings.write("fsync = off\n")
            done.touch()
    return data_dir


def scratch() -> str:
    """Return a folder for data directories: in memory where there is room, with a path short enough for a socket."""
    # A database for each test is gigabytes of writing in all, which memory takes faster than a disk. Containers often
    # have 64 MB of it; a test process needs a few hundred.
    memory = "/dev/shm"
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 * 1024**3:
        return memory
    # A Unix socket's path is limited to about a hundred bytes.
    default = tempfile.gettempdir()
    return default if len(default) < 40 else "/tmp"
