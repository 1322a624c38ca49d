"""Find repeats: which of some rows say the same, as recall and the observer understand it."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence

from server.core.duplicates import compared, repeats, retold_groups
from server.core.records import Memory
from server.core.retelling import RETOLD
from server.db.database import Connection
from server.store import search

# So many rows are compared by meaning in one statement, each with each.
_AT_ONCE = 200


async def find_repeats(connection: Connection, space: str | None, rows: Iterable[Memory]) -> dict[str, set[str]]:
    """Return, for each row that is not alone with what it says, the ids of the others that say it.

    Without a `space` only those count that say it in nearly the same words.
    """
    ready = await asyncio.to_thread(compared, rows)
    near: dict[tuple[str, str], float] = {}
    for ids in _batches(retold_groups(ready)) if space else ():
        near |= await search.near_pairs(connection, space or "", ids, RETOLD)
    return await asyncio.to_thread(repeats, ready, near)


def _batches(groups: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    """Yield the ids of groups together, as many as fit; a group is never divided."""
    held: list[str] = []
    for group in groups:
        if held and len(held) + len(group) > _AT_ONCE:
            yield held
            held = []
        held = [*held, *group]
    if held:
        yield held
