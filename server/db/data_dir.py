"""The lock on a data directory; the operating system drops it when its holder dies, however it dies.

`esker serve` holds it for its whole life. Short commands (`migrate`, `key`, `doctor` …) hold it while they run; one
that finds a running `serve` uses its Postgres instead, and one that finds another command waits for it.
"""

import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal

import psutil

from esker.server.core.config.local_token import HOLDER
from esker.server.core.errors import Misconfigured

HolderRole = Literal["serve", "command"]

_PATIENCE_SECONDS = 60.0  # how long a command waits for another one
_LOCK = "esker.lock"
# Entries that a file system puts into a new directory by itself.
_HARMLESS = frozenset({"lost+found", ".DS_Store"})


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a data directory; `url` is where a `serve` listens."""

    pid: int
    role: HolderRole
    url: str


@contextmanager
def hold(directory: Path, role: HolderRole, url: str = "") -> Generator[bool]:
    """Hold `directory` while the block runs. Yields False, for a command, when a running `serve` has it.

    Raises Misconfigured when a `serve` wants it and another has it, or when a command does not let go in time.
    """
    make_private(directory)
    with (directory / _LOCK).open("a") as file:
        if not _acquire(file, directory, role):
            yield False
            return
        try:
            _write_holder(directory, Holder(os.getpid(), role, url))
            yield True
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def holder(directory: Path) -> Holder | None:
    """Return the running process that holds `directory`, or None."""
    try:
        with (directory / _LOCK).open() as file:  # does not create the file
            if _try_lock(file):
                fcntl.flock(file, fcntl.LOCK_UN)
                return None
    except OSError:
        return None
    return _read_holder(directory)


def make_private(directory: Path) -> None:
    """Create `directory` if it is missing, closed to other users.

    Raises Misconfigured when that fails, and for a directory that contains other files than Esker's.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not has_lock(directory):
            directory.chmod(0o700)
    except OSError as error:
        raise _unusable(directory, error) from error


def has_lock(directory: Path) -> bool:
    """Return whether a directory has been Esker's before; a missing one has not.

    Raises Misconfigured when it cannot be read, and for a directory that contains other files than Esker's.
    """
    try:
        names = {entry.name for entry in directory.iterdir()} if directory.exists() else set[str]()
    except OSError as error:
        raise _unusable(directory, error) from error
    if _LOCK not in names and names - _HARMLESS:
        raise Misconfigured(
            f"{directory} contains other files than Esker's.",
            hint="Choose a directory for Esker alone with --data-dir or ESKER_DATA_DIR.",
        )
    return _LOCK in names


def _unusable(directory: Path, error: OSError) -> Misconfigured:
    return Misconfigured(
        f"The data directory {directory} cannot be used: {error.strerror}.",
        hint="Choose another with --data-dir or ESKER_DATA_DIR.",
    )


def _acquire(file: IO[str], directory: Path, role: HolderRole) -> bool:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not _try_lock(file):
        other = _read_holder(directory)
        if other and other.role == "serve" and role == "command":
            return False
        if (other and other.role == "serve") or time.monotonic() > deadline:
            who = f"process {other.pid}{f' at {other.url}' if other.url else ''}" if other else "another process"
            raise Misconfigured(
                f"Esker already runs on {directory} ({who}).",
                hint="Use that one, stop it, or give this one its own --data-dir and --port.",
            )
        time.sleep(0.05)
    return True


def _try_lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_holder(directory: Path, me: Holder) -> None:
    """Record the holder of the lock. Renaming the file is atomic, so no reader sees half of it."""
    fresh = directory / f"esker.holder.{me.pid}"
    fresh.write_text(json.dumps(asdict(me)), encoding="utf-8")
    fresh.replace(directory / HOLDER)


def _read_holder(directory: Path) -> Holder | None:
    """Return the recorded holder, or None if that process has ended."""
    try:
        noted = Holder(**json.loads((directory / HOLDER).read_text(encoding="utf-8")))
    except (ValueError, TypeError, OSError):
        return None
    return noted if psutil.pid_exists(noted.pid) else None
