"""Files as they are on disk: replaced whole or not at all, with their mode, and behind their links."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

# What may be written by nobody is not meant to be, also where root could.
_ANYBODY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def read(path: Path) -> bytes | None:
    """Return a file's bytes, or None where there is none. Raises OSError for what is no file or cannot be read."""
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # a pipe would be waited for, a device has no end
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write(path: Path, data: bytes, mode: int) -> tuple[Path, ...]:
    """Write a file, and return the folders that were made for it, outermost first. Raises OSError.

    A link stays a link. A file that is there keeps its mode and its owner; a new one gets `mode`, less the umask.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not (os.access(target, os.W_OK) and target.stat().st_mode & _ANYBODY_WRITES):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    folders = tuple(folder for folder in reversed(target.parents) if not folder.exists())
    aside = target.with_name(f".{target.name}.esker-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _fill(aside, data, mode, target)
        os.replace(aside, target)
    except OSError as error:
        aside.unlink(missing_ok=True)
        _remove(folders)
        if error.filename == str(aside):
            error.filename = str(path)
        raise
    return folders


def _fill(path: Path, data: bytes, mode: int, like: Path) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        if like.exists():
            there = like.stat()
            with suppress(PermissionError):  # only root gives files away
                os.fchown(file.fileno(), there.st_uid, there.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(there.st_mode))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def delete(path: Path, folders: tuple[Path, ...]) -> None:
    """Delete a file behind its links, and those of the folders that are empty then. Raises OSError."""
    Path(os.path.realpath(path)).unlink(missing_ok=True)
    _remove(folders)


def _remove(folders: tuple[Path, ...]) -> None:
    with suppress(OSError):  # it was never made, or somebody else's files are in it
        for folder in reversed(folders):
            folder.rmdir()
