"""The overview of a pool: its live rows by kind, project and age, its sessions by client, and what packs saved."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from esker.server.core.context.usage import ClientUsage, PoolUsage
from esker.server.core.reports import ClientSummary, LiveRows
from esker.server.store import overview, usage
from esker.server.usecases.parts import Parts

WEEKS, YEARS = 26, 30
"""The weeks that an overview tells apart, and the years whose months it tells apart; the present ones count."""
_MOST_CLIENTS = 20
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Overview:
    """The live rows of a pool, its largest clients, and the usage of their model calls, together and by client."""

    live: LiveRows
    clients: list[ClientSummary]
    usage: PoolUsage
    usage_by_client: list[ClientUsage]


def monday_before(now: datetime) -> datetime:
    """Return the beginning of the week, in UTC, of a moment in UTC."""
    return now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=now.weekday())


async def get_overview(parts: Parts, pool_id: str) -> Overview:
    """Return the overview of a pool, read at one moment."""
    now = parts.clock()
    weeks_since = monday_before(now) - timedelta(weeks=WEEKS - 1)
    async with parts.database.moment(pool_id) as connection:
        return Overview(
            await overview.live_rows(connection, weeks_since, datetime(now.year - YEARS + 1, 1, 1, tzinfo=UTC)),
            await overview.clients(connection, _MOST_CLIENTS),
            await usage.of_pool(connection),
            (await usage.by_client(connection, _EVER))[:_MOST_CLIENTS],
        )
