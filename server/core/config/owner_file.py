"""Files that only their owner can read, written whole or not at all."""

import errno
import os
from pathlib import Path

from esker.server.core.config.home import missing_home


def make_folder(folder: Path) -> None:
    """Create a folder, if missing, closed to other users. Raises OSError, also if its home directory is missing."""
    if home := missing_home(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(home))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_owner_only(path: Path, text: str) -> None:
    """Write a file and, if missing, its folder, both closed to other users. Raises OSError, ValueError.

    A link stays a link, since people keep such files elsewhere.
    """
    encoded = text.encode("utf-8")
    path = Path(os.path.realpath(path))
    make_folder(path.parent)
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(encoded)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
