"""The text behind escapes, colour codes and invisible characters, with the way back to the text as it was written."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from esker.server.core.redaction.patterns import Pattern

_ESCAPE = Pattern(
    r"(?:\x1b|\^\[(?=\[)|\\++(?:u001[bB]|x1[bB]|033|e(?=\[)))(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~])?"
    r"|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    r"\U000e0000-\U000e007f]"
    r"|\\++(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[nrtbf/\"'\n])?+"
    r"|%[2-7][0-9a-fA-F]|%0[aAdD9]"
    r"|&(?:\#[0-9]{1,6}|\#[xX][0-9a-fA-F]{1,5}|[a-z]{2,6});"
)
_CODE_POINT = Pattern(r"u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}")
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f"
)
_SIGN = Pattern(rf"[\\\x1b%&^{_INVISIBLE}]")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " ", "equals": "=", "colon": ":"}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "\n": " "}


# Characters around an escape that a rule about lines reads, and the part of a text that is worth looking at by itself.
_AROUND = 400
_MOST_CHANGED = 0.7


class View(NamedTuple):
    """A text to look for secrets in; `before` and `after` hold the places around each escape that was decoded."""

    text: str
    decoded_before: Sequence[int] = ()
    decoded_after: Sequence[int] = ()
    written_after: Sequence[int] = ()

    def written(self, start: int, end: int) -> tuple[int, int]:
        """Return the start and the end, in the text as it was written, of a span that is not empty."""
        first, last = self._start(start), bisect_left(self.decoded_after, end)
        if last < len(self.decoded_after) and self.decoded_before[last] == end - 1:
            return first, self.written_after[last]
        return first, self._start(end - 1) + 1

    def changed(self) -> list[tuple[int, int]]:
        """Return the parts of `text` that read otherwise than they are written, as lines with some around them."""
        return lines_around(self.text, zip(self.decoded_before, self.decoded_after, strict=True))

    def _start(self, place: int) -> int:
        index = bisect_right(self.decoded_after, place) - 1
        return place if index < 0 else self.written_after[index] + place - self.decoded_after[index]


def lines_around(text: str, places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the lines with some ordered places and those around them; all of a text if they are most of it."""
    parts, size = list[tuple[int, int]](), 0
    for before, after in places:
        if parts and after <= parts[-1][1] - _AROUND:
            continue
        start = text.rfind("\n", 0, max(0, before - _AROUND)) + 1
        end = text.find("\n", min(len(text), after + _AROUND))
        end = len(text) if end < 0 else end + 1
        joined = parts.pop()[0] if parts and start <= parts[-1][1] else start
        parts.append((joined, end))
        size += end - start
        if size > _MOST_CHANGED * len(text):
            return [(0, len(text))]
    return parts


def views(text: str) -> list[View]:
    """Return a text as it is written and, if it has escapes, as it reads without them."""
    plain = View(text)
    if text.isascii() and "\\" not in text and "\x1b" not in text and "%" not in text and "&" not in text:
        return [plain]
    decoded = _decoded(text)
    return [plain, decoded] if decoded.decoded_after else [plain]


def _decoded(text: str) -> View:
    parts: list[str] = []
    decoded_before, decoded_after, written_after = list[int](), list[int](), list[int]()
    place = length = read = 0
    for sign in _SIGN.finditer(text):
        found = _ESCAPE.match(text, sign.start()) if sign.start() >= read else None
        read = found.end() if found else read
        meaning = _meaning(found[0]) if found else None
        if found is None or meaning is None:
            continue
        parts += (text[place : found.start()], meaning)
        length += found.start() - place
        decoded_before.append(length)
        length += len(meaning)
        decoded_after.append(length)
        place = found.end()
        written_after.append(place)
    return View("".join((*parts, text[place:])), decoded_before, decoded_after, written_after)


@lru_cache(maxsize=512)
def _meaning(escape: str) -> str | None:
    """Return the one character, or none, that an escape stands for; None if it stands for itself."""
    match escape[0]:
        case "%":
            return chr(int(escape[1:], 16))
        case "&":
            return _entity(escape[1:-1])
        case "\\":
            return _behind_backslashes(escape.lstrip("\\"))
        case _:
            return ""


def _entity(name: str) -> str | None:
    if name[0] != "#":
        return _ENTITIES.get(name)
    number = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(number) if 31 < number < 0xD800 else None


def _behind_backslashes(rest: str) -> str | None:
    if _CODE_POINT.fullmatch(rest):
        character = chr(int(rest[1:], 16))
        return "" if character == "\x1b" else character
    if len(rest) > 1 or rest == "e":
        return ""
    return _CONTROLS.get(rest, rest) if rest else None
