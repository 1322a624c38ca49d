"""Passages: windows of a session's messages, with the keyword index that is written beside them."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row

from server.core.errors import NotFound
from server.core.ids import new_ids
from server.core.indexing import part_values
from server.core.passages import NewPassage
from server.core.records import Passage
from server.db.database import Connection
from server.db.statements import Statements, as_json

SQL = Statements(Path(__file__).parent / "sql/passages.sql")

_MOST_ROWS = 200


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a session's messages are in passages: looked at up to `passages_seq` of `last_seq`.

    From `first_seq` on they are to be looked at, since the last passage may grow; `left_out` of those are in none.
    """

    passages_seq: int
    last_seq: int
    project: str | None
    first_seq: int
    left_out: int


async def wanted(connection: Connection) -> bool:
    """Tell whether the pool has passages."""
    row = await (await connection.execute(SQL["wanted"])).fetchone()
    return bool(row and row[0])


async def progress(connection: Connection, session_id: str) -> Progress:
    """Return how far a session's messages are in passages. Raises NotFound."""
    async with connection.cursor(row_factory=class_row(Progress)) as cursor:
        await cursor.execute(SQL["progress"], {"session": session_id})
        found = await cursor.fetchone()
    if found is None:
        raise NotFound(f"There is no session {session_id!r} in this pool.")
    return found


async def reach(connection: Connection, session_id: str, seq: int) -> None:
    """Say that a session's messages up to `seq` were looked at."""
    await connection.execute(SQL["reach"], {"session": session_id, "seq": seq})


async def behind(connection: Connection, limit: int) -> list[str]:
    """Return sessions with messages that were not looked at, at most so many."""
    return [str(row[0]) for row in await (await connection.execute(SQL["behind"], {"limit": limit})).fetchall()]


async def insert(
    connection: Connection, session_id: str, project: str | None, new: Sequence[NewPassage], now: datetime
) -> None:
    """Write passages of a session with their keyword index, and queue them for embedding."""
    ids = new_ids("psg", now, len(new))
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


async def delete_over(
    connection: Connection, session_id: str, seqs: Collection[int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Delete passages that show one of these messages; return the numbers of their vectors, and their spans."""
    cursor = await connection.execute(SQL["delete_over"], {"session": session_id, "seqs": sorted(seqs)})
    found = await cursor.fetchall()
    return [int(row[0]) for row in found], [(int(row[1]), int(row[2])) for row in found]


async def delete_some(connection: Connection, limit: int) -> list[int]:
    """Delete up to `limit` passages of the pool; return the numbers of their vectors."""
    return [int(row[0]) for row in await (await connection.execute(SQL["delete_some"], {"limit": limit})).fetchall()]


async def start_over(connection: Connection) -> None:
    """Say that no message of the pool was looked at."""
    await connection.execute(SQL["start_over"])


async def outdated(connection: Connection, ids: Collection[str], moment: datetime) -> set[str]:
    """Return those of these passages of which all that was kept has been replaced, or has expired by a moment."""
    cursor = await connection.execute(SQL["outdated"], {"ids": list(ids), "moment": moment})
    return {str(row[0]) for row in await cursor.fetchall()}


async def get(connection: Connection, ids: Collection[str]) -> dict[str, Passage]:
    """Return those of these passages that are there, by id."""
    async with connection.cursor(row_factory=class_row(Passage)) as cursor:
        await cursor.execute(SQL["get"], {"ids": list(ids)})
        return {passage.id: passage for passage in await cursor.fetchall()}
