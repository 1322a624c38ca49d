"""A text that is looked through for secrets, with what all that look need of it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from esker.server.core.redaction.patterns import Pattern
from esker.server.core.redaction.spans import MASK

_LONG = 18
_MASK = Pattern(re.escape(MASK) + r"[a-z0-9-]{1,40}+\]")
# Characters of no token; they end a word.
_END_WORDS = b"\"'`<>()[]{},;\\"
_DELIMITERS = bytes.maketrans(_END_WORDS, b" " * len(_END_WORDS))
_SIGNS = _END_WORDS + b".:=!?/|*-_+#@&$~%^"
_PUNCTUATION = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))


class Scan(NamedTuple):
    """A text, its lower-case form, the words of that, and the words of at least 18 characters with their places.

    The lower-case form has blanks for masks: the kind that a mask names, such as `url-password`, announces no secret.
    """

    text: str
    lowered: str
    words: frozenset[str]
    long_words: list[tuple[int, str]]

    def matches(self, pattern: Pattern, words: frozenset[str]) -> Iterator[re.Match[str]]:
        """Yield the matches of a pattern that begin with one of some words in small letters."""
        for word in words & self.words:
            for place in places(self.lowered, word):
                found = pattern.match(self.text, place)
                if found:
                    yield found


def scanned(text: str) -> Scan:
    """Return a text as it is looked through."""
    lowered = _lower(text)
    if MASK in lowered:
        lowered = _MASK.sub(_blank, lowered)
    words = _spaced(lowered, _PUNCTUATION).decode("latin-1").split()
    return Scan(text, lowered, frozenset(words), list(_long_words(text, _spaced(text, _DELIMITERS))))


def _spaced(text: str, delimiters: bytes) -> bytes:
    """Return a byte for each character; translating bytes is many times as fast as translating text."""
    return text.encode("latin-1", "replace").translate(delimiters)


def _long_words(text: str, spaced: bytes) -> Iterator[tuple[int, str]]:
    place = 0
    for word in spaced.split():
        if len(word) >= _LONG:
            place = spaced.find(word, place)
            yield place, text[place : place + len(word)]
            place += len(word)


def places(text: str, literal: str) -> Iterator[int]:
    """Yield the places of a literal text, which do not overlap."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + len(literal))


def _blank(mask: re.Match[str]) -> str:
    return " " * len(mask[0])


def _lower(text: str) -> str:
    """Return a text in small letters, each at the place of its capital."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
