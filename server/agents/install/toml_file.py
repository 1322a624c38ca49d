"""A TOML file of a client: a table of ours among its MCP servers, edited as text.

Lines are put in, replaced or cut out; what is not written with headers is left to tomlkit. Either way, what the text
says then is compared with what it should say.
"""

import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

import tomlkit
from tomlkit.exceptions import TOMLKitError

from esker.server.agents.install.client import SERVER
from esker.server.core.errors import InvalidInput

_SERVERS = "mcp_servers"
# The header of all servers or of one of them; and that of ours, or of a table in it.
_ANY = re.compile(rf"""[ \t]*\[[ \t]*(["']?){_SERVERS}\1[ \t]*[.\]]""")
_OURS = re.compile(rf"""[ \t]*\[[ \t]*(["']?){_SERVERS}\1[ \t]*\.[ \t]*(["']?){SERVER}\2[ \t]*[.\]]""")

# What may hold an end of a line, or brackets that are none, or begins or ends what goes over several lines.
_TOKEN = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{}\n]""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """A table of ours among the MCP servers of a TOML file."""

    whole: ClassVar[bool] = False
    path: Path
    server: dict[str, Any]

    def put(self, text: str) -> str:
        """Return the text with our table. Raises InvalidInput where the text is no TOML or has no room for it."""
        said = _said(text)
        servers: Any = said.get(_SERVERS, {})
        if not isinstance(servers, dict):
            raise InvalidInput(f"{_SERVERS} is no table")
        wanted = {**said, _SERVERS: {**cast("dict[str, Any]", servers), SERVER: self.server}}
        if _same(said, wanted):
            return text
        block = tomlkit.dumps({_SERVERS: {SERVER: self.server}}).replace("\n", _newline(text))
        ways = (_spliced,) if SERVER in servers else (_among, _at_end)
        return _first([*(partial(way, text, block) for way in ways), partial(_set, text, self.server)], wanted)

    def take(self, text: str, original: str | None) -> str | None:
        """Return the text without our table."""
        said = _said(text)
        servers = said.get(_SERVERS)
        if not isinstance(servers, dict) or SERVER not in servers:
            return text
        left = {name: each for name, each in cast("dict[str, Any]", servers).items() if name != SERVER}
        drop = not left and _SERVERS not in _said(original or "")
        taken = _first([partial(_spliced, text, ""), partial(_deleted, text, drop)], {**said, _SERVERS: left})
        return None if original is None and not taken.strip() else taken


# What a text says ----------------------------------------------------------------------------------------------------


def _said(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(str(error)) from error
    except ValueError as error:  # Python reads no number of more than a few thousand digits
        raise InvalidInput("a number has too many digits to be read") from error


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are the same; what is no number equals nothing else, not even itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in cast("dict[str, Any]", one))
    if isinstance(one, list):
        return len(cast("list[Any]", one)) == len(other) and all(map(_same, cast("list[Any]", one), other))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def _first(ways: list[Callable[[], str]], wanted: dict[str, Any]) -> str:
    """Return the first text that says what is wanted. The table of all servers may be gone with the last of them."""
    for way in ways:
        try:
            text = way()
            if _same({_SERVERS: {}, **tomllib.loads(text)}, {_SERVERS: {}, **wanted}):
                return text
        except (ValueError, TOMLKitError):
            continue
    raise InvalidInput(
        f"its tables are written in a way that cannot be edited safely; write {_SERVERS}.{SERVER} by hand"
    )


# By lines ------------------------------------------------------------------------------------------------------------


def _lines(text: str) -> list[str]:
    """Return the lines of a text; a value that goes over several is one with its key."""
    lines: list[str] = []
    start = depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if token[0] == "\n" and not depth:
            lines.append(text[start : token.end()])
            start = token.end()
    return [*lines, text[start:]] if start < len(text) else lines


def _tables(text: str) -> list[list[str]]:
    """Return the lines of a text, cut before each header."""
    tables: list[list[str]] = [[]]
    for line in _lines(text):
        if line.lstrip(" \t").startswith("["):
            tables.append([])
        tables[-1].append(line)
    return tables


def _among(text: str, block: str) -> str:
    """Return the text with a block, and a blank line before it, behind the last of the servers that are there."""
    tables = _tables(text)
    places = [place for place, table in enumerate(tables) if table and _ANY.match(table[0])]
    if not places or places[-1] == len(tables) - 1:
        return _at_end(text, block)
    table = tables[places[-1]]
    table.insert(_length(table), _newline(text) + block)
    return "".join(line for each in tables for line in each)


def _at_end(text: str, block: str) -> str:
    """Return the text with a block, and a blank line before it, at its end."""
    line = _newline(text)
    return text + ("" if text.endswith("\n") or not text else line) + (line if text else "") + block


def _spliced(text: str, block: str) -> str:
    """Return the text with a block, or nothing, in the place of our table; the blank line before it goes with it."""
    kept: list[str] = []
    for table in _tables(text):
        if not (table and _OURS.match(table[0])):
            kept += table
            continue
        if block:
            kept.append(block)
        elif kept and not kept[-1].strip():
            kept.pop()
        # Comments before the next table stay with that.
        kept += table[_length(table) :]
        block = ""
    return "".join(kept)


def _length(table: list[str]) -> int:
    """Return how many lines a table has up to the last one that says something."""
    return 1 + max(place for place, line in enumerate(table) if line.strip() and not line.lstrip().startswith("#"))


def _newline(text: str) -> str:
    """Return how the lines of a text end, if all do so the same way."""
    return "\r\n" if "\r\n" in text and text.count("\n") == text.count("\r\n") else "\n"


# By tomlkit ----------------------------------------------------------------------------------------------------------


def _set(text: str, server: dict[str, Any]) -> str:
    document: Any = tomlkit.parse(text)
    ours: Any = tomlkit.inline_table()
    ours.update(server)
    document[_SERVERS][SERVER] = ours
    return tomlkit.dumps(document)


def _deleted(text: str, drop: bool) -> str:
    document: Any = tomlkit.parse(text)
    del document[_SERVERS][SERVER]
    if drop:
        del document[_SERVERS]
    return tomlkit.dumps(document)
