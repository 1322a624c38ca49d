"""Find rows that state the same fact, by the rules of recall and the observer."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from esker.server.core.facts.duplicate_pairs import compared, repeats
from esker.server.core.facts.retelling import RETOLD
from esker.server.core.records import Memory
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import search

# Rows whose vectors are compared pairwise in one statement.
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Repeats:
    """`said_by`: id of a row → ids of the other rows that state the same.

    `crowded` rows share words with so many others that they were not compared with all of them.
    """

    said_by: Mapping[str, set[str]]
    crowded: int


async def find_repeats(connection: Connection, space: str | None, rows: Iterable[Memory]) -> Repeats:
    """Return which rows state the same; of too many similar ones, only the first are compared.

    Without a `space`, only rows with nearly the same words count.
    """
    ready = await asyncio.to_thread(compared, rows)
    near: dict[tuple[str, str], float] = {}
    for ids in _batches(ready.by_gist) if space else ():
        near |= await fetch(connection, search.near_pairs(space or "", ids, RETOLD))
    return Repeats(await asyncio.to_thread(repeats, ready, near), len(ready.crowded))


def _batches(groups: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the ids of as many groups as fit. A group is never divided, and none is very large."""
    batch: list[str] = []
    for group in groups:
        if batch and len(batch) + len(group) > _AT_ONCE:
            yield batch
            batch = []
        batch = [*batch, *group]
    if batch:
        yield batch
