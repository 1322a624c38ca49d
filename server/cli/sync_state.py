"""The state that the last sync of a folder left, in the state directory: hashes of lines, no words."""

import fcntl
import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from esker.server.agents.private_folder import make_private
from esker.server.core.config.owner_file import write_owner_only
from esker.server.core.errors import Conflict, Misconfigured
from esker.server.core.pool.sync_plan import BaseRow

_FOLDER = "sync"
_ROWS = TypeAdapter(dict[str, BaseRow])


class SyncState:
    """The state of one folder with one pool of one server."""

    def __init__(self, state_dir: Path, folder: Path, url: str, pool: str) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._of = {"folder": str(self._folder), "url": url, "pool": pool}
        name = hashlib.sha256("\0".join(self._of.values()).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._parent = state_dir / _FOLDER
        self._path = self._parent / f"{name}.json"

    @contextmanager
    def locked(self) -> Generator[None]:
        """Keep other syncs of this folder away. Raises Conflict if one is running, OSError."""
        make_private(self._parent.parent, self._parent)
        lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"Another sync of {self._folder} is running.", hint="Wait for it to end.") from None
        else:
            yield
        finally:
            os.close(lock)

    def read(self) -> dict[str, BaseRow]:
        """Return the memories that the last sync left, by id; none if there was no sync. Raises Misconfigured."""
        try:
            return _ROWS.validate_python(json.loads(self._path.read_text(encoding="utf-8"))["rows"])
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
            raise Misconfigured(
                f"{self._path} cannot be read: {type(error).__name__}.",
                hint="Delete it: the next sync then compares the files with the pool, and shows what differs.",
            ) from None

    def write(self, rows: Mapping[str, BaseRow]) -> None:
        """Replace what is known of the last sync, at once. Raises OSError."""
        text = json.dumps({**self._of, "rows": {memory_id: asdict(row) for memory_id, row in rows.items()}})
        write_owner_only(self._path, text + "\n")
