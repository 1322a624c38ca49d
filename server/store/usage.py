"""Token usage of the model calls that a session's client made."""

from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.context.usage import ClientUsage, PoolUsage, SessionUsage, Usage
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/usage.sql")


async def get(connection: Connection, session_id: str) -> Usage | None:
    """Return the usage of a session; None before the first report."""
    async with connection.cursor(row_factory=class_row(Usage)) as cursor:
        await cursor.execute(SQL["get"], {"session": session_id})
        return await cursor.fetchone()


async def of_pool(connection: Connection) -> PoolUsage:
    """Return the usage of all sessions together."""
    async with connection.cursor(row_factory=class_row(PoolUsage)) as cursor:
        await cursor.execute(SQL["of_pool"])
        found = await cursor.fetchone()
    assert found is not None  # it is a sum
    return found


async def by_client(connection: Connection, since: datetime) -> list[ClientUsage]:
    """Return the usage of the sessions with a call since a time, by client, the most tokens first."""
    async with connection.cursor(row_factory=class_row(ClientUsage)) as cursor:
        await cursor.execute(SQL["by_client"], {"since": since})
        return await cursor.fetchall()


async def by_session(connection: Connection, since: datetime, limit: int) -> list[SessionUsage]:
    """Return the usage of sessions with a call since a time, the latest call first."""
    async with connection.cursor(row_factory=class_row(SessionUsage)) as cursor:
        await cursor.execute(SQL["by_session"], {"since": since, "limit": limit})
        return await cursor.fetchall()


async def put(connection: Connection, session_id: str, usage: Usage) -> None:
    """Store the usage of a session. The caller holds the session's lock."""
    await connection.execute(SQL["remove"], {"session": session_id})
    await connection.execute(SQL["insert"], {"session": session_id, **asdict(usage)})
