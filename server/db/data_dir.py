"""The lock on a data directory; the operating system drops it when its holder dies, however it dies.

`esker serve` holds it for its whole life. Short commands (`migrate`, `key`, `doctor` …) hold it while they run; one
that finds a running `serve` uses its Postgres instead, and one that finds another command waits for it.
"""

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Literal

import psutil

from esker.server.core.config.home import missing_home
from esker.server.core.config.local_token import HOLDER
from esker.server.core.errors import Misconfigured, Unavailable

HolderRole = Literal["serve", "command"]

_PATIENCE_SECONDS = 60.0  # how long a command waits for another one
_LOCK = "esker.lock"
_OTHER = "choose another directory with --data-dir or ESKER_DATA_DIR."
_MB = 1024 * 1024
LEAST_BYTES = 64 * _MB
"""Free space below which Postgres may fail at any write, and a new database cannot be made."""
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
    with explained(directory):
        opened = (directory / _LOCK).open("a")
    with opened as file:
        if not _acquire(file, directory, role):
            yield False
            return
        try:
            with explained(directory):
                _write_holder(directory, Holder(os.getpid(), role, url))
            yield True
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def explained(directory: Path) -> Generator[None]:
    """Turn errors of the operating system about the files of a data directory into Misconfigured.

    An Unavailable says how little space is left, if that may be the reason.
    """
    try:
        yield
    except OSError as error:
        raise _unusable(directory, error) from error
    except Unavailable as error:
        free = free_bytes(directory)
        if free is not None and free < LEAST_BYTES:
            left = f"Its disk has only {free / _MB:.1f} MB left. Free some space."
            raise Unavailable(str(error), hint=" ".join(filter(None, (left, error.hint)))) from error
        raise


def free_bytes(directory: Path) -> int | None:
    """Return how much space the disk of a directory has for its owner; None if that cannot be told."""
    try:
        return shutil.disk_usage(directory).free
    except OSError:
        return None


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

    Raises Misconfigured when that fails, in a home directory that does not exist, and for a directory that contains
    other files than Esker's.
    """
    try:
        if home := missing_home(directory):
            raise Misconfigured(f"The home directory {home} does not exist.", hint=f"Create it, set HOME, or {_OTHER}")
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
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return Misconfigured(
            f"The disk of the data directory {directory} is full.", hint=f"Free some space, or {_OTHER}"
        )
    if error.errno == errno.EROFS:
        return Misconfigured(
            f"The data directory {directory} is on a read-only file system.", hint=f"Mount it read-write, or {_OTHER}"
        )
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return Misconfigured(
            f"The data directory {directory} cannot be made: something else than a directory is in its place.",
            hint=_OTHER.replace("choose", "Choose"),
        )
    return Misconfigured(
        f"The data directory {directory} cannot be used: {error.filename or directory}: {error.strerror}.",
        hint=_OTHER.replace("choose", "Choose"),
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
    try:
        fresh.write_text(json.dumps(asdict(me)), encoding="utf-8")
        fresh.replace(directory / HOLDER)
    finally:
        fresh.unlink(missing_ok=True)


def _read_holder(directory: Path) -> Holder | None:
    """Return the recorded holder, or None if that process has ended."""
    try:
        noted = Holder(**json.loads((directory / HOLDER).read_text(encoding="utf-8")))
    except (ValueError, TypeError, OSError):
        return None
    return noted if psutil.pid_exists(noted.pid) else None
