"""Passages, windows of a session's messages, and their keyword index."""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row

from esker.server.core.conversation.passages import NewPassage
from esker.server.core.conversation.records import Passage, StoredMessage
from esker.server.core.errors import NotFound
from esker.server.core.ids import new_ids
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query, fetch
from esker.server.db.statements import Statements, as_array

SQL = Statements(Path(__file__).parent / "sql/passages.sql")

_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class PassageProgress:
    """How far a session's messages are cut into passages: up to `passages_seq` of `last_seq`.

    The last passage is `open`: it may grow. `left_out` counts messages from its first one on that are in no passage.
    `wanted`: the pool has passages.
    """

    passages_seq: int
    last_seq: int
    project: str | None
    open_id: str | None
    open_number: int | None
    open_first: int | None
    open_last: int | None
    open_hash: bytes | None
    wanted: bool
    left_out: int


@dataclass(frozen=True, slots=True)
class Deleted:
    """A passage that was deleted, with the number of its vectors."""

    number: int
    id: str
    session_id: str
    first_seq: int
    last_seq: int


async def wanted(connection: Connection) -> bool:
    """Whether the pool has passages."""
    row = await (await connection.execute(SQL["wanted"])).fetchone()
    return bool(row and row[0])


async def may_write(connection: Connection) -> bool:
    """Whether the pool has passages; locks that setting until the transaction ends."""
    await lock_to_write(connection)
    return await wanted(connection)


async def lock_to_write(connection: Connection) -> None:
    """Lock whether the pool has passages until the transaction ends."""
    await connection.execute(SQL["lock_to_write"])


async def switch(connection: Connection, *, on: bool) -> None:
    """Switch passages of the pool on or off, after waiting for transactions that write some."""
    await connection.execute(SQL["lock_to_switch"])
    await connection.execute(SQL["switch"], {"wanted": on})


def progress(session_id: str) -> Query[PassageProgress]:
    """Return how far a session's messages are cut into passages. Reading the answer raises NotFound."""

    def found(rows: list[PassageProgress]) -> PassageProgress:
        if not rows:
            raise NotFound(f"There is no session {session_id!r} in this pool.")
        return rows[0]

    return Query(SQL["progress"], {"session": session_id}, found, class_row(PassageProgress))


def to_cut(session_id: str, limit: int) -> Query[list[StoredMessage]]:
    """Return the messages of a session's last passage, and up to `limit` uncut ones, in order.

    One that is left out of passages has an empty text.
    """
    return Query(SQL["to_cut"], {"session": session_id, "limit": limit}, list, class_row(StoredMessage))


async def advance_cut(connection: Connection, session_id: str, seq: int) -> None:
    """Record that a session's messages up to `seq` are cut into passages."""
    await connection.execute(SQL["advance_cut"], {"session": session_id, "seq": seq})


async def behind(connection: Connection, after: str, limit: int) -> list[str]:
    """Return up to `limit` sessions with an id after `after` that have uncut messages, by id."""
    cursor = await connection.execute(SQL["behind"], {"after": after, "limit": limit})
    return [str(row[0]) for row in await cursor.fetchall()]


async def count_behind(connection: Connection) -> int:
    """Return how many sessions have uncut messages."""
    row = await (await connection.execute(SQL["count_behind"])).fetchone()
    return int(row[0]) if row else 0


async def insert(
    connection: Connection,
    session_id: str,
    project: str | None,
    new: Sequence[NewPassage],
    now: datetime,
    known: Mapping[int, str],
) -> None:
    """Write passages of a session with their keyword index, and queue them for embedding.

    A passage that was cut again keeps its id: `known` has the ids of former passages by their first seq.
    """
    made = new_ids("psg", now, len(new))
    ids = [known.get(passage.first_seq, new_id) for new_id, passage in zip(made, new, strict=True)]
    for start in range(0, len(new), _MOST_ROWS):
        some = slice(start, start + _MOST_ROWS)
        rows = await asyncio.to_thread(_as_json, ids[some], new[some])
        values = {"session": session_id, "project": project, "now": now, "rows": rows}
        await connection.execute(SQL["insert"], values)


def _as_json(ids: Sequence[str], new: Sequence[NewPassage]) -> str:
    """Return the rows of passages as one JSON array."""
    rows = (
        f'{json.dumps(_values(*each))[:-1]}, "parts": {each[1].parts_json}}}' for each in zip(ids, new, strict=True)
    )
    return f"[{','.join(rows)}]"


def _values(passage_id: str, passage: NewPassage) -> dict[str, Any]:
    return {
        "id": passage_id,
        "first_seq": passage.first_seq,
        "last_seq": passage.last_seq,
        "text": passage.text,
        "content_hash": passage.content_hash.hex(),
        "trust": passage.trust,
        "tokens": passage.tokens,
        "terms": passage.terms,
        "said_from": passage.said_from.isoformat(),
        "said_to": passage.said_to.isoformat(),
    }


async def delete_from(connection: Connection, session_id: str, seq: int) -> list[int]:
    """Delete a session's passages that begin at `seq` or later; return the numbers of their vectors."""
    cursor = await connection.execute(SQL["delete_from"], {"session": session_id, "seq": seq})
    return [int(row[0]) for row in await cursor.fetchall()]


async def delete(connection: Connection, passage_id: str) -> None:
    """Delete one passage."""
    await connection.execute(SQL["delete"], {"id": passage_id})


async def delete_over(connection: Connection, said_in: Mapping[str, Collection[int]]) -> list[Deleted]:
    """Delete passages that contain one of these messages (seqs by session); return them."""
    messages = [(session_id, seq) for session_id, seqs in said_in.items() for seq in seqs]
    values = {"sessions": [session_id for session_id, _ in messages], "seqs": [seq for _, seq in messages]}
    async with connection.cursor(row_factory=class_row(Deleted)) as cursor:
        await cursor.execute(SQL["delete_over"], values)
        return await cursor.fetchall()


async def count(connection: Connection) -> int:
    """Return how many passages the pool has."""
    row = await (await connection.execute(SQL["count"])).fetchone()
    return int(row[0]) if row else 0


async def delete_some(connection: Connection, limit: int) -> list[int]:
    """Delete up to `limit` passages of the pool; return the numbers of their vectors."""
    return [int(row[0]) for row in await (await connection.execute(SQL["delete_some"], {"limit": limit})).fetchall()]


async def start_over(connection: Connection, limit: int) -> int:
    """Mark the messages of up to `limit` sessions as uncut; return how many sessions."""
    return (await connection.execute(SQL["start_over"], {"limit": limit})).rowcount


def outdated(ids: Collection[str], moment: datetime, as_of: datetime | None) -> Query[dict[str, bool]]:
    """Return those of these passages with facts that have been superseded or have expired, and whether all have.

    It is judged at `moment`, the present, or by what was known at `as_of`.
    """
    values = {"ids": as_array(ids), "moment": as_of or moment, "as_of": as_of}
    return Query(SQL["outdated"], values, lambda rows: {str(row[0]): bool(row[1]) for row in rows})


def missing(passage_id: str) -> NotFound:
    """Return the error for a passage that does not exist."""
    hint = "It was forgotten, or passages were switched off or cut again since; `esker recall` shows existing ids."
    return NotFound(f"There is no passage {passage_id!r} in this pool.", hint=hint)


def by_ids(ids: Collection[str]) -> Query[dict[str, Passage]]:
    """Return passages by id; unknown ids are left out."""
    return Query(SQL["get"], {"ids": as_array(ids)}, lambda rows: {row.id: row for row in rows}, class_row(Passage))


async def get(connection: Connection, ids: Collection[str]) -> dict[str, Passage]:
    """Return passages by id; unknown ids are left out."""
    return await fetch(connection, by_ids(ids))
