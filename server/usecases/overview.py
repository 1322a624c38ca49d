"""The overview of a pool: its memories by project and week, its sessions by client."""

from dataclasses import dataclass
from datetime import timedelta

from esker.server.core.reports import ClientSummary, ProjectSummary, WeekSummary
from esker.server.store import overview, projects
from esker.server.usecases.parts import Parts

WEEKS = 26
"""The weeks that an overview looks back."""
_MOST = 20


@dataclass(frozen=True, slots=True)
class Overview:
    """The largest projects and clients of a pool, and its live rows by week and kind, oldest first."""

    projects: list[ProjectSummary]
    clients: list[ClientSummary]
    weeks: list[WeekSummary]


async def get_overview(parts: Parts, pool_id: str) -> Overview:
    """Return the overview of a pool, read at one moment."""
    now = parts.clock()
    async with parts.database.moment(pool_id) as connection:
        return Overview(
            await projects.with_memories(connection, _MOST, now),
            await overview.clients(connection, _MOST),
            await overview.weeks(connection, now - timedelta(weeks=WEEKS)),
        )
