"""What the installer knows of a client, and of the machine that it is set up on."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import Misconfigured
from esker.server.core.json_input import Json

SERVER = "esker"
"""The name that the MCP server has in every client's configuration."""
KEY_VARIABLE = "ESKER_KEY"
USER, PROJECT = "user", "project"

_PLUGINS = Path(__file__).with_name("plugins")
_IMPORT = 'import { MARK, ask } from "./ask.ts"\n'
_PROGRAM, _OPTIONS = '"{{esker}}"', '["{{options}}"]'
# No address has these as they are; what is read by a shell or expands variables might take them for its own.
_NO_ADDRESS = re.compile(r"""[\x00-\x20\x7f-\xa0"<>\\^`{|}$?#\u2000-\u200f\u2028-\u202f]""")


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """Where something is installed: whose home, which server, which program.

    `program` is the absolute path of `esker`. With `with_key` the client takes the key from ESKER_KEY; the key itself
    is never known here.
    """

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    program: str
    url: str
    with_key: bool = False
    scope: str = USER

    def folder(self, variable: str, default: str, below: str = "") -> Path:
        """Return the folder that a variable names, below which `below` is meant, or else a default in the home."""
        named = self.environ.get(variable)
        return Path(named).expanduser().absolute() / below if named else self.home / default

    @property
    def mcp_url(self) -> str:
        """Where the server speaks MCP."""
        return f"{self.url.rstrip('/')}/mcp"

    def headers(self, key: str) -> dict[str, Json]:
        """Return the headers of a client that writes the value of ESKER_KEY as `key`, or nothing where none is used."""
        return {"headers": {"Authorization": f"Bearer {key}"}} if self.with_key else {}

    @property
    def options(self) -> list[str]:
        """What a hook is told besides its event: where the server is, unless it looks there anyway."""
        url = self.url.rstrip("/")
        return [] if url == ClientSettings.url else ["--url", url]

    def command(self, client: str, event: str) -> str:
        """Return the command of a hook, for a shell."""
        return shlex.join([self.program, "hook", *self.options, client, event])

    def plugin(self, client: str) -> str:
        """Return the source of a client's plugin, which runs this program."""
        # Clients load single files, and OpenCode takes every export for a plugin.
        shared = _source("ask").replace("export ", "")
        for placeholder, value in ((_OPTIONS, self.options), (_PROGRAM, self.program)):
            shared = shared.replace(placeholder, json.dumps(value))
        return _source(client).replace(_IMPORT, shared)


def check_address(url: str) -> None:
    """Refuse an address that cannot be written into files. Raises Misconfigured."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise Misconfigured(
            "ESKER_URL holds a name or a password, which would come to stand in files.",
            hint=f"Leave it out. The key of a server is told by {KEY_VARIABLE} and stays in the environment.",
        )
    if found := _NO_ADDRESS.search(url):
        raise Misconfigured(
            f"ESKER_URL is {url!r}, and {found.group()!r} cannot be in an address that clients are to call.",
            hint="It looks like http://127.0.0.1:8377, without a query; other characters are written as %XX.",
        )


def _source(name: str) -> str:
    return (_PLUGINS / f"{name}.ts").read_text(encoding="utf-8")


class ManagedFile(Protocol):
    """One file of a client, as far as it is ours. Texts are without a byte order mark; "" is an empty file."""

    whole: ClassVar[bool]
    """Whether all of the file is ours, so that an edit of somebody else's would go with it."""

    @property
    def path(self) -> Path:
        """Where the file is."""
        ...

    def put(self, text: str) -> str:
        """Return the text with what is ours in it."""
        ...

    def take(self, text: str, original: str | None) -> str | None:
        """Return the text without what is ours, or None when nothing of the file is left.

        `original` is what the file was before; None where there was none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its name in `esker hook`, its folder, its files, and what its user has to know."""

    name: str
    folder: Callable[[InstallTarget], Path]
    parts: Callable[[InstallTarget], list[ManagedFile]]
    notes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = (USER,)
