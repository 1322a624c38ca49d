"""Find repeats: which of some rows say the same, as recall and the observer understand it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from esker.server.core.facts.duplicates import compared, repeats
from esker.server.core.facts.retelling import RETOLD
from esker.server.core.records import Memory
from esker.server.db.database import Connection
from esker.server.store import search

# So many rows of small groups are compared by meaning in one statement, each with each.
_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Repeats:
    """For each row that is not alone with what it says, the ids of the others that say it.

    `crowded` rows share their words with so many others that they were not compared with each of those.
    """

    said_by: Mapping[str, set[str]]
    crowded: int


async def find_repeats(connection: Connection, space: str | None, rows: Iterable[Memory]) -> Repeats:
    """Return which rows say the same; of too many that are alike, only the first ones are compared.

    Without a `space` only those count that say it in nearly the same words.
    """
    ready = await asyncio.to_thread(compared, rows)
    near: dict[tuple[str, str], float] = {}
    for ids in _batches(ready.by_gist) if space else ():
        near |= await search.near_pairs(connection, space or "", ids, RETOLD)
    return Repeats(await asyncio.to_thread(repeats, ready, near), len(ready.crowded))


def _batches(groups: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the ids of groups together, as many as fit; a group is never divided, and none is very large."""
    held: list[str] = []
    for group in groups:
        if held and len(held) + len(group) > _AT_ONCE:
            yield held
            held = []
        held = [*held, *group]
    if held:
        yield held
