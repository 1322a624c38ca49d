"""Folders of the state directory, which no other user may enter: they hold words of conversations."""

import os
import stat
from pathlib import Path

from esker.server.core.config.owner_file import make_folder


def make_private(*folders: Path) -> None:
    """Create folders, the outermost first, and close them to other users. Raises OSError."""
    for folder in folders:
        make_folder(folder)
        status = folder.stat()
        is_shared = stat.S_IMODE(status.st_mode) & 0o077 and not status.st_mode & stat.S_ISVTX
        if is_shared and status.st_uid == os.geteuid():
            folder.chmod(0o700)
