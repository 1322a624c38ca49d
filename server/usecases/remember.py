"""Remember: rows that an agent or a person writes, and reading rows back."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from server.core.clock import Clock, in_zone
from server.core.errors import Conflict, InvalidInput, NotFound
from server.core.ids import new_ids
from server.core.records import Category, Filter, Memory, NewMemory, Principal, Priority
from server.core.redaction import redact
from server.db.database import Connection
from server.store import memories, sessions, vectors
from server.usecases.parts import Parts

MAX_CHARACTERS = 16_000


@dataclass(frozen=True, slots=True)
class Note:
    """A row as it is handed in. A `said_at` without an offset is UTC; None is now."""

    content: str
    manual: bool = False
    priority: Priority = "medium"
    category: Category = "fact"
    tags: Sequence[str] = ()
    project: str | None = None
    session_id: str | None = None
    said_at: datetime | None = None
    external_id: str | None = None


async def remember(parts: Parts, who: Principal, notes: Sequence[Note]) -> list[str]:
    """Write notes and return their ids, in order. All are written or none.

    A note with an external id that is known, or without one and word for word like a live note of the same place, is
    that note. Raises NotFound for an unknown session, InvalidInput, and Conflict when an external id names a row that
    says something else.
    """
    now = parts.clock()
    async with parts.database.tenant(who.pool_id) as connection:
        projects = {session_id: await _project(connection, session_id) for session_id in {n.session_id for n in notes}}
        ids = new_ids("mem", now, len(notes))
        rows = [
            _row(note, memory_id, projects[note.session_id], who.actor, parts.clock)
            for memory_id, note in zip(ids, notes, strict=True)
        ]
        written = await memories.insert(connection, rows)
        await vectors.enqueue(connection, written, now)
        known = await memories.by_external_id(connection, {row.external_id for row in rows if row.external_id})
        return [_settled(row, known) for row in rows]


async def _project(connection: Connection, session_id: str | None) -> str | None:
    return (await sessions.get(connection, session_id)).project if session_id else None


def _row(note: Note, memory_id: str, session_project: str | None, author: str, clock: Clock) -> NewMemory:
    now = clock()
    content = redact(note.content).strip()
    if not content:
        raise InvalidInput("content is empty.")
    if len(content) > MAX_CHARACTERS:
        raise InvalidInput(
            f"content has {len(content):,} characters; the limit is {MAX_CHARACTERS:,}.",
            hint="One row is one fact. Send longer text as messages of a session.",
        )
    project = redact(note.project) if note.project else session_project
    return NewMemory(
        id=memory_id,
        kind="manual" if note.manual else "note",
        priority=note.priority,
        category=note.category,
        trust="user",
        content=content,
        author=author,
        said_at=in_zone(note.said_at or now, "UTC"),
        created_at=now,
        session_id=note.session_id,
        project=project,
        tags=tuple(dict.fromkeys(redact(tag) for tag in note.tags)),
        external_id=note.external_id or _own_name(note, content, project),
    )


def _own_name(note: Note, content: str, project: str | None) -> str:
    """Return the name of a note that its caller did not name: what it says and where."""
    place = "\0".join([str(note.manual), project or "", note.session_id or "", content])
    return f"sha256:{hashlib.sha256(place.encode()).hexdigest()}"


def _settled(row: NewMemory, known: dict[str, memories.NamedMemory]) -> str:
    named = known[row.external_id or ""]
    if named.content != row.content:
        raise Conflict(
            f"The external id {row.external_id!r} names {named.id}, which says something else.",
            hint="Delete that one first, or use another external id.",
        )
    return named.id


async def get_memory(parts: Parts, pool_id: str, memory_id: str) -> Memory:
    """Return one row. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        found = await memories.get(connection, [memory_id])
    if memory_id not in found:
        raise NotFound(f"There is no memory {memory_id!r} in this pool.")
    return found[memory_id]


async def list_memories(parts: Parts, pool_id: str, what: Filter, *, before: str | None, limit: int) -> list[Memory]:
    """Return rows, newest first, that come after the row `before` in that order."""
    async with parts.database.tenant(pool_id) as connection:
        return await memories.listed(connection, what, before, limit)
