"""A TOML file of a client: Esker's table among its MCP servers, edited as text.

Lines are inserted, replaced or removed; tables written without headers are left to tomlkit. In both cases the parsed
result is compared with the expected one.
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
# The header of the table of servers or of one server; and that of Esker's, or of a table in it.
_ANY = re.compile(rf"""[ \t]*\[[ \t]*(["']?){_SERVERS}\1[ \t]*[.\]]""")
_OURS = re.compile(rf"""[ \t]*\[[ \t]*(["']?){_SERVERS}\1[ \t]*\.[ \t]*(["']?){SERVER}\2[ \t]*[.\]]""")

# Tokens that may contain a line end or brackets without meaning, and the brackets that open or close a value.
_TOKEN = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{}\n]""", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """Esker's table among the MCP servers of a TOML file."""

    whole: ClassVar[bool] = False
    path: Path
    server: dict[str, Any]

    def put(self, text: str) -> str:
        """Return the text with Esker's table. Raises InvalidInput if it is not TOML or cannot contain the table."""
        document = _parsed(text)
        servers: Any = document.get(_SERVERS, {})
        if not isinstance(servers, dict):
            raise InvalidInput(f"{_SERVERS} is not a table")
        wanted = {**document, _SERVERS: {**cast("dict[str, Any]", servers), SERVER: self.server}}
        if _same(document, wanted):
            return text
        block = tomlkit.dumps({_SERVERS: {SERVER: self.server}}).replace("\n", _newline(text))
        edits = (_spliced,) if SERVER in servers else (_after_last_server, _at_end)
        return _first_correct(
            [*(partial(edit, text, block) for edit in edits), partial(_set, text, self.server)], wanted
        )

    def remove(self, text: str, original: str | None) -> str | None:
        """Return the text without Esker's table."""
        document = _parsed(text)
        servers = document.get(_SERVERS)
        if not isinstance(servers, dict) or SERVER not in servers:
            return text
        remaining_members = {name: each for name, each in cast("dict[str, Any]", servers).items() if name != SERVER}
        drop = not remaining_members and _SERVERS not in _parsed(original or "")
        remaining = _first_correct(
            [partial(_spliced, text, ""), partial(_deleted, text, drop)], {**document, _SERVERS: remaining_members}
        )
        return None if original is None and not remaining.strip() else remaining


# Parsing and comparing ------------------------------------------------------------------------------------------------


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(str(error)) from error
    except ValueError as error:  # Python refuses numbers of more than a few thousand digits
        raise InvalidInput("a number has too many digits") from error


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal; unlike `==`, NaN equals NaN, and 1 differs from true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in cast("dict[str, Any]", one))
    if isinstance(one, list):
        return len(cast("list[Any]", one)) == len(other) and all(map(_same, cast("list[Any]", one), other))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def _first_correct(edits: list[Callable[[], str]], wanted: dict[str, Any]) -> str:
    """Return the first edited text that parses to `wanted`, in which an empty table of servers may be missing."""
    for edit in edits:
        try:
            text = edit()
            if _same({_SERVERS: {}, **tomllib.loads(text)}, {_SERVERS: {}, **wanted}):
                return text
        except (ValueError, TOMLKitError):
            continue
    raise InvalidInput(f"its tables cannot be edited safely; write {_SERVERS}.{SERVER} by hand")


# By lines ------------------------------------------------------------------------------------------------------------


def _lines(text: str) -> list[str]:
    """Return the logical lines of a text: a key with its value, even if that spans several lines."""
    lines: list[str] = []
    start = depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token[0] in ("[", "{")) - (token[0] in ("]", "}"))
        if token[0] == "\n" and not depth:
            lines.append(text[start : token.end()])
            start = token.end()
    return [*lines, text[start:]] if start < len(text) else lines


def _tables(text: str) -> list[list[str]]:
    """Return the lines of a text, split before each header."""
    tables: list[list[str]] = [[]]
    for line in _lines(text):
        if line.lstrip(" \t").startswith("["):
            tables.append([])
        tables[-1].append(line)
    return tables


def _after_last_server(text: str, block: str) -> str:
    """Return the text with a blank line and a block after the last existing server."""
    tables = _tables(text)
    indexes = [index for index, table in enumerate(tables) if table and _ANY.match(table[0])]
    if not indexes or indexes[-1] == len(tables) - 1:
        return _at_end(text, block)
    table = tables[indexes[-1]]
    table.insert(_length(table), _newline(text) + block)
    return "".join(line for each in tables for line in each)


def _at_end(text: str, block: str) -> str:
    """Return the text with a blank line and a block at its end."""
    line = _newline(text)
    return text + ("" if text.endswith("\n") or not text else line) + (line if text else "") + block


def _spliced(text: str, block: str) -> str:
    """Return the text with a block, or "", in the place of Esker's table; with "" the blank line before goes, too."""
    kept: list[str] = []
    for table in _tables(text):
        if not (table and _OURS.match(table[0])):
            kept += table
            continue
        if block:
            kept.append(block)
        elif kept and not kept[-1].strip():
            kept.pop()
        # Comments before the next table belong to that.
        kept += table[_length(table) :]
        block = ""
    return "".join(kept)


def _length(table: list[str]) -> int:
    """Return the number of lines of a table up to the last that is neither blank nor a comment."""
    return 1 + max(index for index, line in enumerate(table) if line.strip() and not line.lstrip().startswith("#"))


def _newline(text: str) -> str:
    """Return the line end of a text: CRLF if all lines have it, else LF."""
    return "\r\n" if "\r\n" in text and text.count("\n") == text.count("\r\n") else "\n"


# By tomlkit ----------------------------------------------------------------------------------------------------------


def _set(text: str, server: dict[str, Any]) -> str:
    document: Any = tomlkit.parse(text)
    table: Any = tomlkit.inline_table()
    table.update(server)
    document[_SERVERS][SERVER] = table
    return tomlkit.dumps(document)


def _deleted(text: str, drop: bool) -> str:
    document: Any = tomlkit.parse(text)
    del document[_SERVERS][SERVER]
    if drop:
        del document[_SERVERS]
    return tomlkit.dumps(document)
