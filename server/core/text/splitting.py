"""Splits a long text into parts that fit into an embedding model, which would truncate a longer text.

Parts end at the end of a paragraph, a line, a sentence or, if need be, a word. Each begins with the end of the one
before, so that text at a border is read together with its surroundings.
"""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

TokenCounter = Callable[[Sequence[str]], list[int]]
"""Returns the number of tokens of each text."""

# From the coarsest to the finest; each matches the end of a unit, which keeps its separator.
_BORDERS = (
    re.compile(r"\n+"),
    re.compile(r"[.!?;:]['\")\]]*\s+|[。！？；]['\"」』）]*\s*"),
    re.compile(r"\s+|[，、,]"),
)
_OVERLAP = 8
"""A part shares at most one in this many of its tokens with the one before."""


def split_text(text: str, most: int, count: TokenCounter) -> list[str]:
    """Return the parts of a text in order, each of at most `most` tokens; a text that fits is its only part.

    A single character is never divided, however many tokens it has.
    """
    # No tokenizer makes more tokens than there are bytes.
    if len(text.encode(errors="surrogatepass")) <= most or count([text])[0] <= most:
        return [text]
    units = _units(text, most, count)
    costs = count(units)
    parts: list[str] = []
    start = end = 0
    while end < len(units):
        start = _overlapping(costs, start, end, most)
        last, end = end, _filled(units, costs, start, end, most, count)
        if end == last:  # not even one more unit fits beside the overlap
            start, end = last, _filled(units, costs, last, last + 1, most, count)
        parts.append("".join(units[start:end]))
    return [part for part in parts if part.strip()] or [text]


def _filled(units: list[str], costs: list[int], start: int, end: int, most: int, count: TokenCounter) -> int:
    """Return the end of the longest part from `start` that is extended beyond `end`; `end` if no unit more fits."""
    low, spent = end, sum(costs[start:end])
    while end < len(units) and (spent := spent + costs[end]) <= most:
        end += 1
    # Joined units can have more tokens than their sum, so the joined text is counted.
    while end > low and count(["".join(units[start:end])])[0] > most:
        end -= 1
    return end


def _overlapping(costs: list[int], start: int, end: int, most: int) -> int:
    """Return where the part that follows units `start` to `end` begins."""
    begin, shared = end, 0
    while begin - 1 > start and (shared := shared + costs[begin - 1]) <= most // _OVERLAP:
        begin -= 1
    return begin


def _units(text: str, most: int, count: TokenCounter) -> list[str]:
    """Cut a text at the coarsest borders that give pieces of at most `most` tokens; never lose a character."""
    pieces = [text]
    for border in _BORDERS:
        cut = [_cut(piece, border) if tokens > most else [piece] for piece, tokens in _counted(pieces, count)]
        pieces = [unit for units in cut for unit in units]
    while True:
        counted = _counted(pieces, count)
        if all(tokens <= most or len(piece) == 1 for piece, tokens in counted):
            return pieces
        halves = [_halves(piece) if tokens > most else [piece] for piece, tokens in counted]
        pieces = [unit for units in halves for unit in units]


def _counted(pieces: list[str], count: TokenCounter) -> list[tuple[str, int]]:
    return list(zip(pieces, count(pieces), strict=True))


def _cut(text: str, border: re.Pattern[str]) -> list[str]:
    ends = [0, *(match.end() for match in border.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(ends) if start < end]


def _halves(text: str) -> list[str]:
    middle = len(text) // 2
    return [half for half in (text[:middle], text[middle:]) if half]
