"""What is computed from a row before it is written: its cost, and the terms that it is found by."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from server.core.labels import without_label
from server.core.records import NewMemory
from server.core.terms import terms
from server.core.tokens import estimate_tokens


@dataclass(frozen=True, slots=True)
class IndexedMemory:
    """A row with its tokens and, with their frequencies, its terms."""

    memory: NewMemory
    tokens: int
    terms: Counter[str]


def indexed(rows: Iterable[NewMemory]) -> list[IndexedMemory]:
    """Index rows. Long rows take a while, so this is done before a transaction begins, in a thread."""
    return [
        IndexedMemory(row, estimate_tokens(row.content), Counter(terms(without_label(row.content)))) for row in rows
    ]
