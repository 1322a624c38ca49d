"""The contents of a pool, and how much of it cannot be found by meaning yet."""

from esker.server.core.reports import PoolStatus
from esker.server.store import inspection
from esker.server.store.inspection import PoolCounts
from esker.server.usecases.parts import Parts
from esker.server.usecases.query_embedding import active_space


async def pool_status(parts: Parts, pool_id: str, pool_name: str) -> PoolStatus:
    """Return the counts and the models of a pool."""
    async with parts.database.tenant(pool_id) as connection:
        counts: PoolCounts = await inspection.pool_counts(connection)
        space, pending = await active_space(connection, parts)
    rate = parts.worker.rate(pool_id, parts.clock()) if parts.worker else None
    return PoolStatus(
        pool=pool_name,
        memories=counts.memories,
        superseded=counts.superseded,
        passages=counts.passages,
        sessions=counts.sessions,
        messages=counts.messages,
        unobserved_tokens=counts.unobserved_tokens,
        pending=pending,
        jobs=counts.jobs,
        failed_jobs=counts.failed_jobs,
        last_message_at=counts.last_message_at,
        last_memory_at=counts.last_memory_at,
        model=space.model if space else None,
        embedder=parts.embedders.state if parts.embedders else "none",
        observer=parts.observer.name if parts.observer else "off",
        reflector=parts.reflector.name if parts.reflector else "off",
        worker=str(parts.worker) if parts.worker else "none",
        vectors_per_minute=60 * rate if rate else None,
        seconds_left=pending / rate if rate else None,
    )
