"""The originals: files as they were before the installation, stored so that uninstalling restores them exactly."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from esker.server.agents.install.disk import write
from esker.server.agents.private_folder import make_private


@dataclass(frozen=True, slots=True)
class Original:
    """A file's bytes before the installation (None: no file), a digest of what was written, and the folders created."""

    client: str
    path: Path
    before: bytes | None
    written: str
    folders: tuple[Path, ...] = ()


def digest(data: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


class Originals:
    """The originals in one folder, in owner-only files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, path: Path) -> Original | None:
        """Return the original of a file, or None if none is stored."""
        return _read(self._file(path))

    def all(self) -> Iterator[Original]:
        """Yield every original."""
        for file in sorted(self._folder.glob("*.json")):
            if original := _read(file):
                yield original

    def keep(self, original: Original) -> None:
        """Store an original. Raises OSError."""
        make_private(self._folder.parent, self._folder)
        before = None if original.before is None else base64.b64encode(original.before).decode()
        kept = {
            "client": original.client,
            "path": os.fspath(original.path),
            "before": before,
            "written": original.written,
            "folders": [os.fspath(folder) for folder in original.folders],
        }
        write(self._file(original.path), json.dumps(kept).encode(), mode=0o600)

    def forget(self, path: Path) -> None:
        """Remove the original of a file."""
        self._file(path).unlink(missing_ok=True)

    def _file(self, path: Path) -> Path:
        return self._folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _read(file: Path) -> Original | None:
    try:
        kept = json.loads(file.read_bytes())
        before = None if kept["before"] is None else base64.b64decode(kept["before"], validate=True)
        folders = tuple(Path(folder) for folder in kept["folders"])
        return Original(str(kept["client"]), Path(kept["path"]), before, str(kept["written"]), folders)
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a damaged file counts as missing
