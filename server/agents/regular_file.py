"""Opening regular files only: a path may lead to a pipe, a socket or a device, and reading one may never end."""

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
    """Return the kind of a path that is not a regular file, or None if it is one. Raises OSError if that is unknown."""
    return _obstacle(path.stat().st_mode)


def opened_plain(path: Path) -> BinaryIO:
    """Open a file without unpacking it. Raises OSError, also for anything but a regular file, without blocking."""
    # Opening a device can have effects, so check before; O_NONBLOCK covers what has replaced the file since.
    if found := obstacle(path):
        raise OSError(0, f"it is {found}")
    file = open(path, "rb", opener=_open_nonblocking)  # noqa: SIM115 - the caller closes it
    if found := _obstacle(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(0, f"it is {found}")
    return file


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _obstacle(mode: int) -> str | None:
    if stat.S_ISREG(mode):
        return None
    return next((name for matches, name in _KINDS if matches(mode)), "not a file")
