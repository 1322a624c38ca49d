"""The numbered JSON lines of a file; invalid lines are counted and never stop the reading."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from esker.server.agents.regular_file import opened_plain
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

JsonLine = dict[str, Json]
Opener = Callable[[Path], BinaryIO]
"""Opens a file; `server/agents/compressed.py` has the one for files that may be compressed."""

LONGEST_LINE = 64 * 1024 * 1024
"""Longest line that is read, in bytes. A message is sent with at most 16 MiB, but its line may have more beside it."""
LARGEST_DOCUMENT = 512 * 1024 * 1024
"""Largest file of one JSON value that is read, in bytes."""
_SKIPPED_AT_ONCE = 1024 * 1024
_MOST_BROKEN = 1_000
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class SkippedLines:
    """The number of skipped lines by reason, and the numbers of broken lines (at most the first 1,000)."""

    skipped: Counter[str] = field(default_factory=Counter[str])
    broken: list[int] = field(default_factory=list[int])


def json_lines(
    path: Path, left_out: SkippedLines, opener: Opener = opened_plain, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, JsonLine]]:
    """Yield the objects of a file with the numbers of their lines. Raises OSError when it cannot be opened.

    A line of more than `longest` bytes is skipped, and never held in memory as a whole.
    """
    with opener(path) as file:
        number = 0
        while raw := file.readline(longest + 1):
            number += 1
            if len(raw) > longest:
                left_out.skipped[f"line longer than {_size(longest)}"] += 1
                _skip_line(file, raw)
                continue
            line = _parsed(raw.removeprefix(_BOM) if number == 1 else raw, number, left_out)
            if line is not None:
                yield number, line


def _skip_line(file: BinaryIO, raw: bytes) -> None:
    while raw and not raw.endswith(b"\n"):
        raw = file.readline(_SKIPPED_AT_ONCE)


def _size(count: int) -> str:
    return f"{count // 1024**2} MiB" if count >= 1024**2 else f"{count:,} bytes"


def _parsed(raw: bytes, number: int, left_out: SkippedLines) -> JsonLine | None:
    if not raw.strip():
        return None
    try:
        value = parse_json(raw)
    except InvalidInput:
        left_out.skipped["broken line"] += 1
        if len(left_out.broken) < _MOST_BROKEN:
            left_out.broken.append(number)
        return None
    if isinstance(value, dict):
        return value
    left_out.skipped["not an object"] += 1
    return None


def json_document(path: Path, left_out: SkippedLines, largest: int = LARGEST_DOCUMENT) -> Json:
    """Return the JSON value of a file, or None if it is broken, which is counted.

    Raises OSError, also for a file of more than `largest` bytes.
    """
    with opened_plain(path) as file:
        raw = file.read(largest + 1)
    if len(raw) > largest:
        raise OSError(0, f"it is a single JSON value larger than {_size(largest)}")
    try:
        return parse_json(raw.removeprefix(_BOM))
    except InvalidInput:
        left_out.skipped["broken file"] += 1
        return None
