"""What the calls of a session's client used."""

from dataclasses import asdict
from pathlib import Path

from psycopg.rows import class_row

from esker.server.core.context.usage import Usage
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/usage.sql")


async def get(connection: Connection, session_id: str) -> Usage | None:
    """Return what the calls of a session used; None before the first was reported."""
    async with connection.cursor(row_factory=class_row(Usage)) as cursor:
        await cursor.execute(SQL["get"], {"session": session_id})
        return await cursor.fetchone()


async def put(connection: Connection, session_id: str, usage: Usage) -> None:
    """Keep what the calls of a session used. The caller holds the session's lock."""
    await connection.execute(SQL["remove"], {"session": session_id})
    await connection.execute(SQL["insert"], {"session": session_id, **asdict(usage)})
