"""The overview of a pool: live rows by kind, project and week, sessions by client."""

from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.reports import ClientSummary, LiveRows
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/overview.sql")


async def live_rows(connection: Connection, since: datetime) -> LiveRows:
    """Return how many live rows there are, the most first; weeks are told apart from `since` on."""
    found = LiveRows({}, {}, {})
    for counted, kind, project, week, rows in await (
        await connection.execute(SQL["live_rows"], {"since": since})
    ).fetchall():
        match counted:
            case "kind":
                found.kinds[kind] = rows
            case "project":
                found.projects[project] = rows
            case _:
                found.weeks[week, kind] = rows
    return found


async def clients(connection: Connection, limit: int) -> list[ClientSummary]:
    """Return the clients with the most sessions, the most first."""
    async with connection.cursor(row_factory=class_row(ClientSummary)) as cursor:
        await cursor.execute(SQL["clients"], {"limit": limit})
        return await cursor.fetchall()
