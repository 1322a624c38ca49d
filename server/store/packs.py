"""Packs: frozen and versioned by session."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from esker.server.core.context.session_memory import PackVersion
from esker.server.core.pack.reasons import PackExplanation, RowDecision, as_stored, explained
from esker.server.core.pack.records import Pack
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/packs.sql")

FORMER_WITH_ROWS = 10
"""Number of former versions of a session's pack, the latest ones, for which the ids of the rows are kept."""


def current(session_id: str) -> Query[Pack | None]:
    """Return a session's current pack; None before the first, and after the last one was forgotten."""
    return Query(SQL["current"], {"session": session_id}, lambda rows: next(iter(rows), None), class_row(Pack))


async def lock_to_freeze(connection: Connection) -> None:
    """Block forgetting in this pool until the transaction ends; call it before the rows of a pack are read.

    It is taken after locks on sessions and memories, in the same order as by a transaction that forgets.
    """
    await connection.execute(SQL["lock_to_freeze"])


def inserted(
    session_id: str, pack: Pack, reasons: Sequence[RowDecision], left_out: Sequence[RowDecision]
) -> Query[Pack]:
    """Replace a session's pack, and store the reasons for its rows and for the rows it leaves out.

    Return it with its version. The caller holds the session's lock.
    """
    values = {
        "session": session_id,
        "text": pack.text,
        "sha256": pack.sha256,
        "tokens": pack.tokens,
        "memory_ids": " ".join(pack.memory_ids),
        "pins_left": pack.pins_left,
        "reason": pack.reason,
        "created_at": pack.created_at,
        "reasons": Jsonb(as_stored(reasons)),
        "left_out_ids": " ".join(reason.id for reason in left_out),
        "left_out": Jsonb(as_stored(left_out)),
        "kept": FORMER_WITH_ROWS,
    }
    return Query(SQL["insert"], values, lambda rows: replace(pack, version=rows[0][0]))


async def explanation(connection: Connection, session_id: str, pack: Pack) -> PackExplanation | None:
    """Return why a pack's rows are in it; None for a pack that is older than the column of reasons."""
    cursor = await connection.execute(SQL["reasons"], {"session": session_id, "version": pack.version})
    found = await cursor.fetchone()
    if found is None or found[0] is None:
        return None
    reasons, left_out_ids, left_out = found
    return PackExplanation(explained(pack, pack.memory_ids, reasons), explained(pack, left_out_ids, left_out))


async def versions(connection: Connection, session_id: str, limit: int) -> list[PackVersion]:
    """Return the versions of a session's pack, newest first."""
    async with connection.cursor(row_factory=class_row(PackVersion)) as cursor:
        await cursor.execute(SQL["versions"], {"session": session_id, "limit": limit})
        return await cursor.fetchall()


async def lock_to_forget(connection: Connection) -> None:
    """Let nothing be frozen or kept from the texts of this pool until the transaction ends.

    Call it before what shows a text that goes is looked for. `delete_showing` calls it.
    """
    await connection.execute(SQL["lock_to_forget"])


async def rows_of_versions(connection: Connection, session_id: str, versions: Collection[int]) -> dict[int, list[str]]:
    """Return the ids of the rows of some versions of a session's pack; those that are not known are left out."""
    cursor = await connection.execute(SQL["rows_of_versions"], {"session": session_id, "versions": list(versions)})
    return {int(version): list(ids) for version, ids in await cursor.fetchall()}


async def delete_versions(connection: Connection, versions: Collection[tuple[str, int]]) -> None:
    """Delete some versions (session id, version); the next request of such a session freezes a new one."""
    await lock_to_forget(connection)
    await connection.execute(SQL["forget_hashes"])
    values = {"sessions": [session for session, _ in versions], "versions": [version for _, version in versions]}
    await connection.execute(SQL["delete_versions"], values)


async def delete_showing(connection: Connection, memory_ids: Collection[str]) -> int:
    """Delete every version that shows one of these rows, and their entries in other versions; return how many."""
    await lock_to_forget(connection)
    await connection.execute(SQL["forget_left_out"], {"ids": list(memory_ids)})
    await connection.execute(SQL["forget_former"], {"ids": list(memory_ids)})
    await connection.execute(SQL["forget_hashes"])
    return (await connection.execute(SQL["delete_showing"], {"ids": list(memory_ids)})).rowcount
