"""Where the values of a JSON text are, so that one can be replaced while every other character stays as it was.

A provider's cache compares bytes: a document that is parsed and written again may differ in spaces, escapes and the
form of numbers.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from esker.server.core.json_input import Json

_SPACE = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class Span(NamedTuple):
    """A value of a text, from `start` to before `end`."""

    value: Json
    start: int
    end: int


def members(text: str, start: int = 0) -> dict[str, Span]:
    """Return the members of the object at `start`. Raises ValueError if none is there, or a name occurs twice."""
    place = _after(text, _skip(text, start), "{")
    found: dict[str, Span] = {}
    if text[place : place + 1] == "}":
        return found
    while True:
        name, end = _decode(text, place)
        if not isinstance(name, str) or name in found:
            raise ValueError("A member has no name of its own.")
        value_start = _after(text, _skip(text, end), ":")
        value, value_end = _decode(text, value_start)
        found[name] = Span(value, value_start, value_end)
        place = _skip(text, value_end)
        if text[place : place + 1] == "}":
            return found
        place = _after(text, place, ",")


def items(text: str, start: int) -> list[Span]:
    """Return the items of the array at `start`. Raises ValueError if none is there."""
    place = _after(text, start, "[")
    found: list[Span] = []
    if text[place : place + 1] == "]":
        return found
    while True:
        value, end = _decode(text, place)
        found.append(Span(value, place, end))
        place = _skip(text, end)
        if text[place : place + 1] == "]":
            return found
        place = _after(text, place, ",")


def with_item(text: str, start: int, index: int, item: Json) -> str:
    """Return the text with one more item at `index` of the array at `start`. Raises ValueError."""
    written = json.dumps(item, ensure_ascii=False)
    spans = items(text, start)
    if not spans:
        return f"{text[: start + 1]}{written}{text[start + 1 :]}"
    if index < len(spans):
        place = spans[index].start
        return f"{text[:place]}{written},{text[place:]}"
    place = spans[-1].end
    return f"{text[:place]},{written}{text[place:]}"


def with_items(text: str, start: int, written: Mapping[int, Sequence[str]]) -> str:
    """Return the text with more items, each written as JSON, before those at these places of the array at `start`.

    Items at the number of its items, or beyond, come at its end. Raises ValueError.
    """
    spans = items(text, start)
    pieces: list[str] = []
    done = 0
    for place in sorted(place for place, more in written.items() if more):
        more = ",".join(written[place])
        if place < len(spans):
            pieces += [text[done : spans[place].start], more, ","]
            done = spans[place].start
        else:
            end = spans[-1].end if spans else start + 1
            pieces += [text[done:end], "," if spans else "", more]
            done = end
    return "".join([*pieces, text[done:]])


def without_items(text: str, start: int, first: int, end: int) -> str:
    """Return the text without the items `first` to before `end` of the array at `start`. Raises ValueError."""
    spans = items(text, start)
    if not 0 <= first < end < len(spans):
        raise ValueError("The array has no such items, or none behind them.")
    return f"{text[: spans[first].start]}{text[spans[end].start :]}"


def with_member(text: str, start: int, name: str, value: Json) -> str:
    """Return the text with one more member at the beginning of the object at `start`. Raises ValueError."""
    place = _after(text, _skip(text, start), "{")
    comma = "" if text[place : place + 1] == "}" else ","
    return f"{text[:place]}{json.dumps(name)}:{json.dumps(value, ensure_ascii=False)}{comma}{text[place:]}"


def replaced(text: str, span: Span, written: str) -> str:
    """Return the text with other characters in the place of a value."""
    return f"{text[: span.start]}{written}{text[span.end :]}"


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _after(text: str, place: int, mark: str) -> int:
    """Return where the next value begins after a mark. Raises ValueError if the mark is not there."""
    if text[place : place + 1] != mark:
        raise ValueError(f"Character {place:,} is not {mark}.")
    return _skip(text, place + 1)
