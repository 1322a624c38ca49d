"""Words that are looked for in texts, whatever their case, spacing and quotation marks."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from esker.server.core.json_input import Json
from esker.server.core.text.folding import folded_form, normal_form, occurs

_SHORT = 5
"""A phrase of fewer characters is found only as whole words: `Ann` is not in `channel`, `Xanadu` is in `Xanadus`."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases in their folded form, and the patterns with which SQL finds the texts that may contain one."""

    folded: tuple[str, ...]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, phrases: Iterable[str]) -> "Phrases":
        """Return phrases folded for the search; blank ones are left out."""
        said = tuple(dict.fromkeys(phrase.strip() for phrase in phrases if _folded(phrase)))
        return cls(
            tuple(dict.fromkeys(map(_folded, said))),
            tuple(dict.fromkeys(pattern for phrase in said for pattern in _patterns(phrase))),
        )

    def __bool__(self) -> bool:
        """Whether there is any phrase."""
        return bool(self.folded)

    def found_in(self, text: str) -> bool:
        """Whether a text contains one of the phrases."""
        folded = _folded(text)
        return any(occurs(phrase, folded) if len(phrase) < _SHORT else phrase in folded for phrase in self.folded)

    def found_in_json(self, value: Json) -> bool:
        """Whether a text or a key in a JSON value contains one of the phrases."""
        return any(map(self.found_in, texts_in(value)))


def texts_in(value: Json) -> Iterator[str]:
    """Yield the texts and keys in a JSON value."""
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from texts_in(item)
        case dict():
            for key, item in value.items():
                yield key
                yield from texts_in(item)
        case _:
            pass


def _folded(text: str) -> str:
    return folded_form(normal_form(text))


def _patterns(phrase: str) -> set[str]:
    """Return patterns for ILIKE of the longest word of a phrase: as it is, and as JSON writes it."""
    word = max(phrase.split(), key=len)
    return {f"%{_escaped(form)}%" for form in (word, json.dumps(word, ensure_ascii=False)[1:-1])}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
