"""Keys that are kept in the state directory, for hooks whose client does not pass its environment on."""

import json
import os
import stat
from pathlib import Path
from typing import cast

from esker.server.core.config.owner_file import write_owner_only
from esker.server.core.errors import Misconfigured

_FILE = "keys.json"


class KeptKeys:
    """The keys in an owner-only file, each for the address of one server, so that no other server gets it."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / _FILE

    def key(self, url: str) -> str | None:
        """Return the key for the server at `url`, or None. Raises Misconfigured if other users can read the file."""
        return self._read().get(url.rstrip("/"))

    def keep(self, url: str, key: str) -> None:
        """Keep a key for the server at `url`. Raises Misconfigured, OSError."""
        write_owner_only(self.path, json.dumps(self._read() | {url.rstrip("/"): key}, indent=2) + "\n")

    def drop(self, url: str) -> bool:
        """Delete the key for the server at `url`; return whether there was one. Raises Misconfigured, OSError."""
        keys = self._read()
        if keys.pop(url.rstrip("/"), None) is None:
            return False
        if keys:
            write_owner_only(self.path, json.dumps(keys, indent=2) + "\n")
        else:
            self.path.unlink(missing_ok=True)
        return True

    def _read(self) -> dict[str, str]:
        try:
            with self.path.open(encoding="utf-8") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise Misconfigured(f"Other users can read {self.path}.", hint=f"chmod 600 {self.path}")
                found = cast("object", json.load(file))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as error:
            raise Misconfigured(f"{self.path} cannot be read: {error}.", hint="Repair or delete it.") from None
        entries = cast("dict[object, object]", found) if isinstance(found, dict) else {}
        return {url: key for url, key in entries.items() if isinstance(url, str) and isinstance(key, str)}
