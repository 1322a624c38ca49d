"""Codex: the MCP server in config.toml, hooks in hooks.json."""

import re
import tomllib
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from server.clients.install.client import KEY_VARIABLE, SERVER, Client, Part, Place
from server.clients.install.json_file import Hook, JsonFile, grouped
from server.core.errors import InvalidInput
from server.core.json_input import Json

NAME = "codex"

_SERVERS = "mcp_servers"
_HEADER = re.compile(rf"""\s*\[\s*{_SERVERS}\s*\.\s*["']?{SERVER}["']?\s*[.\]]""")
# Seconds. Codex gives the end of a session three at most, whatever is asked for.
_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "SubagentStop": 10, "PreCompact": 30}
_END_TIMEOUT = 3
_TRUST = (
    "Codex runs hooks only when they are trusted and skips others without a word: start it, type /hooks and trust"
    " those of Esker."
)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A table of ours among the MCP servers of a TOML file."""

    path: Path
    server: dict[str, Any]

    def put(self, text: str) -> str:
        """Return the text with our table. Raises InvalidInput where the text is no TOML or has no room for it."""
        document = _parsed(text)
        servers = document.get(_SERVERS)
        if servers is not None and not isinstance(servers, MutableMapping):
            raise InvalidInput(f"{_SERVERS} is no table")
        wanted = {**document.unwrap(), _SERVERS: {**_plain(servers), SERVER: self.server}}
        if document.unwrap() == wanted:
            return text
        if servers is None or SERVER not in servers:
            _add(document, servers, self.server)
            return _checked(tomlkit.dumps(document), text, wanted)
        replaced = _newlines_of(text, _spliced(text, tomlkit.dumps({_SERVERS: {SERVER: self.server}})))
        if _says(replaced, wanted):
            return replaced
        servers[SERVER] = self.server
        return _checked(tomlkit.dumps(document), text, wanted)

    def take(self, text: str, original: str | None) -> str | None:
        """Return the text without our table."""
        document = _parsed(text)
        servers = document.get(_SERVERS)
        if not isinstance(servers, MutableMapping) or SERVER not in servers:
            return text
        del servers[SERVER]
        wanted = {**document.unwrap(), _SERVERS: _plain(servers)}
        if not servers and _SERVERS not in _parsed(original or ""):
            del document[_SERVERS]
        cut = _spliced(text, "")
        taken = cut if _says(cut, wanted) else _checked(tomlkit.dumps(document), text, wanted)
        return None if original is None and not taken.strip() else taken


def _add(document: Any, servers: Any, server: dict[str, Any]) -> None:
    if servers is None:
        servers = document[_SERVERS] = tomlkit.table(is_super_table=True)
    if isinstance(servers, InlineTable):
        servers[SERVER] = tomlkit.inline_table()
        servers[SERVER].update(server)
        return
    ours: Any = tomlkit.table()
    ours.update(server)
    servers[SERVER] = ours
    if "\n[" in tomlkit.dumps(document).rpartition(f"[{_SERVERS}.{SERVER}]")[2]:
        ours.add(tomlkit.nl())


def _spliced(text: str, block: str) -> str:
    """Return the text with a block in the place of our table's lines; comments before the next table stay with that."""
    kept: list[str] = []
    ours: list[str] | None = None
    for line in [*text.splitlines(keepends=True), "["]:
        if line.lstrip().startswith("["):
            if ours is not None:
                rest = _behind(ours)
                # Without a block the gap before it goes, too, where another one follows.
                if not block and kept and not kept[-1].strip() and not "".join(rest[:1]).strip():
                    kept.pop()
                kept += [block, *rest]
                block = ""
            ours = [] if _HEADER.match(line) else None
        (kept if ours is None else ours).append(line)
    return "".join(kept[:-1])


def _behind(ours: list[str]) -> list[str]:
    """Return what follows the last line of a table that says something."""
    last = max(place for place, line in enumerate(ours) if line.strip() and not line.lstrip().startswith("#"))
    return ours[last + 1 :]


def _parsed(text: str) -> Any:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise InvalidInput(str(error)) from error


def _plain(table: Any) -> dict[str, Any]:
    return table.unwrap() if table is not None else {}


def _checked(written: str, text: str, wanted: dict[str, Any]) -> str:
    """Return an edited text, if it says what is wanted: some ways to write tables cannot be added to."""
    written = _newlines_of(text, written)
    if _says(written, wanted):
        return written
    raise InvalidInput(
        f"its tables are written in a way that cannot be edited safely; write {_SERVERS}.{SERVER} by hand"
    )


def _newlines_of(text: str, written: str) -> str:
    """Return what was written with lines that all end as those of the text do, if those all end the same way."""
    if "\r\n" in text and text.count("\n") == text.count("\r\n"):
        return written.replace("\r\n", "\n").replace("\n", "\r\n")
    return written


def _says(text: str, wanted: dict[str, Any]) -> bool:
    """Return whether a text says what is wanted. A table of tables may be gone with the last of them."""
    try:
        return {_SERVERS: {}, **tomllib.loads(text)} == {_SERVERS: {}, **wanted}
    except tomllib.TOMLDecodeError:
        return False


def _folder(place: Place) -> Path:
    return place.folder("CODEX_HOME", ".codex")


def hooks(place: Place) -> tuple[Hook, ...]:
    """Return the hooks."""

    def hook(event: str, timeout: int) -> Hook:
        handler: dict[str, Json] = {"type": "command", "command": place.command(NAME, event), "timeout": timeout}
        return grouped(event, handler)

    return (*(hook(event, timeout) for event, timeout in _TIMEOUTS.items()), hook("SessionEnd", _END_TIMEOUT))


def _parts(place: Place) -> list[Part]:
    key = {"bearer_token_env_var": KEY_VARIABLE} if place.with_key else {}
    return [
        TomlFile(_folder(place) / "config.toml", {"url": place.mcp_url, **key}),
        JsonFile(_folder(place) / "hooks.json", NAME, hooks=hooks(place)),
    ]


CLIENT = Client(NAME, _folder, _parts, notes=(_TRUST,))
