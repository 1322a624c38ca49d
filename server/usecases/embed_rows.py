"""Embed rows together; a row that makes the embedder fail is separated from the others."""

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from esker.server.core.arrays import Vectors
from esker.server.core.errors import EmbedderDown, TextRefused
from esker.server.core.redaction import error_text
from esker.server.core.text.labels import without_label
from esker.server.providers.roles import Embedder
from esker.server.store.vectors import ClaimedRow

BATCH = 64
"""Maximum texts in a call."""
_PIECES = 4
"""Pieces of a failed batch. Quarters isolate one row with as many calls as halves do, in half as many rounds."""
_HARMLESS = "esker"
"""A text that every model can embed."""


@dataclass(frozen=True, slots=True)
class EmbeddedRows:
    """Embedded rows with the vectors of the parts of each, or a refused row with the reason."""

    rows: list[ClaimedRow] = field(default_factory=list[ClaimedRow])
    vectors: list[Vectors] = field(default_factory=list[Vectors])
    refused: list[tuple[ClaimedRow, str]] = field(default_factory=list[tuple[ClaimedRow, str]])


async def embed_rows(embedder: Embedder, rows: list[ClaimedRow]) -> AsyncGenerator[EmbeddedRows]:
    """Yield the vectors of rows in portions that the embedder takes at once or, if that fails, of pieces of these.

    Raises EmbedderDown if the embedder answers no other text either.
    """
    pieces = deque([rows])
    is_in_doubt = True
    while pieces:
        piece, rest = _portion(pieces.popleft(), embedder.portion)
        if rest:
            pieces.appendleft(rest)
        try:
            made = await _embed_together(embedder, piece)
        except TextRefused as error:
            made, is_in_doubt = _refused(piece, error), False
        except EmbedderDown as error:
            # Before a row is blamed, and after two failures in a row, check that the embedder answers at all.
            if is_in_doubt or len(piece) == 1:
                await require_answer(embedder)
                is_in_doubt = False
            else:
                is_in_doubt = True
            made = _refused(piece, error)
        else:
            is_in_doubt = False
        if made:
            yield made
        else:
            pieces.extend(_split(piece))


async def require_answer(embedder: Embedder) -> None:
    """Return if the embedder answers at all. Raises EmbedderDown."""
    try:
        await embedder.embed([_HARMLESS])
    except TextRefused:
        return


async def _embed_together(embedder: Embedder, rows: list[ClaimedRow]) -> EmbeddedRows:
    split = await embedder.split([without_label(row.content) for row in rows])
    texts = [text for row_parts in split for text in row_parts]
    embedded = await in_batches(embedder.embed, texts)
    ends = list(accumulate(map(len, split)))
    return EmbeddedRows(rows, np.split(embedded, ends[:-1]))


async def in_batches(embed: Callable[[Sequence[str]], Awaitable[Vectors]], texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts, in as many calls of `embed` as they need."""
    return np.concatenate([await embed(texts[first : first + BATCH]) for first in range(0, len(texts), BATCH)])


def _portion(rows: list[ClaimedRow], characters: int) -> tuple[list[ClaimedRow], list[ClaimedRow]]:
    """Return the first rows, of at most this many characters or a single one, and the others."""
    ends = accumulate(len(row.content) for row in rows)
    count = max(1, sum(end <= characters for end in ends))
    return rows[:count], rows[count:]


def _refused(rows: list[ClaimedRow], error: Exception) -> EmbeddedRows | None:
    """Return a single row as refused; None for several, of which only some may be bad."""
    return EmbeddedRows(refused=[(rows[0], error_text(error))]) if len(rows) == 1 else None


def _split(rows: list[ClaimedRow]) -> list[list[ClaimedRow]]:
    size = -(-len(rows) // _PIECES)
    return [rows[first : first + size] for first in range(0, len(rows), size)]
