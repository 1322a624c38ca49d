"""Packs: frozen, versioned, one line of versions a session."""

from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path

from psycopg.rows import class_row

from server.core.records import Pack
from server.db.database import Connection
from server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/packs.sql")


async def current(connection: Connection, session_id: str) -> Pack | None:
    """Return the pack that a session has now; None before its first, and when the last one was forgotten."""
    async with connection.cursor(row_factory=class_row(Pack)) as cursor:
        await cursor.execute(SQL["current"], {"session": session_id})
        return await cursor.fetchone()


async def insert(connection: Connection, session_id: str, pack: Pack) -> None:
    """Freeze a version, in the place of the one before."""
    await connection.execute(SQL["delete_former"], {"session": session_id, "version": pack.version})
    await connection.execute(SQL["insert"], {**asdict(pack), "session": session_id})


async def delete_showing(connection: Connection, memory_ids: Collection[str]) -> int:
    """Delete every version that shows one of these rows; return how many."""
    return (await connection.execute(SQL["delete_showing"], {"ids": list(memory_ids)})).rowcount
