"""The changes of a reflection as a person reads them: what has new words first, marked word by word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from esker.server.usecases.reflections import Changed

Mark = Literal["same", "del", "ins"]

# A word with the gap before it: gaps are alike in all texts.
_WORD = re.compile(r"\s*\S+|\s+")
_MOST_WORDS = 300
"""The most words of a text that is compared word by word; the time grows with their square."""
_LEAST_ALIKE = 0.5
"""The least share of equal words; below it, two texts are easier to read one after the other."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a row's words: in both texts, only in the old one, or only in the new one."""

    mark: Mark
    text: str


@dataclass(frozen=True, slots=True)
class ShownChanges:
    """The changes of a reflection: those to read, and those that have kept every word."""

    changed: list[Changed]
    unchanged: list[Changed]


def shown_changes(changes: Sequence[Changed]) -> ShownChanges:
    """Part the changes into those with other words, or without a successor, and those with the same words."""
    shown = ShownChanges([], [])
    for change in changes:
        (shown.unchanged if _has_same_words(change) else shown.changed).append(change)
    return shown


def _has_same_words(change: Changed) -> bool:
    if change.change == "kept":
        return True
    new = [change.after.content] if change.after else []
    return change.change == "became" and [row.content for row in change.before] == new


def word_changes(before: str, after: str) -> list[Piece] | None:
    """Return both texts as one, with the words that went and came; None if they have too little in common."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    if max(len(old), len(new)) > _MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return None
    return [piece for code in matcher.get_opcodes() for piece in _pieces(old, new, code)]


def _pieces(old: Sequence[str], new: Sequence[str], code: tuple[str, int, int, int, int]) -> Iterator[Piece]:
    kind, from_old, to_old, from_new, to_new = code
    if kind == "equal":
        yield Piece("same", "".join(old[from_old:to_old]))
        return
    if to_old > from_old:
        yield Piece("del", "".join(old[from_old:to_old]))
    if to_new > from_new:
        yield Piece("ins", "".join(new[from_new:to_new]))
