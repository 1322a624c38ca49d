"""Quarantines: what they cover, and the state to which it returns."""

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row

from esker.server.core.facts.forgetting import Quarantine
from esker.server.db.database import Connection, Database
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/quarantine.sql")


async def lock(connection: Connection) -> None:
    """Serialise transactions that begin, extend or lift quarantines of the pool."""
    await connection.execute(SQL["lock"])


async def insert(connection: Connection, made: Quarantine) -> None:
    """Begin a quarantine."""
    await connection.execute(SQL["insert"], {**_limits(made), "now": made.created_at})


async def listed(connection: Connection) -> list[Quarantine]:
    """Return all quarantines, the latest first."""
    async with connection.cursor(row_factory=class_row(Quarantine)) as cursor:
        await cursor.execute(SQL["list"])
        return await cursor.fetchall()


def active() -> Query[list[Quarantine]]:
    """Return the quarantines that are not lifted, oldest first."""
    return Query(SQL["active"], {}, list, class_row(Quarantine))


async def mark_lifted(connection: Connection, quarantine_id: str, now: datetime) -> bool:
    """Mark a quarantine as lifted; return whether it was not."""
    values = {"id": quarantine_id, "now": now}
    return await (await connection.execute(SQL["lift"], values)).fetchone() is not None


async def memories_in(connection: Connection, quarantine: Quarantine) -> set[str]:
    """Return the ids of memories within the limits of a quarantine that are not in one yet."""
    return {str(row[0]) for row in await (await connection.execute(SQL["memories"], _limits(quarantine))).fetchall()}


async def sessions_in(connection: Connection, quarantine: Quarantine) -> set[str]:
    """Return the ids of sessions with messages within a quarantine's limits that no quarantine contains yet."""
    return {str(row[0]) for row in await (await connection.execute(SQL["sessions"], _limits(quarantine))).fetchall()}


async def keep_state(connection: Connection, quarantine_id: str, ids: Collection[str]) -> None:
    """Keep the state of memories, to which they return."""
    await connection.execute(SQL["keep_state"], {"id": quarantine_id, "ids": list(ids)})


async def hide_memories(connection: Connection, quarantine_id: str, ids: Collection[str], now: datetime) -> None:
    """Supersede memories by a quarantine. The caller has locked them, and kept their state."""
    await connection.execute(SQL["hide_memories"], {"id": quarantine_id, "ids": list(ids), "now": now})


async def hide_passages(connection: Connection, quarantine: Quarantine) -> int:
    """Put the passages within its limits into a quarantine; return how many."""
    return (await connection.execute(SQL["hide_passages"], _limits(quarantine))).rowcount


async def hide_sessions(connection: Connection, quarantine_id: str, ids: Collection[str]) -> None:
    """Put sessions into a quarantine. The caller has locked them."""
    await connection.execute(SQL["hide_sessions"], {"id": quarantine_id, "ids": list(ids)})


async def covered(connection: Connection, quarantine_id: str) -> tuple[set[str], set[str]]:
    """Return the ids of the memories that lifting a quarantine changes, and of its sessions."""
    rows = await (await connection.execute(SQL["hidden"], {"id": quarantine_id})).fetchall()
    return {str(row[0]) for row in rows if row[0]}, {str(row[1]) for row in rows if row[1]}


async def forget_superseders(connection: Connection, ids: Collection[str]) -> None:
    """Let the memories in quarantine that some rows superseded become live again when it is lifted. The caller holds
    the lock."""
    await connection.execute(SQL["forget_superseders"], {"ids": list(ids)})


async def restore(connection: Connection, quarantine_id: str) -> tuple[int, int]:
    """Return everything to its state before a quarantine; return how many memories and passages.

    The caller has locked the memories and sessions.
    """
    values = {"id": quarantine_id}
    rows = (await connection.execute(SQL["restore_memories"], values)).rowcount
    await connection.execute(SQL["hand_over_states"], values)
    await connection.execute(SQL["drop_states"], values)
    await connection.execute(SQL["restore_sessions"], values)
    return rows, (await connection.execute(SQL["restore_passages"], values)).rowcount


async def pools_with_one(database: Database) -> list[str]:
    """Return the pools with a quarantine."""
    return [str(row["pool_id"]) for row in await database.ask(SQL["pools"])]


def _limits(quarantine: Quarantine) -> dict[str, Any]:
    names = ("id", "session_id", "project", "client", "source", "since", "until")
    return {name: getattr(quarantine, name) for name in names}
