"""Index vectors: large tiers get an index, small ones have none, and every day each is compared with the exact search.

docs/decisions/approximate-search.md says why, and has the figures behind these numbers.
"""

import logging
from datetime import datetime, timedelta
from statistics import fmean

from esker.server.core.errors import EskerError
from esker.server.core.pool.index_agreement import LEAST, NEAREST, agreement
from esker.server.core.recall.selection import TextHit
from esker.server.core.records import Filter
from esker.server.db.database import Connection
from esker.server.store import search, vector_indexes
from esker.server.store.vector_indexes import TierOfSpace
from esker.server.usecases.find_candidates import MOST
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

LARGE = 10_000
"""So many vectors have an index: docs/decisions/approximate-search.md has the figures."""
SMALL = LARGE // 2
"""A tier that has shrunk so far loses its index, and one about as large as LARGE does not gain and lose it by turns."""
_DAY = timedelta(days=1)
_QUESTIONS = 20


async def index_large_tiers(parts: Parts) -> None:
    """Make the indexes that are wanted, in all pools and spaces, and drop those that are not."""
    for tier in await vector_indexes.tiers_to_change(parts.database, LARGE, SMALL):
        try:
            await _change(parts, tier)
        except EskerError as error:
            # Until then the search is exact. A writer may have been in the way; the next round tries again.
            log.warning("pool %s: the index of its %s vectors has to wait: %s", tier.pool_id, tier.tier, error)


async def _change(parts: Parts, tier: TierOfSpace) -> None:
    async with parts.database.tenant(tier.pool_id) as connection:
        if tier.indexed:
            await vector_indexes.drop(connection, tier.space, tier.tier)
            log.info("pool %s: so few %s vectors need no index any more", tier.pool_id, tier.tier)
            return
        if not await vector_indexes.has_vectors(connection, tier.space, tier.tier, LARGE):
            return
        began = parts.clock()
        if await vector_indexes.create(connection, tier.space, tier.tier):
            seconds = (parts.clock() - began).total_seconds()
            log.info("pool %s: its %s vectors have an index, made in %.0f s", tier.pool_id, tier.tier, seconds)


async def probe_indexes(parts: Parts) -> None:
    """Compare each index with the exact search that has not been compared for a day, and keep how well they agree."""
    now = parts.clock()
    for tier in await vector_indexes.tiers_to_probe(parts.database, now - _DAY):
        async with parts.database.tenant(tier.pool_id) as connection:
            questions, agreed = await compare_index(connection, tier, f"{now:%Y-%m-%d}", now)
            if not questions:
                continue
            await vector_indexes.record_probe(connection, tier.space, tier.tier, now, questions, agreed)
        level = logging.WARNING if agreed < LEAST else logging.INFO
        log.log(level, "pool %s: the index of its %s vectors finds %.1f %%", tier.pool_id, tier.tier, agreed * 100)


async def compare_index(connection: Connection, tier: TierOfSpace, seed: str, now: datetime) -> tuple[int, float]:
    """Ask an index with some of its own vectors, the same ones for the same seed.

    Return with how many, and which share of the nearest it has found.
    """
    asked = await vector_indexes.some_vectors(connection, tier.space, tier.tier, seed, _QUESTIONS)
    what = Filter(now, with_superseded=True)
    agreed = [await _agreement(connection, tier, number, vector, what) for number, vector in asked]
    return len(asked), fmean(agreed) if agreed else 1.0


async def _agreement(
    connection: Connection, tier: TierOfSpace, number: int, vector: list[float], what: Filter
) -> float:
    """Ask both searches as a recall asks; the text whose vector it is would be found by any index."""
    # The text itself stands among the first, so one more is asked for.
    exact = await search.by_vector(connection, tier.tier, tier.space, vector, what, NEAREST + 1)
    near = await search.by_vector_index(connection, tier.tier, tier.space, tier.pool_id, vector, what, MOST)
    return agreement(_others(exact, number), _others(near, number))


def _others(found: list[TextHit], number: int) -> list[float]:
    return [hit.score for hit in found if hit.number != number]
