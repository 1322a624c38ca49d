"""How long the pool keeps each kind of text, and the texts that are older."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.types.json import Jsonb

from esker.server.core.conversation.retention import Retention
from esker.server.core.json_input import Json
from esker.server.core.records import Kind
from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements, as_json

SQL = Statements(Path(__file__).parent / "sql/retention.sql")

# Stored bytes of contents from which on no other message is added to a batch.
_BYTES_AT_ONCE = 4_000_000


async def get(connection: Connection) -> Retention:
    """Return how long the pool keeps each kind of text."""
    row = await (await connection.execute(SQL["get"])).fetchone()
    return Retention(*row) if row else Retention()


async def store(connection: Connection, wanted: Retention) -> None:
    """Set how long the pool keeps each kind of text."""
    values = {**asdict(wanted), "memories_days": Jsonb(dict(wanted.memories_days))}
    await connection.execute(SQL["set"], values)


async def pools_with_one(database: Database) -> list[str]:
    """Return the pools that do not keep everything for ever."""
    return [str(row["pool_id"]) for row in await database.ask(SQL["pools"])]


async def old_messages(connection: Connection, before: datetime, limit: int) -> dict[str, list[int]]:
    """Return some observed messages (session id → seqs) that were said before a time and still have their words."""
    found: dict[str, list[int]] = {}
    cursor = await connection.execute(SQL["old_messages"], {"before": before, "limit": limit})
    for session_id, seq in await cursor.fetchall():
        found.setdefault(str(session_id), []).append(int(seq))
    return found


async def old_images(
    connection: Connection, before: datetime, tokens: int, after: tuple[str, int], limit: int
) -> list[tuple[str, int]]:
    """Return some observed messages after another one that may have images, of those with at least so many tokens."""
    values: dict[str, Any] = {"before": before, "tokens": tokens, "limit": limit, "bytes": _BYTES_AT_ONCE}
    values |= {"after_session": after[0], "after_seq": after[1]}
    return [(row[0], row[1]) for row in await (await connection.execute(SQL["old_images"], values)).fetchall()]


async def contents(connection: Connection, found: Sequence[tuple[str, int]]) -> list[tuple[str, int, Json]]:
    """Return the contents of those messages that still have their words. The caller has locked their sessions."""
    values = {"session_ids": [session_id for session_id, _ in found], "seqs": [seq for _, seq in found]}
    return [(row[0], row[1], row[2]) for row in await (await connection.execute(SQL["contents"], values)).fetchall()]


async def replace_content(connection: Connection, changed: Sequence[tuple[str, int, Json]]) -> None:
    """Replace the content of messages. The caller has locked their sessions."""
    rows = [{"session_id": session_id, "seq": seq, "content": content} for session_id, seq, content in changed]
    await connection.execute(SQL["replace_content"], {"rows": as_json(rows)})


async def delete_old_passages(connection: Connection, before: datetime, limit: int) -> dict[str, int]:
    """Delete some passages that were said before a time; return their ids with the numbers of their vectors."""
    cursor = await connection.execute(SQL["delete_old_passages"], {"before": before, "limit": limit})
    return {str(row[0]): int(row[1]) for row in await cursor.fetchall()}


async def old_memories(connection: Connection, kind: Kind, before: datetime, limit: int) -> set[str]:
    """Return the ids of some memories of a kind that were said before a time."""
    values = {"kind": kind, "before": before, "limit": limit}
    return {str(row[0]) for row in await (await connection.execute(SQL["old_memories"], values)).fetchall()}
