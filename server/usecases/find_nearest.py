"""Find the nearest: the search by meaning in one tier, by the way that suits its size and the filter."""

from collections.abc import Sequence

from esker.server.core.recall.selection import TextHit
from esker.server.core.records import Filter, Tier
from esker.server.db.database import Connection
from esker.server.store import search
from esker.server.store.search import Size
from esker.server.store.vectors import PoolSpace

# So many the search by index looks at before it gives up; to look up as many costs no more.
_PASSED_BY = 2_000


async def find_nearest(
    connection: Connection,
    tier: Tier,
    space: PoolSpace,
    vector: Sequence[float],
    what: Filter,
    size: Size,
    limit: int,
) -> list[TextHit]:
    """Return the texts nearest to a vector that may be seen, each by its nearest part, best first.

    `limit` counts parts, and `size` is among how many texts is searched. A search by index that ends with fewer has met
    a filter that leaves few, or has missed some: then it is made again, exactly.
    """
    is_indexed = tier in space.indexed
    if size.is_narrow and (not is_indexed or size.searched <= _PASSED_BY):
        found = await search.by_vector_filtered(connection, tier, space.name, vector, what, limit)
    elif not is_indexed:
        found = await search.by_vector(connection, tier, space.name, vector, what, limit)
    else:
        found = await search.by_vector_index(connection, tier, space.name, space.pool_id, vector, what, limit)
        if len(found) < limit:
            found = await search.by_vector_filtered(connection, tier, space.name, vector, what, limit)
    return _each_once(found)


def _each_once(found: Sequence[TextHit]) -> list[TextHit]:
    nearest = {hit.number: hit for hit in reversed(found)}
    return sorted(nearest.values(), key=lambda hit: (-hit.score, -hit.number))
