"""Reading and writing files: atomically, with their mode, and through links."""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

# A file without any write permission is read-only on purpose, so root does not write it either.
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


def read(path: Path) -> bytes | None:
    """Return a file's bytes, or None if it does not exist. Raises OSError if it is not a file or cannot be read."""
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):  # a pipe would block, a device has no end
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return path.read_bytes()
    except FileNotFoundError:
        return None


def write(path: Path, data: bytes, mode: int) -> tuple[Path, ...]:
    """Write a file, and return the folders that were created for it, outermost first. Raises OSError.

    A link stays a link. An existing file keeps its mode and owner; a new one gets `mode`, less the umask.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not (os.access(target, os.W_OK) and target.stat().st_mode & _ANY_WRITE):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    folders = tuple(folder for folder in reversed(target.parents) if not folder.exists())
    temporary = target.with_name(f".{target.name}.esker-{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _fill(temporary, data, mode, target)
        os.replace(temporary, target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        _remove(folders)
        if error.filename == str(temporary):
            error.filename = str(path)
        raise
    return folders


def _fill(path: Path, data: bytes, mode: int, like: Path) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        if like.exists():
            status = like.stat()
            with suppress(PermissionError):  # only root may change the owner
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def delete(path: Path, folders: tuple[Path, ...]) -> None:
    """Delete a file, with links resolved, and those of the folders that become empty. Raises OSError."""
    Path(os.path.realpath(path)).unlink(missing_ok=True)
    _remove(folders)


def _remove(folders: tuple[Path, ...]) -> None:
    with suppress(OSError):  # a folder was never created, or contains files of others
        for folder in reversed(folders):
            folder.rmdir()
