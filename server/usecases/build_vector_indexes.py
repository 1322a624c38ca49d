"""Vector indexes: large tiers have one, small ones do not, and each is compared with the exact search once a day.

docs/decisions/approximate-search.md explains why and has the measurements behind these numbers.
"""

import logging
from datetime import datetime, timedelta
from statistics import fmean

from esker.server.core.arrays import Vector
from esker.server.core.errors import EskerError
from esker.server.core.pool.index_agreement import LEAST, NEAREST, agreement
from esker.server.core.recall.candidates import TextHit
from esker.server.core.records import Filter
from esker.server.db.database import Connection
from esker.server.store import search, vector_indexes
from esker.server.store.vector_indexes import TierOfSpace
from esker.server.usecases.find_candidates import MOST
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

LARGE = 10_000
"""Vectors from which on a tier gets an index."""
SMALL = LARGE // 2
"""Vectors below which a tier loses its index; well below LARGE, so that a tier near it does not switch to and fro."""
_DAY = timedelta(days=1)
# Vectors of the tier that are searched for in one comparison.
_QUESTIONS = 20


async def index_large_tiers(parts: Parts) -> None:
    """Create missing indexes and drop unneeded ones, in all pools and spaces."""
    for tier in await vector_indexes.tiers_to_change(parts.database, LARGE, SMALL):
        try:
            await _change(parts, tier)
        except EskerError as error:
            # A writer may hold a lock. The search stays exact, and the next round tries again.
            log.warning("pool %s: changing the index of its %s vectors failed: %s", tier.pool_id, tier.tier, error)


async def _change(parts: Parts, tier: TierOfSpace) -> None:
    async with parts.database.tenant(tier.pool_id) as connection:
        if tier.indexed:
            await vector_indexes.drop(connection, tier.space, tier.tier)
            log.info("pool %s: dropped the index of its %s vectors, too few are left", tier.pool_id, tier.tier)
            return
        if not await vector_indexes.has_vectors(connection, tier.space, tier.tier, LARGE):
            return
        began = parts.clock()
        if await vector_indexes.create(connection, tier.space, tier.tier):
            seconds = (parts.clock() - began).total_seconds()
            log.info("pool %s: indexed its %s vectors in %.0f s", tier.pool_id, tier.tier, seconds)


async def probe_indexes(parts: Parts) -> None:
    """Compare each index that was not compared for a day with the exact search, and record how well they agree."""
    now = parts.clock()
    for tier in await vector_indexes.tiers_to_probe(parts.database, now - _DAY):
        async with parts.database.tenant(tier.pool_id) as connection:
            questions, agreed = await compare_index(connection, tier, f"{now:%Y-%m-%d}", now)
            if not questions:
                continue
            await vector_indexes.record_probe(connection, tier.space, tier.tier, now, questions, agreed)
        level = logging.WARNING if agreed < LEAST else logging.INFO
        message = "pool %s: the index of its %s vectors finds %.1f %% of the nearest"
        log.log(level, message, tier.pool_id, tier.tier, agreed * 100)


async def compare_index(connection: Connection, tier: TierOfSpace, seed: str, now: datetime) -> tuple[int, float]:
    """Query an index with a sample of its own vectors, the same sample for the same seed.

    Return the size of the sample, and the share (0 to 1) of the nearest vectors that the index found.
    """
    asked = await vector_indexes.some_vectors(connection, tier.space, tier.tier, seed, _QUESTIONS)
    row_filter = Filter(now, with_superseded=True)
    agreed = [await _agreement(connection, tier, number, vector, row_filter) for number, vector in asked]
    return len(asked), fmean(agreed) if agreed else 1.0


async def _agreement(
    connection: Connection, tier: TierOfSpace, number: int, vector: Vector, row_filter: Filter
) -> float:
    """Query both searches as recall does. The queried text itself is left out, because any index finds it."""
    # One more, because the text itself is among the nearest.
    exact = await search.by_vector(connection, tier.tier, tier.space, vector, row_filter, NEAREST + 1)
    near = await search.by_vector_index(connection, tier.tier, tier.space, tier.pool_id, vector, row_filter, MOST)
    return agreement(_scores_without(exact, number), _scores_without(near, number))


def _scores_without(found: list[TextHit], number: int) -> list[float]:
    return [hit.score for hit in found if hit.number != number]
