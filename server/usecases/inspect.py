"""Inspect: the questions of `esker doctor` that only the database can answer."""

from datetime import timedelta

from esker.server.core.pool.index_agreement import LEAST
from esker.server.store import inspection, jobs, pools, vector_indexes, vectors
from esker.server.store.inspection import DatabaseFacts, Stuck
from esker.server.store.vector_indexes import Probe
from esker.server.usecases.parts import Parts

# The worker polls every ten seconds.
_PATIENCE = timedelta(minutes=1)
_ALL_WELL = Stuck(jobs=[], failing=[], embeddings=[], overdue=0, paused=[])


async def database_facts(parts: Parts) -> DatabaseFacts:
    """Return what the database is and how well it is guarded."""
    return await inspection.facts(parts.database)


async def stuck(parts: Parts) -> dict[str, Stuck]:
    """Return what does not get on, by the pool's name; pools in which all is well are left out."""
    found: dict[str, Stuck] = {}
    for pool in await pools.listed(parts.database):
        async with parts.database.tenant(pool.id) as connection:
            there = await inspection.stuck(connection, parts.clock(), parts.clock() - _PATIENCE)
        if there != _ALL_WELL:
            found[pool.name] = there
    return found


async def active_spaces(parts: Parts) -> set[str]:
    """Return the spaces that recall uses in any pool."""
    active: set[str] = set()
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            active |= {space.name for space in await vectors.spaces(connection) if space.state == "active"}
    return active


async def weak_indexes(parts: Parts) -> dict[str, list[Probe]]:
    """Return the indexes of vectors that found too little when they were last probed, by the pool's name."""
    found: dict[str, list[Probe]] = {}
    for pool in await pools.listed(parts.database):
        async with parts.database.tenant(pool.id) as connection:
            weak = [probe for probe in await vector_indexes.probes(connection) if probe.agreement < LEAST]
        if weak:
            found[pool.name] = weak
    return found


async def retry(parts: Parts) -> tuple[int, int]:
    """Give jobs and rows that failed for good a new life in all pools; return how many of each."""
    now = parts.clock()
    revived_jobs = revived_rows = 0
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            revived_jobs += await jobs.revive(connection, now)
        # Not in one transaction: who forgets locks places in the queue of vectors before jobs.
        async with parts.database.tenant(pool_id) as connection:
            revived_rows += await vectors.revive(connection, now)
    return revived_jobs, revived_rows
