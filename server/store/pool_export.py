"""Reads a pool as lines of JSON, which the database formats, a few at a time."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

from psycopg.rows import TupleRow, dict_row

from esker.server.core.pool.lines import LineType
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/pool_export.sql")

# Rows per round trip. A message may have some megabytes; this many usual ones take less time than the round trip.
_AT_ONCE: dict[Literal["sessions", "messages", "memories", "reflections"], int] = {
    "sessions": 20,
    "messages": 20,
    "memories": 200,
    "reflections": 200,
}


async def counts(connection: Connection) -> dict[LineType, int]:
    """Return the number of lines of each type."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["counts"])
        row: Any = await cursor.fetchone()
    return row


async def sessions(connection: Connection) -> AsyncGenerator[tuple[str, str]]:
    """Yield every session: its id and its line."""
    async for session_id, line in _stream(connection, "sessions", {}):
        yield session_id, line


async def messages(connection: Connection, session_id: str) -> AsyncGenerator[tuple[int, str]]:
    """Yield the messages of a session: their seqs and lines."""
    async for seq, line in _stream(connection, "messages", {"session": session_id}):
        yield seq, line


async def groups(connection: Connection, session_id: str) -> list[tuple[int, str]]:
    """Return the groups of a session: the last seq that each covers, and its line."""
    cursor = await connection.execute(SQL["groups"], {"session": session_id})
    return [(row[0], row[1]) for row in await cursor.fetchall()]


async def memories(connection: Connection) -> AsyncGenerator[str]:
    """Yield the line of every memory."""
    async for (line,) in _stream(connection, "memories", {}):
        yield line


async def reflections(connection: Connection) -> AsyncGenerator[str]:
    """Yield the line of every reflection."""
    async for (line,) in _stream(connection, "reflections", {}):
        yield line


async def _stream(
    connection: Connection,
    statement: Literal["sessions", "messages", "memories", "reflections"],
    values: dict[str, Any],
) -> AsyncGenerator[TupleRow]:
    """Yield rows through a server-side cursor, so that they are never all in memory."""
    async with connection.cursor(name=f"export_{statement}") as cursor:
        cursor.itersize = _AT_ONCE[statement]
        await cursor.execute(SQL[statement], values)
        async for row in cursor:
            yield row
