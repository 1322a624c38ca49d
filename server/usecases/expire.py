"""Upkeep of expired rows: `valid_until` hides them at once; marking them removes them from the indexes of packs."""

from datetime import datetime
from functools import partial

from esker.server.store import memories
from esker.server.usecases.in_each_pool import in_each_pool
from esker.server.usecases.parts import Parts

# Rows marked in one transaction, few enough that a request waiting for one of them does not notice.
_BATCH = 500


async def mark_expired(parts: Parts) -> int:
    """Mark the expired rows of all pools, so that packs do not walk past them; return how many."""
    now = parts.clock()
    pools = await memories.pools_with_expired(parts.database, now)
    return sum(await in_each_pool("marking expired memories", pools, partial(_mark_expired, parts, now)))


async def _mark_expired(parts: Parts, now: datetime, pool_id: str) -> int:
    marked, batch = 0, _BATCH
    while batch == _BATCH:
        async with parts.database.tenant(pool_id) as connection:
            batch = await memories.mark_expired(connection, now, _BATCH)
        marked += batch
    return marked
