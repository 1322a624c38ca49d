"""Messages, verbatim and in order."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row

from esker.server.core.conversation.records import Block, NewMessage, Role, StoredMessage
from esker.server.core.records import Trust
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements, as_json

SQL = Statements(Path(__file__).parent / "sql/messages.sql")

# How many messages back the call of a tool result is looked for; looking further costs more than a missing tool name.
_CALL_DISTANCE = 200
# The most messages that one observer call reads.
_MOST_MESSAGES = 2_000
# How many messages from a cited one neighbours with text are looked for.
_REACH = 100
# A seq after all others.
_ENDLESS = 2**63 - 1
# The content hash of a message whose words were forgotten.
FORGOTTEN = b""


@dataclass(frozen=True, slots=True)
class MessageToStore:
    """A message with everything that is computed from it before it is stored.

    Only an imported message has a `received_at`, or may be `left_out` of passages.
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


def hashes(session_id: str, external_ids: Collection[str]) -> Query[dict[str, bytes]]:
    """Return the content hashes of those of these messages that are stored, by external id."""
    values = {"session": session_id, "external_ids": list(external_ids)}
    return Query(SQL["hashes"], values, lambda rows: {str(row[0]): bytes(row[1]) for row in rows})


def observed(session_id: str, external_ids: Collection[str]) -> Query[set[str]]:
    """Return the external ids of those of these messages that are in an observation group."""
    values = {"session": session_id, "external_ids": list(external_ids)}
    return Query(SQL["observed"], values, lambda rows: {str(row[0]) for row in rows})


def contents(session_id: str, beginning: str) -> Query[list[list[Block]]]:
    """Return the blocks of the messages of a session whose external ids have this beginning."""
    values = {"session": session_id, "beginning": beginning}
    return Query(SQL["contents"], values, lambda rows: [row[0] for row in rows])


def words(session_id: str, beginning: str) -> Query[list[tuple[str, Role, list[Block] | None]]]:
    """Return the messages of a session whose external ids have this beginning, in their order.

    Each is its external id, its role and its content; None if it has calls or results.
    """
    values = {"session": session_id, "beginning": beginning}
    return Query(SQL["words"], values, lambda rows: [(row[0], row[1], row[2]) for row in rows])


async def turn_ids(connection: Connection, sessions: Collection[str]) -> set[str]:
    """Return the ids that the gateway gave to the turns of some sessions, and from which their words can be guessed."""
    rows = await (await connection.execute(SQL["turn_ids"], {"sessions": list(sessions)})).fetchall()
    return {str(external_id) for (external_id,) in rows}


def elsewhere(session_id: str, external_ids: Collection[str]) -> Query[list[tuple[str, bytes]]]:
    """Return the external ids and content hashes of those of these messages that other sessions of the client have."""
    values = {"session": session_id, "external_ids": list(external_ids)}
    return Query(SQL["elsewhere"], values, lambda rows: [(str(row[0]), bytes(row[1])) for row in rows])


async def lock_copies(connection: Connection, client: str) -> None:
    """Let no other session of a client store copies until this transaction ends; lock no session before."""
    await connection.execute(SQL["lock_copies"], {"client": client})


def tool_names(session_id: str, calls: Collection[str], before: int | None = None) -> Query[dict[str, str]]:
    """Return the names of the tools of these call ids, if the calls are near message `before` or (None) the end."""
    values = {"session": session_id, "calls": list(calls), "before": before, "distance": _CALL_DISTANCE}
    return Query(SQL["tool_names"], values, lambda rows: {str(row[0]): str(row[1]) for row in rows})


async def append(
    connection: Connection, session_id: str, after: int, batch: Sequence[MessageToStore], now: datetime
) -> None:
    """Store a batch after seq `after`, in one statement."""
    rows = await asyncio.to_thread(as_json, map(_values, range(1, len(batch) + 1), batch))
    await connection.execute(SQL["insert"], {"session": session_id, "after": after, "now": now, "rows": rows})


def _values(place: int, stored: MessageToStore) -> dict[str, Any]:
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


@dataclass(frozen=True, slots=True)
class MaskedMessage:
    """The content of a message whose secrets were masked after it was stored."""

    seq: int
    content: Sequence[Block]
    content_hash: bytes
    calls: Mapping[str, str]
    text: str


async def listed(connection: Connection, session_id: str, after: int, limit: int) -> list[StoredMessage]:
    """Return up to `limit` messages after seq `after`, in order."""
    values = {"session": session_id, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(StoredMessage)) as cursor:
        await cursor.execute(SQL["list"], values)
        return await cursor.fetchall()


def before(session_id: str, seq: int | None, limit: int) -> Query[list[StoredMessage]]:
    """Return the last `limit` messages before a seq, or (None) of the session, in order."""
    values = {"session": session_id, "before": seq or _ENDLESS, "limit": limit}
    return Query(SQL["before"], values, lambda rows: rows[::-1], class_row(StoredMessage))


async def searchable(connection: Connection, session_id: str, after: int, limit: int) -> list[StoredMessage]:
    """Return the same as `listed` without content, and with an empty text for messages that passages leave out."""
    values = {"session": session_id, "after": after, "limit": limit}
    async with connection.cursor(row_factory=class_row(StoredMessage)) as cursor:
        await cursor.execute(SQL["searchable"], values)
        return await cursor.fetchall()


async def leave_out(connection: Connection, session_id: str, seqs: Sequence[int]) -> None:
    """Leave messages out of passages from now on."""
    await connection.execute(SQL["leave_out"], {"session": session_id, "seqs": list(seqs)})


def unobserved(session_id: str, tokens: int) -> Query[list[StoredMessage]]:
    """Return unobserved messages, oldest first: all that fit into `tokens`, and the next one."""
    values = {"session": session_id, "tokens": tokens, "limit": _MOST_MESSAGES}
    return Query(SQL["unobserved"], values, list, class_row(StoredMessage))


@dataclass(frozen=True, slots=True)
class SourceMessage:
    """A source message of a row, or a neighbour of one; `text` is its observer text, truncated."""

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
) -> list[SourceMessage]:
    """Return messages by session and seq, and on either side of each `count` that have text or were forgotten.

    They are in order, each once. Texts are truncated to `characters` characters.
    """
    values = {"sessions": [session for session, _ in cited], "seqs": [seq for _, seq in cited]}
    values |= {"around": count, "reach": _REACH, "characters": characters}
    async with connection.cursor(row_factory=class_row(SourceMessage)) as cursor:
        await cursor.execute(SQL["around"], values)
        return await cursor.fetchall()


async def replace_content(connection: Connection, session_id: str, masked: Sequence[MaskedMessage]) -> None:
    """Give messages of a session other content. The caller holds the session's lock."""
    rows = [{**asdict(one), "content_hash": one.content_hash.hex()} for one in masked]
    await connection.execute(SQL["replace_content"], {"session": session_id, "rows": as_json(rows)})


async def blank(connection: Connection, session_id: str, seqs: Sequence[int]) -> int:
    """Forget the content of these messages; return how many."""
    cursor = await connection.execute(SQL["blank"], {"session": session_id, "seqs": list(seqs)})
    return cursor.rowcount


async def count_spoken(connection: Connection, session_id: str, limit: int) -> int:
    """Return how many messages of a session a person wrote; counting ends at `limit`."""
    row = await (await connection.execute(SQL["count_spoken"], {"session": session_id, "limit": limit})).fetchone()
    return int(row[0]) if row else 0
