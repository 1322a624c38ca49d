"""The local token: it opens a server to its owner without a key, on systems that do not tell whose a connection is.

It is in the file `token` of the data directory, which only its owner can read. `docs/decisions/local-access.md` says
when it is needed. Hooks read it in every turn of an agent, so this module uses the standard library alone.
"""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from esker.server.core import api_key
from esker.server.core.config.home import data_dir
from esker.server.core.errors import Misconfigured
from esker.server.core.json_input import JsonObject

HOLDER = "esker.holder"
"""The file of a data directory that says which process has it, and where that listens."""
_FILE = "token"
_LOOPBACK = re.compile(r"localhost|127\.[0-9.]+|::1")


def own_token(directory: Path) -> str:
    """Return the token in a data directory; it is made if there is none. Raises OSError."""
    path = directory / _FILE
    with suppress(FileExistsError), os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{api_key.new_key()}\n")
    path.chmod(0o600)
    return path.read_text(encoding="ascii").strip()


def token_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the token for the server at `url`, or None unless it runs on this user's data directory.

    A program that has taken the port of a server that stopped must not get the token.
    """
    try:
        asked = urlsplit(url)
        if not _LOOPBACK.fullmatch(asked.hostname or ""):
            return None
        directory = data_dir(environ)
        holder: JsonObject = json.loads((directory / HOLDER).read_text(encoding="utf-8"))
        os.kill(holder["pid"], 0)
        if urlsplit(str(holder["url"])).port != asked.port:
            return None
        return (directory / _FILE).read_text(encoding="ascii").strip() or None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, Misconfigured):
        return None
