"""Prove that something was forgotten, by a search of every text; or lift its tombstones, so that it may come back."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from esker.server.core.errors import NotFound
from esker.server.core.facts.forgetting import Proof
from esker.server.core.facts.tombstones import EVERYWHERE, Digests
from esker.server.core.json_input import Json
from esker.server.core.records import Principal
from esker.server.core.text.phrases import texts_in
from esker.server.store import audit, text_columns, tombstones
from esker.server.usecases.parts import Parts

_LONGEST_ROW = 16_000
"""Characters of the longest text that is compared with whole rows."""


@dataclass(frozen=True, slots=True)
class Lifted:
    """How many hashes of a receipt were deleted."""

    id: str
    tombstones: int


async def prove_forgotten(parts: Parts, pool_id: str, receipt_id: str) -> Proof:
    """Search every text of the pool for what a receipt forgot. Raises NotFound."""
    async with parts.database.moment(pool_id) as connection:
        digests = await tombstones.digests(connection)
        sought = await tombstones.of_receipt(connection, receipt_id)
        places = [EVERYWHERE, "", *await tombstones.projects(connection)]
        hashes = await tombstones.all_message_hashes(connection)
    if digests is None or not sought:
        raise _missing(receipt_id)
    left: Counter[str] = Counter()
    searched = 0
    # No connection is held meanwhile, since the search of large texts takes longer than a transaction may.
    for column in text_columns.TEXT_COLUMNS:
        async for rows in text_columns.texts_of(parts.database, pool_id, column):
            values = [value for _, value in rows]
            searched += len(values)
            characters = sum(len(text) for value in values for text in texts_in(value))
            left[column.words] += await parts.processes.run(characters, _count, digests, sought, places, values)
    left[text_columns.MESSAGE_HASHES] = await asyncio.to_thread(_count_messages, digests, sought, hashes)
    return Proof(receipt_id, len(text_columns.TEXT_COLUMNS), searched, dict(+left))


def _count_messages(digests: Digests, sought: Set[bytes], hashes: Iterable[bytes]) -> int:
    return sum(digests.of_message(one) in sought for one in hashes)


def _count(digests: Digests, sought: Set[bytes], places: Sequence[str], values: Iterable[Json]) -> int:
    """Return how many values say one of the words, or are one of the rows, whose hashes are sought."""
    return sum(any(_says(digests, sought, places, text) for text in texts_in(value)) for value in values)


def _says(digests: Digests, sought: Set[bytes], places: Sequence[str], text: str) -> bool:
    if (digests.in_text(text) | digests.in_text(text, "name")) & sought:
        return True
    return len(text) <= _LONGEST_ROW and bool(digests.of_row_in(text, places) & sought)


async def lift_tombstones(parts: Parts, who: Principal, receipt_id: str) -> Lifted:
    """Delete the tombstones of a receipt: what it forgot may come back. Raises NotFound."""
    async with parts.database.tenant(who.pool_id) as connection:
        lifted = await tombstones.lift(connection, receipt_id)
        if not lifted:
            raise _missing(receipt_id)
        await audit.insert(connection, who.actor, "forget.allow", receipt_id, {"tombstones": lifted}, parts.clock())
    return Lifted(receipt_id, lifted)


def _missing(receipt_id: str) -> NotFound:
    return NotFound(f"There is no receipt {receipt_id!r} in this pool, or what it forgot may come back already.")
