"""Vector search in one tier, by the method that suits its size and the filter."""

from collections.abc import Sequence

from esker.server.core.arrays import Vector
from esker.server.core.recall.candidates import TextHit
from esker.server.core.records import Filter, Tier
from esker.server.db.database import Connection
from esker.server.store import search
from esker.server.store.search import Size
from esker.server.store.vectors import PoolSpace


async def find_nearest(
    connection: Connection,
    tier: Tier,
    space: PoolSpace,
    vector: Vector,
    row_filter: Filter,
    size: Size,
    limit: int,
) -> list[TextHit]:
    """Return the visible texts nearest to a vector, each by its nearest part, best first.

    `limit` counts parts. If the index search returns fewer, the filter leaves few or the index missed some, so the
    search is repeated exactly.
    """
    way = search.search_way(size, indexed=tier in space.indexed)
    if way == "filtered":
        found = await search.by_vector_filtered(connection, tier, space.name, vector, row_filter, limit)
    elif way == "exact":
        found = await search.by_vector(connection, tier, space.name, vector, row_filter, limit)
    else:
        found = await search.by_vector_index(connection, tier, space.name, space.pool_id, vector, row_filter, limit)
        if len(found) < limit:
            found = await search.by_vector_filtered(connection, tier, space.name, vector, row_filter, limit)
    return _each_once(found)


def _each_once(found: Sequence[TextHit]) -> list[TextHit]:
    nearest = {hit.number: hit for hit in reversed(found)}
    return sorted(nearest.values(), key=lambda hit: (-hit.score, -hit.number))
