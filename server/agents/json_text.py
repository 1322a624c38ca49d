"""Edits of hand-written JSON as text: comments, order, indentation and trailing commas are preserved.

A document is parsed into nodes that know their span. An edit takes a text and a path (keys of objects, indexes of
arrays) and returns the text with one span changed.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NoReturn

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json

Path = Sequence[str | int]

_DEEPEST = 200
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)+", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])")
_SPACE = " \t\r\n"
_LINE_END = re.compile(r"[ \t]*\r?\n")
_CLOSING = {"{": "}", "[": "]"}


class NotJson(InvalidInput):
    """The text is not JSON, not even with comments and trailing commas."""

    def __init__(self, what: str, text: str, offset: int) -> None:
        line = text.count("\n", 0, offset) + 1
        super().__init__(f"line {line}, column {offset - text.rfind(chr(10), 0, offset)}: {what}")


class WrongShape(InvalidInput):
    """The value at a path is not the object or array that was expected."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its span; for an object or an array also its members."""

    start: int
    end: int
    scalar: Json = None
    opening: str = ""
    entries: list["JsonMember"] = field(default_factory=list["JsonMember"])


@dataclass(slots=True)
class JsonMember:
    """A member of an object, or an element of an array (without a key): its start, and the offset of its comma."""

    start: int
    key: str | None
    node: Node
    comma: int | None = None


# Reading -----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)  # one edit parses the same text several times
def parse(text: str) -> Node:
    """Return the root node of a document; do not change it. Raises NotJson with line and column."""
    offset = _skip(text, 0)
    node = _value(text, offset, 0)
    rest = _skip(text, node.end)
    if rest < len(text):
        raise NotJson("text follows the end of the document", text, rest)
    return node


def value_of(node: Node) -> Json:
    """Return the value of a node; of two members with one key the later counts."""
    if node.opening == "{":
        return {entry.key or "": value_of(entry.node) for entry in node.entries}
    return [value_of(entry.node) for entry in node.entries] if node.opening else node.scalar


def spread(text: str) -> str:
    """Return a document for display: each value on a line of its own, without comments."""
    return _spread(text, parse(text), "") + "\n"


def _spread(text: str, node: Node, indent: str) -> str:
    if not node.entries:
        return node.opening + _CLOSING[node.opening] if node.opening else text[node.start : node.end]
    inner = indent + "  "
    lines = (_key(text, entry) + _spread(text, entry.node, inner) for entry in node.entries)
    between = ",\n" + inner
    return f"{node.opening}\n{inner}{between.join(lines)}\n{indent}{_CLOSING[node.opening]}"


def _key(text: str, entry: JsonMember) -> str:
    found = _STRING.match(text, entry.start) if entry.key is not None else None
    return f"{found.group()}: " if found else ""


def find(node: Node, path: Path) -> Node | None:
    """Return the node at a path, or None."""
    for step in path:
        entry = _entry(node, step)
        if entry is None:
            return None
        node = entry.node
    return node


def _entry(node: Node, step: str | int) -> JsonMember | None:
    if isinstance(step, int):
        return node.entries[step] if node.opening == "[" and step < len(node.entries) else None
    return next((entry for entry in reversed(node.entries) if entry.key == step), None)


def _skip(text: str, offset: int) -> int:
    found = _GAP.match(text, offset)
    offset = found.end() if found else offset
    if text.startswith("/*", offset):
        raise NotJson("a comment is not closed", text, offset)
    return offset


def _value(text: str, offset: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise NotJson(f"it is nested more than {_DEEPEST} levels deep", text, offset)
    if text[offset : offset + 1] in _CLOSING:
        return _container(text, offset, depth)
    found = _STRING.match(text, offset) or _SCALAR.match(text, offset)
    if not found:
        _refuse("a value", text, offset)
    try:
        return Node(offset, found.end(), json.loads(found.group()))
    except ValueError:  # Python refuses numbers of more than a few thousand digits
        _refuse("a number that can be read", text, offset)


def _container(text: str, start: int, depth: int) -> Node:
    opening = text[start]
    entries: list[JsonMember] = []
    offset = _skip(text, start + 1)
    while text[offset : offset + 1] != _CLOSING[opening]:
        if entries and entries[-1].comma is None:
            _refuse(f"a comma or {_CLOSING[opening]}", text, offset)
        entry = (
            _member(text, offset, depth)
            if opening == "{"
            else JsonMember(offset, None, _value(text, offset, depth + 1))
        )
        entries.append(entry)
        offset = _skip(text, entry.node.end)
        if text.startswith(",", offset):
            entry.comma = offset
            offset = _skip(text, offset + 1)
    return Node(start, offset + 1, None, opening, entries)


def _member(text: str, start: int, depth: int) -> JsonMember:
    key = _STRING.match(text, start)
    if not key:
        _refuse('a key in "quotes" or }', text, start)
    colon = _skip(text, key.end())
    if not text.startswith(":", colon):
        _refuse("a colon", text, colon)
    return JsonMember(start, json.loads(key.group()), _value(text, _skip(text, colon + 1), depth + 1))


def _refuse(wanted: str, text: str, offset: int) -> NoReturn:
    found = "the end of the file" if offset >= len(text) else repr(text[offset])
    raise NotJson(f"expected {wanted}, found {found}", text, offset)


# Writing -----------------------------------------------------------------------------------------------------------


def put(text: str, path: Path, value: Json) -> str:
    """Return the text with `value` at a path of keys; missing (or null) objects on the way are created.

    An empty text becomes a document. Raises NotJson, and WrongShape if a value on the way is not an object.
    """
    if not text.strip():
        return json.dumps(_nested(path, value), ensure_ascii=False, indent=2) + "\n"
    node = parse(text)
    for index, step in enumerate(path):
        if node.opening != "{" and node.scalar is None and not node.opening:
            return _replaced(text, node, _nested(path[index:], value))
        if node.opening != "{":
            raise WrongShape(f"{shown(path[:index])} is not an object")
        entry = _entry(node, step)
        if entry is None:
            return _inserted(text, node, str(step), _nested(path[index + 1 :], value))
        node = entry.node
    return text if value_of(node) == value else _replaced(text, node, value)


def append(text: str, path: Path, value: Json) -> str:
    """Return the text with one more element in the array at a path, which is created if it is missing (or null).

    Raises NotJson, and WrongShape if a value on the way has another type.
    """
    array = find(parse(text), path) if text.strip() else None
    if array is None or (not array.opening and array.scalar is None):
        return put(text, path, [value])
    if array.opening != "[":
        raise WrongShape(f"{shown(path)} is not a list")
    return _inserted(text, array, None, value)


def replace(text: str, path: Path, value: Json) -> str:
    """Return the text with another value at a path that exists."""
    node = find(parse(text), path)
    assert node is not None
    return _replaced(text, node, value)


def remove(text: str, path: Path) -> str:
    """Return the text without the member or element at a path that exists; comments beside it stay."""
    parent = find(parse(text), path[:-1])
    assert parent is not None
    entry = _entry(parent, path[-1])
    assert entry is not None
    index = parent.entries.index(entry)
    begin = (parent.entries[index - 1].comma or 0) + 1 if index else parent.start + 1
    lead = text[begin : entry.start]
    rest = text[entry.node.end : parent.end - 1]
    if entry.comma is not None:
        rest = text[entry.node.end : entry.comma] + text[entry.comma + 1 : parent.end - 1]
    if entry is parent.entries[-1]:
        # Remove the comma before the last one, unless the document uses trailing commas.
        begin -= 1 if index and entry.comma is None else 0
    elif not lead:
        rest = rest.lstrip(" ")
    kept = _joined(lead, rest)
    return text[:begin] + (kept if kept.strip(_SPACE) or len(parent.entries) > 1 else "") + text[parent.end - 1 :]


def _joined(lead: str, rest: str) -> str:
    """Return the text around a removed value without its line, unless a comment needs the end of the line."""
    kept = lead.rstrip(_SPACE)
    comments = _COMMENT.findall(kept)
    ends_line = bool(comments) and comments[-1].startswith("//") and not _LINE_END.match(rest)
    return (lead if ends_line else kept) + rest


def shown(path: Path) -> str:
    """Return a path for display."""
    return ".".join(map(str, path)) or "the document"


def _nested(path: Path, value: Json) -> Json:
    for step in reversed(path):
        value = {str(step): value}
    return value


def _replaced(text: str, node: Node, value: Json) -> str:
    return text[: node.start] + _written(text, value, _indent(text, node.start)) + text[node.end :]


def _inserted(text: str, node: Node, key: str | None, value: Json) -> str:
    """Return the text with one more entry, the last one, in an object or an array."""
    last = node.entries[-1] if node.entries else None
    closing = node.end - 1
    bare = text[: last.comma + 1 if last.comma is not None else last.node.end] if last else text[: node.start + 1]
    gap = text[len(bare) : closing]
    head = gap.rstrip(_SPACE)
    tail = gap[len(head) :]
    comma = "," if last and last.comma is None else ""
    trailing = "," if last and last.comma is not None else ""
    own_line = _on_own_line(text, last.start) if last else not _flat(text)
    if not own_line and "\n" not in gap:
        space = " " if last and _spaced(text) else ""
        entry = _keyed(text, key, value, _indent(text, node.start))
        return bare + comma + head + space + entry + trailing + tail + text[closing:]
    outer = _indent(text, node.start)
    inner = _indent(text, last.start) if last and _on_own_line(text, last.start) else outer + _unit(text)
    line = _newline(text)
    tail = tail if "\n" in tail or last else line + outer
    return bare + comma + head + line + inner + _keyed(text, key, value, inner) + trailing + tail + text[closing:]


def _keyed(text: str, key: str | None, value: Json, indent: str) -> str:
    if key is None:
        return _written(text, value, indent)
    colon = ": " if _spaced(text) else ":"
    return json.dumps(key, ensure_ascii=False) + colon + _written(text, value, indent)


def _written(text: str, value: Json, indent: str) -> str:
    """Return a value in the style of the document: on one line if the document is, else on many."""
    if _flat(text):
        return json.dumps(value, ensure_ascii=False, separators=(", ", ": ") if _spaced(text) else (",", ":"))
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_newline(text) + indent).join(lines)


def _flat(text: str) -> bool:
    """Return whether the whole document, which is not empty, is on one line."""
    return "\n" not in text.strip() and bool(parse(text).entries)


def _spaced(text: str) -> bool:
    return '":' not in text or '": ' in text


def _newline(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _indent(text: str, offset: int) -> str:
    """Return the indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _on_own_line(text: str, offset: int) -> bool:
    begin = text.rfind("\n", 0, offset) + 1
    return begin > 0 and not text[begin:offset].strip()


def _unit(text: str) -> str:
    """Return the indentation of one level, taken from the document's first member."""
    for entry in parse(text).entries:
        if _on_own_line(text, entry.start) and (indent := _indent(text, entry.start)):
            return indent
    return "  "
