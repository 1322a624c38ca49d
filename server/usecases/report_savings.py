"""Report the tokens that models used and what memory saved of them, by client and session."""

from dataclasses import dataclass
from datetime import timedelta

from esker.server.core.context.usage import ClientUsage, SessionUsage
from esker.server.store import usage
from esker.server.usecases.parts import Parts

MOST_SESSIONS = 1_000


@dataclass(frozen=True, slots=True)
class SavingsReport:
    """The usage of the sessions with a call in the last days: by client, and the latest sessions."""

    clients: list[ClientUsage]
    sessions: list[SessionUsage]


async def report_savings(parts: Parts, pool_id: str, *, days: int, limit: int) -> SavingsReport:
    """Return the usage of the sessions with a call in the last `days`, at most `limit` of them each by itself."""
    since = parts.clock() - timedelta(days=days)
    async with parts.database.moment(pool_id) as connection:
        return SavingsReport(await usage.by_client(connection, since), await usage.by_session(connection, since, limit))
