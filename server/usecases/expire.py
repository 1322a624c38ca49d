"""Upkeep of what expires: a row whose time is over is hidden by its `valid_until`; here it is taken out of the way."""

from esker.server.store import memories
from esker.server.usecases.parts import Parts

# A batch is over well before anybody who wants one of its rows would notice.
_BATCH = 500


async def mark_expired(parts: Parts) -> int:
    """Take the rows that have expired, of all pools, out of what packs walk; return how many."""
    now, marked = parts.clock(), 0
    for pool_id in await memories.pools_with_expired(parts.database, now):
        batch = _BATCH
        while batch == _BATCH:
            async with parts.database.tenant(pool_id) as connection:
                batch = await memories.mark_expired(connection, now, _BATCH)
            marked += batch
    return marked
