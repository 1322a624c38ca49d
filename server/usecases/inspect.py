"""The checks of `esker doctor` that only the database can answer."""

from dataclasses import dataclass
from datetime import timedelta

from esker.server.core.pool.index_agreement import LEAST
from esker.server.store import inspection, jobs, pools, vector_indexes, vectors
from esker.server.store.inspection import DatabaseFacts, Stuck
from esker.server.store.vector_indexes import Probe
from esker.server.usecases.parts import Parts

# Work that has been due for longer is overdue; the worker polls every ten seconds.
_PATIENCE = timedelta(minutes=1)
_NOT_STUCK = Stuck(jobs=[], failing=[], embeddings=[], overdue=0, paused=[])


async def database_facts(parts: Parts) -> DatabaseFacts:
    """Return the version of the database and how well it is secured."""
    return await inspection.facts(parts.database)


async def stuck(parts: Parts) -> dict[str, Stuck]:
    """Return the stuck work, by the pool's name; pools without any are left out."""
    found = {pool.name: await stuck_in(parts, pool.id) for pool in await pools.listed(parts.database)}
    return {name: there for name, there in found.items() if there != _NOT_STUCK}


async def stuck_in(parts: Parts, pool_id: str) -> Stuck:
    """Return the stuck work of one pool."""
    async with parts.database.tenant(pool_id) as connection:
        return await inspection.stuck(connection, parts.clock(), parts.clock() - _PATIENCE)


@dataclass(frozen=True, slots=True)
class SpaceQueue:
    """A space of a pool and its queue: `waiting` texts have no vector in it yet, `refused` ones will have none."""

    model: str
    dimension: int
    state: str
    waiting: int
    refused: int


async def spaces_in(parts: Parts, pool_id: str) -> list[SpaceQueue]:
    """Return the spaces of one pool, oldest first. `reembed.status` counts the texts themselves, which takes longer."""
    async with parts.database.tenant(pool_id) as connection:
        found, queued = await vectors.spaces(connection), await vectors.queued(connection)
    return [SpaceQueue(one.model, one.dimension, one.state, *queued.get(one.name, (0, 0))) for one in found]


async def active_spaces(parts: Parts) -> set[str]:
    """Return the spaces that recall uses in any pool."""
    active: set[str] = set()
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            active |= {space.name for space in await vectors.spaces(connection) if space.state == "active"}
    return active


async def weak_indexes(parts: Parts) -> dict[str, list[Probe]]:
    """Return the vector indexes that found too little when last probed, by the pool's name."""
    found: dict[str, list[Probe]] = {}
    for pool in await pools.listed(parts.database):
        async with parts.database.tenant(pool.id) as connection:
            weak = [probe for probe in await vector_indexes.probes(connection) if probe.agreement < LEAST]
        if weak:
            found[pool.name] = weak
    return found


async def retry(parts: Parts) -> tuple[int, int]:
    """Retry the dead jobs and embeddings of all pools; return how many of each."""
    now = parts.clock()
    revived_jobs = revived_rows = 0
    for pool_id in await pools.ids(parts.database):
        async with parts.database.tenant(pool_id) as connection:
            revived_jobs += await jobs.revive(connection, now)
        # Not in one transaction: forgetting locks embedding attempts before jobs, so this order could deadlock.
        async with parts.database.tenant(pool_id) as connection:
            revived_rows += await vectors.revive(connection, now)
    return revived_jobs, revived_rows
