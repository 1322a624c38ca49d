"""Passages: windows of a session's messages, with the keyword index that is written beside them."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row

from esker.server.core.conversation.passages import NewPassage
from esker.server.core.errors import NotFound
from esker.server.core.ids import new_ids
from esker.server.core.records import Passage
from esker.server.core.text.indexing import part_values
from esker.server.db.database import Connection
from esker.server.db.statements import Statements, as_json

SQL = Statements(Path(__file__).parent / "sql/passages.sql")

_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class PassageProgress:
    """How far a session's messages are in passages: looked at up to `passages_seq` of `last_seq`.

    The last passage, if there is one, is `open`: it may grow. `left_out` messages from its first one on are in none.
    """

    passages_seq: int
    last_seq: int
    project: str | None
    open_id: str | None
    open_first: int | None
    open_last: int | None
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
    """Tell whether the pool has passages."""
    row = await (await connection.execute(SQL["wanted"])).fetchone()
    return bool(row and row[0])


async def may_write(connection: Connection) -> bool:
    """Tell whether the pool has passages, and let that not change until the transaction ends."""
    await connection.execute(SQL["lock_to_write"])
    return await wanted(connection)


async def switch(connection: Connection, *, on: bool) -> None:
    """Say whether the pool has passages, when nobody writes any."""
    await connection.execute(SQL["lock_to_switch"])
    await connection.execute(SQL["switch"], {"wanted": on})


async def progress(connection: Connection, session_id: str) -> PassageProgress:
    """Return how far a session's messages are in passages. Raises NotFound."""
    async with connection.cursor(row_factory=class_row(PassageProgress)) as cursor:
        await cursor.execute(SQL["progress"], {"session": session_id})
        found = await cursor.fetchone()
    if found is None:
        raise NotFound(f"There is no session {session_id!r} in this pool.")
    return found


async def reach(connection: Connection, session_id: str, seq: int) -> None:
    """Say that a session's messages up to `seq` were looked at."""
    await connection.execute(SQL["reach"], {"session": session_id, "seq": seq})


async def behind(connection: Connection, after: str, limit: int) -> list[str]:
    """Return sessions behind `after` with messages that were not looked at, at most so many, in the order of ids."""
    cursor = await connection.execute(SQL["behind"], {"after": after, "limit": limit})
    return [str(row[0]) for row in await cursor.fetchall()]


async def count_behind(connection: Connection) -> int:
    """Return how many sessions have messages that were not looked at."""
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

    A window that was cut anew keeps its id: `known` has those of passages that were there, by their first message.
    """
    made = new_ids("psg", now, len(new))
    ids = [known.get(passage.first_seq, new_id) for new_id, passage in zip(made, new, strict=True)]
    for start in range(0, len(new), _MOST_ROWS):
        some = slice(start, start + _MOST_ROWS)
        rows = await asyncio.to_thread(as_json, map(_values, ids[some], new[some]))
        values = {"session": session_id, "project": project, "now": now, "rows": rows}
        await connection.execute(SQL["insert"], values)


def _values(passage_id: str, passage: NewPassage) -> dict[str, Any]:
    return {
        "id": passage_id,
        "first_seq": passage.first_seq,
        "last_seq": passage.last_seq,
        "text": passage.text,
        "content_hash": passage.content_hash.hex(),
        "trust": passage.trust,
        "tokens": passage.tokens,
        "terms": sum(part.total() for part in passage.parts),
        "parts": part_values(passage.parts),
        "said_from": passage.said_from.isoformat(),
        "said_to": passage.said_to.isoformat(),
    }


async def delete_from(connection: Connection, session_id: str, seq: int) -> list[int]:
    """Delete a session's passages that begin at `seq` or behind it; return the numbers of their vectors."""
    cursor = await connection.execute(SQL["delete_from"], {"session": session_id, "seq": seq})
    return [int(row[0]) for row in await cursor.fetchall()]


async def delete_over(connection: Connection, said_in: Mapping[str, Collection[int]]) -> list[Deleted]:
    """Delete passages that show one of these messages, which are given by their sessions; return them."""
    places = [(session_id, seq) for session_id, seqs in said_in.items() for seq in seqs]
    values = {"sessions": [session_id for session_id, _ in places], "seqs": [seq for _, seq in places]}
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
    """Say of up to `limit` sessions that their messages were not looked at; return of how many."""
    return (await connection.execute(SQL["start_over"], {"limit": limit})).rowcount


async def outdated(connection: Connection, ids: Collection[str], moment: datetime, as_of: datetime | None) -> set[str]:
    """Return those of these passages of which all that was kept has been replaced, or has expired.

    That is by what is known at the `moment`, which is the present, or was known `as_of` another.
    """
    values = {"ids": list(ids), "moment": as_of or moment, "as_of": as_of}
    cursor = await connection.execute(SQL["outdated"], values)
    return {str(row[0]) for row in await cursor.fetchall()}


def missing(passage_id: str) -> NotFound:
    """Return the error for a passage that is not there."""
    hint = "It was forgotten, or passages were switched off or cut anew since; `esker recall` shows ids that are there."
    return NotFound(f"There is no passage {passage_id!r} in this pool.", hint=hint)


async def get(connection: Connection, ids: Collection[str]) -> dict[str, Passage]:
    """Return those of these passages that are there, by id."""
    async with connection.cursor(row_factory=class_row(Passage)) as cursor:
        await cursor.execute(SQL["get"], {"ids": list(ids)})
        return {passage.id: passage for passage in await cursor.fetchall()}
