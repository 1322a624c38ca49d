"""Figures of a pool that change while a person looks at its page."""

from datetime import datetime

from esker.server.store import inspection
from esker.server.store.inspection import LiveFigures
from esker.server.usecases.parts import Parts

_MOST_NEW = 1_000


async def live_figures(parts: Parts, pool_id: str, since: datetime) -> LiveFigures:
    """Return the work that waits in a pool, and how many rows were written after `since`. Raises Unavailable."""
    async with parts.database.tenant(pool_id) as connection:
        return await inspection.live_figures(connection, since, _MOST_NEW)
