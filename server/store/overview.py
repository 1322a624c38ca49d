"""The overview of a pool: rows by week, sessions by client."""

from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.reports import ClientSummary, WeekSummary
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/overview.sql")


async def weeks(connection: Connection, since: datetime) -> list[WeekSummary]:
    """Return how many live rows of each kind were said in each week, oldest first."""
    async with connection.cursor(row_factory=class_row(WeekSummary)) as cursor:
        await cursor.execute(SQL["weeks"], {"since": since})
        return await cursor.fetchall()


async def clients(connection: Connection, limit: int) -> list[ClientSummary]:
    """Return the clients with the most sessions, the most first."""
    async with connection.cursor(row_factory=class_row(ClientSummary)) as cursor:
        await cursor.execute(SQL["clients"], {"limit": limit})
        return await cursor.fetchall()
