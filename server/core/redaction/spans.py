"""Places of secrets in a text, and the masks that replace them."""

from collections.abc import Iterable
from typing import NamedTuple

MASK = "[redacted:"
"""The beginning of each mask; the kind of the secret and a bracket follow."""

GENERIC = "secret"
"""The kind of a secret that is known only by the name before it."""

UNKNOWN = "token"
"""The kind of a token of a maker that no list names."""

RANDOM = "random-token"
"""The kind of a random word that nothing announces."""

# Kinds that say little, the least telling first.
_UNSPECIFIC = (RANDOM, UNKNOWN, GENERIC)


class Span(NamedTuple):
    """A secret in a text: its first character, the one after its last, and its kind."""

    start: int
    end: int
    kind: str = GENERIC


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans in order, with those that overlap joined under the most specific kind."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            last = joined[-1]
            kind = max(last.kind, span.kind, key=_specificity)
            joined[-1] = Span(last.start, max(last.end, span.end), kind)
        elif span.start < span.end:
            joined.append(span)
    return joined


def _specificity(kind: str) -> int:
    return _UNSPECIFIC.index(kind) if kind in _UNSPECIFIC else len(_UNSPECIFIC)


def masked(text: str, spans: Iterable[Span]) -> str:
    """Return a text with each of some ordered spans replaced by its mask."""
    parts: list[str] = []
    place = 0
    for start, end, kind in spans:
        parts += (text[place:start], MASK, kind, "]")
        place = end
    return "".join((*parts, text[place:]))


def masks_of(spans: Iterable[Span]) -> list[Span]:
    """Return the places of the masks of some ordered spans, in the text that was masked."""
    masks: list[Span] = []
    moved = 0
    for start, end, kind in spans:
        length = len(MASK) + len(kind) + 1
        masks.append(Span(start + moved, start + moved + length, kind))
        moved += length - (end - start)
    return masks
