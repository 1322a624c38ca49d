"""Messages, verbatim and in order."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row

from esker.server.core.conversation.records import Message, NewMessage, Role
from esker.server.core.records import Trust
from esker.server.db.database import Connection
from esker.server.db.statements import Statements, as_json

SQL = Statements(Path(__file__).parent / "sql/messages.sql")

# A result follows its call closely; looking further back costs more than a missing tool name.
_CALL_DISTANCE = 200
_MOST_MESSAGES = 2_000
# How far from a message others are looked for that say something.
_REACH = 100


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message with everything that is computed from it before it is stored.

    Only one of a pool's file was received before, and may be `left_out` of passages.
    """

    message: NewMessage
    content_hash: bytes
    calls: Mapping[str, str]
    trust: Trust
    text: str
    tokens: int
    shown_tokens: int
    received_at: datetime | None = None
    left_out: bool = False


async def known(connection: Connection, session_id: str, external_ids: Collection[str]) -> dict[str, bytes]:
    """Return the content hashes of those messages that are stored already, by external id."""
    values = {"session": session_id, "external_ids": list(external_ids)}
    cursor = await connection.execute(SQL["known"], values)
    return {str(row[0]): bytes(row[1]) for row in await cursor.fetchall()}


async def tool_names(
    connection: Connection, session_id: str, calls: Collection[str], last_seq: int
) -> Mapping[str, str]:
    """Return the names of the tools behind these call ids, as far as they stand near the end of the session."""
    values = {"session": session_id, "calls": list(calls), "after": last_seq - _CALL_DISTANCE}
    cursor = await connection.execute(SQL["tool_names"], values)
    return {str(row[0]): str(row[1]) for row in await cursor.fetchall()}


async def append(
    connection: Connection, session_id: str, after: int, batch: Sequence[StoredMessage], now: datetime
) -> None:
    """Store a batch behind seq `after`, in one statement."""
    rows = await asyncio.to_thread(as_json, map(_values, range(1, len(batch) + 1), batch))
    await connection.execute(SQL["insert"], {"session": session_id, "after": after, "now": now, "rows": rows})


def _values(place: int, stored: StoredMessage) -> dict[str, Any]:
    message = stored.message
    return {
        "place": place,
        "external_id": message.external_id,
        "role": message.role,
        "trust": stored.trust,
        "sent_at": message.sent_at.isoformat(),
        "received_at": stored.received_at.isoformat() if stored.received_at else None,
        "content": message.content,
        "content_hash": stored.content_hash.hex(),
        "calls": dict(stored.calls),
        "text": stored.text,
        "tokens": stored.tokens,
        "shown_tokens": stored.shown_tokens,
        "left_out": stored.left_out,
    }


async def listed(connection: Connection, session_id: str, after: int, limit: int) -> list[Message]:
    """Return up to `limit` messages behind seq `after`, in order."""
    values = {"session": session_id, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(Message)) as cursor:
        await cursor.execute(SQL["list"], values)
        return await cursor.fetchall()


async def before(connection: Connection, session_id: str, seq: int, limit: int) -> list[Message]:
    """Return the last `limit` messages before a seq, in order."""
    values = {"session": session_id, "before": seq, "limit": limit}
    async with connection.cursor(row_factory=class_row(Message)) as cursor:
        await cursor.execute(SQL["before"], values)
        return (await cursor.fetchall())[::-1]


async def searchable(connection: Connection, session_id: str, after: int, limit: int) -> list[Message]:
    """Return the same for passages: what is left out of those says nothing."""
    values = {"session": session_id, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(Message)) as cursor:
        await cursor.execute(SQL["searchable"], values)
        return await cursor.fetchall()


async def leave_out(connection: Connection, session_id: str, seqs: Sequence[int]) -> None:
    """Keep messages out of passages from now on."""
    await connection.execute(SQL["leave_out"], {"session": session_id, "seqs": list(seqs)})


async def unobserved(connection: Connection, session_id: str, after: int, tokens: int) -> list[Message]:
    """Return messages behind seq `after`, oldest first: all that fit into `tokens`, and one more where there is."""
    values = {"session": session_id, "after": after, "tokens": tokens, "limit": _MOST_MESSAGES}
    async with connection.cursor(row_factory=class_row(Message)) as cursor:
        await cursor.execute(SQL["unobserved"], values)
        return await cursor.fetchall()


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that stands behind a row, or near one that does; `text` is what an observer reads, up to a length."""

    session_id: str
    seq: int
    external_id: str
    role: Role
    trust: Trust
    sent_at: datetime
    text: str
    truncated: bool
    forgotten: bool


async def around(
    connection: Connection, cited: Collection[tuple[str, int]], count: int, characters: int
) -> list[FoundMessage]:
    """Return messages by session and seq, and `count` on either side of each that say something or were forgotten.

    They are in order, each once. Of a text `characters` characters are read.
    """
    values = {"sessions": [session for session, _ in cited], "seqs": [seq for _, seq in cited]}
    values |= {"around": count, "reach": _REACH, "characters": characters}
    async with connection.cursor(row_factory=class_row(FoundMessage)) as cursor:
        await cursor.execute(SQL["around"], values)
        return await cursor.fetchall()


async def blank(connection: Connection, session_id: str, seqs: Sequence[int]) -> int:
    """Forget the content of these messages; return how many."""
    cursor = await connection.execute(SQL["blank"], {"session": session_id, "seqs": list(seqs)})
    return cursor.rowcount


async def count_spoken(connection: Connection, session_id: str, limit: int) -> int:
    """Return how many messages of a session are a person's own; counting ends at `limit`."""
    row = await (await connection.execute(SQL["count_spoken"], {"session": session_id, "limit": limit})).fetchone()
    return int(row[0]) if row else 0
