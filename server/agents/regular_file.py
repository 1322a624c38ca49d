"""Opening files that are files: where one is looked for, a pipe, a socket or a device may stand, and reading it may
never end."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def obstacle(path: Path) -> str | None:
    """Return what stands at a path instead of a file, or None for a file. Raises OSError where nobody can tell."""
    return _obstacle(path.stat().st_mode)


def opened_plain(path: Path) -> BinaryIO:
    """Open a file that is not compressed. Raises OSError, also for what is no file, which is not waited for."""
    # Opening a device can do something to it, so it is looked at first; what has taken its place since does not block.
    if found := obstacle(path):
        raise OSError(0, f"it is {found}")
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115 - the caller closes it
    if found := _obstacle(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, f"it is {found}")
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _obstacle(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return None
    return next((name for is_one, name in _KINDS if is_one(mode)), "no file")
