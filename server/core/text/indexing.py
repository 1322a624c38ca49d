"""Computes the tokens and terms of a text before it is stored.

A long text is scored by its best part, as if each part were a text of its own: BM25 penalises long texts, and so would
rank a message of two lines above a page with the same statement in one of its paragraphs.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from esker.server.core.records import NewMemory
from esker.server.core.text.labels import without_label
from esker.server.core.text.languages import ENGLISH, language_of
from esker.server.core.text.terms import MAX_TERM, terms
from esker.server.core.text.tokens import estimate_tokens

PART_CHARACTERS = 500
"""Maximum characters of a part. On long chats, 300 to 800 found about as much; whole messages found 6 points less."""
MOST_PARTS = 32_767
"""Maximum parts of a text, since their column counts no further; the last one has the terms of all that follow."""
_SENTENCE = re.compile(r"[^.!?\n。！？]*[.!?\n。！？]*\s*")

# Encoded data: only the beginning of such a run is indexed, as of any other long word.
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{1000,}")

Terms = Counter[str]
"""The terms of one part, with their frequencies."""


@dataclass(frozen=True)
class IndexedMemory:
    """A row with its tokens and the terms of its parts, which are computed when they are first used."""

    memory: NewMemory

    @cached_property
    def tokens(self) -> int:
        """The tokens of the row."""
        return estimate_tokens(self.memory.content)

    @cached_property
    def parts(self) -> list[Terms]:
        """The terms of each part of the row."""
        return indexed_parts(without_label(self.memory.content))

    @property
    def terms(self) -> Terms:
        """All terms of the row."""
        return sum(self.parts, Counter[str]())


def indexed(rows: Iterable[NewMemory]) -> list[IndexedMemory]:
    """Index rows. Long rows take time, so call this in a thread and before a transaction begins."""
    found = [IndexedMemory(row) for row in rows]
    for row in found:
        _ = row.tokens, row.parts
    return found


def indexed_parts(text: str) -> list[Terms]:
    """Return the terms of each part of a text that has any, stemmed in the language of the whole text."""
    language = language_of(text) or ENGLISH
    found = [Counter(terms(part, language)) for part in text_parts(_ENCODED.sub(_beginning, text))]
    kept = [part for part in found if part]
    for part in kept[MOST_PARTS:]:
        kept[MOST_PARTS - 1].update(part)
    return kept[:MOST_PARTS]


def _beginning(encoded: re.Match[str]) -> str:
    return encoded[0][:MAX_TERM]


def text_parts(text: str) -> Iterator[str]:
    """Yield the parts of a text, which end at the end of a sentence if possible."""
    if 0 < len(text) <= PART_CHARACTERS:
        yield text
        return
    start = end = 0
    for sentence in _SENTENCE.finditer(text):
        if start < end and sentence.end() - start > PART_CHARACTERS:
            yield text[start:end]
            start = end
        end = sentence.end()
        while end - start > PART_CHARACTERS:
            cut = _place_to_cut(text, start)
            yield text[start:cut]
            start = cut
    if start < end:
        yield text[start:end]


def _place_to_cut(text: str, start: int) -> int:
    """Return where to cut a sentence that is too long: between two words if possible."""
    most = start + PART_CHARACTERS
    space = text.rfind(" ", start + 1, most)
    return most if space < 0 else space


def part_values(parts: Iterable[Terms]) -> list[dict[str, object]]:
    """Return the parts of a text as parameters of the SQL statements that write them."""
    return [{"length": part.total(), "terms": part} for part in parts]
