"""The installer's description of a client and of the machine that it is set up on."""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol

from esker.server.core.config.home import expanded
from esker.server.core.errors import Misconfigured
from esker.server.core.json_input import Json

SERVER = "esker"
"""The name that the MCP server has in every client's configuration."""
KEY_VARIABLE = "ESKER_KEY"
CONNECT_SECONDS = 3
"""The most seconds that a client waits for the MCP server at its start: one that hangs must not hold up a prompt."""
CALL_SECONDS = 10
"""The most seconds for a call of a tool, where a client has another limit for calls than for connecting."""
USER, PROJECT = "user", "project"

_PLUGINS = Path(__file__).with_name("plugins")
_IMPORT = 'import { MARK, ask } from "./ask.ts"\n'
_PROGRAM, _OPTIONS = '"{{esker}}"', '["{{options}}"]'
# Characters that an address cannot contain unescaped, and that a shell or a template might interpret.
_FORBIDDEN = re.compile(r"""[\x00-\x20\x7f-\xa0"<>\\^`{|}$?#\u2000-\u200f\u2028-\u202f]""")


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """The target of an installation: the user's home, the server, the program, the state directory of hooks.

    `program` is the absolute path of `esker`. With `with_key` the client reads the key from ESKER_KEY; the installer
    never sees the key itself.
    """

    home: Path
    cwd: Path
    environ: Mapping[str, str]
    program: str
    url: str
    state_dir: Path
    with_key: bool = False
    scope: str = USER

    def folder(self, variable: str, default: str, below: str = "") -> Path:
        """Return `below` in the folder that an environment variable names, or else a default in the home."""
        value = self.environ.get(variable)
        return expanded(Path(value)).absolute() / below if value else self.home / default

    @property
    def mcp_url(self) -> str:
        """The address of the server's MCP endpoint for a client whose hooks bring the pack, so that MCP need not."""
        return f"{self.url.rstrip('/')}/mcp?hooks=yes"

    def headers(self, key: str) -> dict[str, Json]:
        """Return the headers, with `key` for the client's reference to ESKER_KEY; empty without a key."""
        return {"headers": {"Authorization": f"Bearer {key}"}} if self.with_key else {}

    @property
    def options(self) -> list[str]:
        """The options of a hook. A client may run it with another environment than that of the user's shell."""
        return ["--url", self.url.rstrip("/"), "--state-dir", str(self.state_dir.absolute())]

    def command(self, client: str, event: str) -> str:
        """Return the command of a hook, for a shell."""
        return shlex.join([self.program, "hook", *self.options, client, event])

    def plugin(self, client: str) -> str:
        """Return the source of a client's plugin, with this target's program and options."""
        # Clients load single files, and OpenCode takes every export for a plugin, so inline the shared code unexported.
        shared = _source("ask").replace("export ", "")
        for placeholder, value in ((_OPTIONS, self.options), (_PROGRAM, self.program)):
            shared = shared.replace(placeholder, json.dumps(value))
        return _source(client).replace(_IMPORT, shared)


def check_address(url: str) -> None:
    """Refuse an address that cannot be written into files. Raises Misconfigured."""
    if "@" in url.partition("://")[2].partition("/")[0]:
        raise Misconfigured(
            "ESKER_URL contains a name or a password, which would be written into files.",
            hint=f"Remove it. Clients read the server's key from {KEY_VARIABLE}, so that it stays in the environment.",
        )
    if found := _FORBIDDEN.search(url):
        raise Misconfigured(
            f"ESKER_URL is {url!r}, but an address for clients cannot contain {found.group()!r}.",
            hint="Use the form http://127.0.0.1:8377 without a query; write other characters as %XX.",
        )


def _source(name: str) -> str:
    return (_PLUGINS / f"{name}.ts").read_text(encoding="utf-8")


class ManagedFile(Protocol):
    """Esker's part of one file of a client. Texts have no byte order mark; "" is an empty file."""

    whole: ClassVar[bool]
    """Whether Esker owns the whole file, so that replacing or deleting it would lose the user's edits."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        ...

    def put(self, text: str) -> str:
        """Return the text with Esker's entries."""
        ...

    def remove(self, text: str, original: str | None) -> str | None:
        """Return the text without Esker's entries, or None if the file is to be deleted.

        `original` is the text before the installation; None if there was no file.
        """
        ...


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its name in `esker hook`, its folder, its files, and notes for its user."""

    name: str
    folder: Callable[[InstallTarget], Path]
    parts: Callable[[InstallTarget], list[ManagedFile]]
    notes: tuple[str, ...] = ()
    scopes: tuple[str, ...] = (USER,)
