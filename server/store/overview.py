"""The overview of a pool: live rows by kind, project and week, sessions by client."""

from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.reports import ClientSummary, LiveRows, RowsOfAge
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/overview.sql")


async def live_rows(connection: Connection, weeks_since: datetime, months_since: datetime) -> LiveRows:
    """Return how many live rows there are, the most first; weeks and months are told apart from two moments on."""
    found = LiveRows({}, {}, [])
    since = {"weeks_since": weeks_since, "months_since": months_since}
    for counted, kind, project, week, month, rows in await (
        await connection.execute(SQL["live_rows"], since)
    ).fetchall():
        match counted:
            case "kind":
                found.kinds[kind] = rows
            case "project":
                found.projects[project] = rows
            case _:
                found.ages.append(RowsOfAge(kind, week, month, rows))
    return found


async def clients(connection: Connection, limit: int) -> list[ClientSummary]:
    """Return the clients with the most sessions, the most first."""
    async with connection.cursor(row_factory=class_row(ClientSummary)) as cursor:
        await cursor.execute(SQL["clients"], {"limit": limit})
        return await cursor.fetchall()
