"""The local token: it opens a server to its owner without a key, on systems that do not tell which user opened a
connection.

It is in the file `token` of the data directory, which only its owner can read. `docs/decisions/local-access.md` says
when it is needed. Hooks read it in every turn of an agent, so this module uses the standard library alone.
"""

import ipaddress
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from esker.server.core import api_key
from esker.server.core.config.home import data_dir
from esker.server.core.errors import Misconfigured
from esker.server.core.json_input import JsonObject

HOLDER = "esker.holder"
"""The file in a data directory that names the process that uses it, and its address."""
_FILE = "token"


def own_token(directory: Path) -> str:
    """Return the token in a data directory, which the caller holds; it is made if there is none. Raises OSError."""
    path = directory / _FILE
    with suppress(FileNotFoundError, UnicodeDecodeError):
        path.chmod(0o600)
        # A crash of the machine may leave an empty file, or one with other bytes.
        if token := path.read_text(encoding="ascii").strip():
            return token
    fresh = directory / f"{_FILE}.{os.getpid()}"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{api_key.new_key()}\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    return path.read_text(encoding="ascii").strip()


def token_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the token for the server at `url`, or None unless it runs on this user's data directory.

    A program that has taken the port of a server that stopped must not get the token, nor one that listens on the same
    port of another loopback address, which a name such as localhost may mean.
    """
    try:
        asked = urlsplit(url)
        directory = data_dir(environ)
        holder: JsonObject = json.loads((directory / HOLDER).read_text(encoding="utf-8"))
        os.kill(holder["pid"], 0)
        listening = urlsplit(str(holder["url"]))
        if listening.port != asked.port or not _reaches(asked.hostname or "", listening.hostname or ""):
            return None
        return (directory / _FILE).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, Misconfigured):
        return None


def _reaches(asked: str, listening: str) -> bool:
    """Whether a loopback address is the one that a server listens on, or one of all. Raises ValueError for a name."""
    address, of_server = ipaddress.ip_address(asked), ipaddress.ip_address(listening)
    is_one_of_all = of_server.is_unspecified and of_server.version == address.version
    return address.is_loopback and (is_one_of_all or address == of_server)
