"""Folders of the state directory, which no other user may enter: they hold words of conversations."""

import os
import stat
from pathlib import Path


def make_private(*folders: Path) -> None:
    """Create folders, the outermost first, and close them to other users. Raises OSError."""
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        status = folder.stat()
        is_shared = stat.S_IMODE(status.st_mode) & 0o077 and not status.st_mode & stat.S_ISVTX
        if is_shared and status.st_uid == os.geteuid():
            folder.chmod(0o700)
