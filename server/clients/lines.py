"""The JSON lines of a file, numbered; what is none is counted and never stops the reading."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from server.core.errors import InvalidInput
from server.core.json_input import Json, parse_json

Line = dict[str, Json]
Opener = Callable[[Path], BinaryIO]
"""How a file is opened; `server.clients.compressed` has the one for files that may be compressed."""

_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class LeftOut:
    """What reading left out: how much for which reason, and the numbers of the lines that are broken."""

    skipped: Counter[str] = field(default_factory=Counter[str])
    broken: list[int] = field(default_factory=list[int])


def opened_plain(path: Path) -> BinaryIO:
    """Open a file that is not compressed. Raises OSError."""
    return path.open("rb")


def json_lines(path: Path, left_out: LeftOut, opener: Opener = opened_plain) -> Iterator[tuple[int, Line]]:
    """Yield the objects of a file with the numbers of their lines. Raises OSError when it cannot be opened."""
    with opener(path) as file:
        for number, raw in enumerate(file, start=1):
            line = _parsed(raw.removeprefix(_BOM) if number == 1 else raw, number, left_out)
            if line is not None:
                yield number, line


def _parsed(raw: bytes, number: int, left_out: LeftOut) -> Line | None:
    if not raw.strip():
        return None
    try:
        value = parse_json(raw)
    except InvalidInput:
        left_out.skipped["broken line"] += 1
        left_out.broken.append(number)
        return None
    if isinstance(value, dict):
        return value
    left_out.skipped["not an object"] += 1
    return None


def json_document(path: Path, left_out: LeftOut) -> Json:
    """Return the one JSON value that a file is, or None where it is none, which is counted. Raises OSError."""
    try:
        return parse_json(path.read_bytes().removeprefix(_BOM))
    except InvalidInput:
        left_out.skipped["broken file"] += 1
        return None
