"""Finds the texts that are to be forgotten: what was asked for, what repeats it, and the notes that mention it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import args_row

from esker.server.core.conversation.records import Role
from esker.server.core.facts.forgetting import Selection
from esker.server.core.json_input import Json
from esker.server.core.records import Kind
from esker.server.core.text.phrases import Phrases
from esker.server.db.database import Connection
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/forgetting.sql")

# The newest memories of a term that are compared with a fact, and the messages of a session after it.
_MOST_SHARING = 500
_MOST_AFTER = 500


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that may have to be forgotten; without words to look for, its content is left out."""

    session_id: str
    seq: int
    role: Role
    sent_at: datetime
    text: str
    content: Json


async def selected_memories(connection: Connection, selection: Selection, phrases: Phrases) -> set[str]:
    """Return the ids of memories within the limits of a selection that may say one of its words."""
    values = {**selection.limits, "patterns": list(phrases.patterns) or None}
    return {str(row[0]) for row in await (await connection.execute(SQL["memories"], values)).fetchall()}


async def selected_messages(connection: Connection, selection: Selection, phrases: Phrases) -> list[FoundMessage]:
    """Return the messages within the limits of a selection that may say one of its words."""
    return await _messages(connection, "messages", {**selection.limits, "patterns": list(phrases.patterns) or None})


async def messages_with(connection: Connection, phrases: Phrases) -> list[FoundMessage]:
    """Return the messages of the pool that may contain one of some phrases."""
    return await selected_messages(connection, Selection(), phrases) if phrases else []


async def some_messages(connection: Connection, said_in: Mapping[str, Collection[int]]) -> list[FoundMessage]:
    """Return messages (session id → seqs) that are not forgotten already."""
    return await _messages(connection, "some_messages", _pairs(said_in))


async def replies(connection: Connection, said_in: Mapping[str, Collection[int]]) -> list[FoundMessage]:
    """Return the assistant's next message after each of some messages (session id → seqs)."""
    return await _messages(connection, "replies", _pairs(said_in))


async def messages_after(connection: Connection, said_in: Mapping[str, Collection[int]]) -> list[FoundMessage]:
    """Return the next messages after the first of some messages (session id → seqs) in each session."""
    return await _messages(connection, "after", {**_pairs(said_in), "limit": _MOST_AFTER})


async def _messages(connection: Connection, statement: str, values: dict[str, Any]) -> list[FoundMessage]:
    async with connection.cursor(row_factory=args_row(FoundMessage)) as cursor:
        await cursor.execute(SQL[statement], values)
        return await cursor.fetchall()


async def memories_sharing(
    connection: Connection, terms: Collection[str], ids: Collection[str]
) -> list[tuple[str, Kind, str]]:
    """Return id, kind and content of memories other than `ids` that share one of some terms."""
    values = {"terms": list(terms), "limit": _MOST_SHARING, "ids": list(ids)}
    return await (await connection.execute(SQL["sharing"], values)).fetchall()


async def other_memories(
    connection: Connection,
    phrases: Phrases,
    ids: Collection[str],
    since: datetime,
    *,
    spreads: bool,
    limit: int | None,
) -> list[tuple[Kind, str]]:
    """Return kind and content of other memories that may contain some phrases, and did not get them from a fact said at
    `since`.

    Memories of agents and tools got them from the fact only if it `spreads`. Return at most `limit` of them; None: all.
    """
    values = {
        "patterns": list(phrases.patterns),
        "ids": list(ids),
        "since": since,
        "spreads": spreads,
        "limit": limit,
    }
    rows = await (await connection.execute(SQL["other_memories"], values)).fetchall()
    return [(kind, content) for _, kind, content in rows]


async def is_in_other_sessions(
    connection: Connection, phrases: Phrases, sessions: Collection[str], until: datetime | None
) -> bool:
    """Whether some phrases may be in a message of another session, sent before `until` (None: at any time)."""
    values = {"patterns": list(phrases.patterns), "sessions": list(sessions), "until": until}
    row = await (await connection.execute(SQL["said_in_other_sessions"], values)).fetchone()
    return bool(row and row[0])


async def notes_with(connection: Connection, phrases: Phrases) -> list[tuple[str, str]]:
    """Return sessions with those of their tasks, continuations and titles that may contain one of some phrases."""
    if not phrases:
        return []
    cursor = await connection.execute(SQL["notes"], {"patterns": list(phrases.patterns)})
    return [(str(session_id), str(note)) for session_id, note in await cursor.fetchall()]


async def notes_of(connection: Connection, said_in: Mapping[str, Collection[int]]) -> set[str]:
    """Return the tasks, continuations and titles of sessions, and of groups that cover these messages."""
    return {str(row[0]) for row in await (await connection.execute(SQL["notes_of"], _pairs(said_in))).fetchall()}


async def in_places(connection: Connection, phrases: Phrases) -> tuple[set[str], set[str]]:
    """Return the ids of memories and of sessions whose project or directory may contain one of some phrases."""
    rows = await (await connection.execute(SQL["in_places"], {"patterns": list(phrases.patterns)})).fetchall()
    return {str(row[0]) for row in rows if row[0]}, {str(row[1]) for row in rows if row[1]}


async def forget_notes(connection: Connection, sessions: Collection[str], notes: Collection[str]) -> None:
    """Delete the tasks, continuations and titles of sessions and of their groups that are among these notes."""
    await connection.execute(SQL["forget_notes"], {"sessions": list(sessions), "notes": list(notes)})


def _pairs(said_in: Mapping[str, Collection[int]]) -> dict[str, Sequence[Any]]:
    pairs = [(session_id, seq) for session_id, seqs in said_in.items() for seq in seqs]
    return {"sessions": [session_id for session_id, _ in pairs], "seqs": [seq for _, seq in pairs]}
