"""Bring forward what was scheduled before the clock of the database was set back: it would wait for the former time.

Leases need no such care: they end with their holder.
"""

import logging
from functools import partial

from esker.server.core.clock import LATEST
from esker.server.core.records import JobKind, Space
from esker.server.store import jobs, vectors
from esker.server.usecases.embed import LONGEST_COOLDOWN, PAUSE
from esker.server.usecases.in_each_pool import in_each_pool
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

_KINDS: tuple[JobKind, ...] = ("observe", "reflect", "reflect_pool")


async def bring_jobs_forward(parts: Parts) -> int:
    """Schedule anew the jobs that were created at a time that has not come yet; return how many."""
    pools = await jobs.pools_with_work(parts.database, _KINDS, LATEST)
    moved = sum(await in_each_pool("scheduling jobs anew", pools, partial(_bring_jobs_forward, parts)))
    if moved:
        log.warning("the clock of the database was set back; %d jobs were scheduled anew", moved)
    return moved


async def _bring_jobs_forward(parts: Parts, pool_id: str) -> int:
    async with parts.database.tenant(pool_id) as connection:
        return await jobs.bring_forward(connection, parts.clock())


async def bring_rows_forward(parts: Parts, space: Space) -> int:
    """Make rows due that would wait for their vectors longer than any cooldown; return how many."""
    pools = await vectors.pools_with_work(parts.database, space.name, LATEST)
    moved = sum(await in_each_pool("queueing rows anew", pools, partial(_bring_rows_forward, parts, space)))
    if moved:
        log.warning("the clock of the database was set back; %d rows were queued anew", moved)
    return moved


async def _bring_rows_forward(parts: Parts, space: Space, pool_id: str) -> int:
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        return await vectors.bring_forward(
            connection, space.name, now, untried=now + PAUSE, tried=now + LONGEST_COOLDOWN
        )
