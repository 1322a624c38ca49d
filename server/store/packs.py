"""Packs: frozen, versioned, one line of versions a session."""

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from psycopg.rows import class_row

from server.core.records import Pack
from server.db.database import Connection
from server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/packs.sql")


async def latest(connection: Connection, session_id: str) -> Pack | None:
    """Return the pack that a session has now, or None before its first."""
    async with connection.cursor(row_factory=class_row(Pack)) as cursor:
        await cursor.execute(SQL["latest"], {"session": session_id})
        return await cursor.fetchone()


async def insert(connection: Connection, session_id: str, pack: Pack) -> None:
    """Freeze a version."""
    await connection.execute(SQL["insert"], {**asdict(pack), "session": session_id})


async def delete_showing(connection: Connection, memory_ids: Collection[str]) -> tuple[int, list[str]]:
    """Delete every version that shows one of these rows; return how many, and the sessions that had them."""
    values = {"ids": list(memory_ids)}
    cursor = await connection.execute(SQL["showing"], values)
    sessions = [str(row[0]) for row in await cursor.fetchall()]
    return (await connection.execute(SQL["delete_showing"], values)).rowcount, sessions
