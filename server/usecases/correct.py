"""Correct a memory: a right row replaces the wrong one, which is kept as superseded."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from esker.server.core.errors import Conflict, InvalidInput
from esker.server.core.facts.records import Superseder
from esker.server.core.ids import is_passage
from esker.server.core.records import Category, Memory, Principal, Priority, SourcedMemory
from esker.server.db.database import Connection
from esker.server.store import audit, memories, vectors
from esker.server.usecases.binding import check_row, check_sessions
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect_pool import schedule_daily
from esker.server.usecases.remember import Note, is_own_name, limit_pins, prepare, rows_of, sessions_of, with_sources


@dataclass(frozen=True, slots=True)
class Correction:
    """The new values of a row; None keeps the old value. A `pinned` row comes first in every pack."""

    content: str | None = None
    priority: Priority | None = None
    category: Category | None = None
    tags: Sequence[str] | None = None
    external_id: str | None = None
    pinned: bool | None = None


async def correct(parts: Parts, who: Principal, memory_id: str, correction: Correction) -> SourcedMemory:
    """Replace a live row by a note of the same session and project; return the note.

    The id names a version: of two callers that correct the same row, the second gets a Conflict. Raises NotFound,
    InvalidInput (also for a passage, which is verbatim), and Conflict when the row has been replaced.
    """
    if is_passage(memory_id):
        raise InvalidInput("A passage is verbatim and cannot be corrected.", hint="Remember the right fact instead.")
    if correction == Correction():
        raise InvalidInput("The correction is empty.", hint="Give content, priority, category, tags or pinned.")
    now = parts.clock()
    async with parts.database.tenant(who.pool_id) as connection:
        old = (await memories.get(connection, [memory_id])).get(memory_id)
        if old is None:
            raise memories.missing(memory_id)
        note = _note(old, correction)
        places = await sessions_of(connection, [note])
    check_row(who, old.project)
    check_sessions(who, places.values())
    [row] = await asyncio.to_thread(lambda: rows_of([prepare(note, now)], places, who.actor, now))
    name = row.memory.external_id or ""
    async with parts.database.tenant(who.pool_id) as connection:
        if note.manual:
            await memories.lock_pins(connection)
        if not await memories.lock_live(connection, [memory_id]):
            raise await _replaced(connection, memory_id)
        named = (await memories.by_external_id(connection, [name])).get(name)
        if named is not None and named.id != memory_id:
            if named.content != row.memory.content:
                raise Conflict(f"The external id {name!r} belongs to {named.id}, which has other content.")
            # The right content is stored under this external id already.
            await memories.supersede(connection, {memory_id: Superseder(named.id, now)}, now)
            return (await with_sources(connection, [(await memories.get(connection, [named.id]))[named.id]]))[0]
        # Superseding the old row frees its external id for the new one.
        await memories.supersede(connection, {memory_id: Superseder(row.memory.id, row.memory.said_at)}, now)
        written = await memories.insert(connection, [row])
        if not written:
            raise Conflict("Another request is writing this memory; nothing was changed.", hint="Try again.")
        there = await memories.get(connection, [row.memory.id])
        await limit_pins(connection, there.values())
        await vectors.enqueue(connection, written, now)
        await schedule_daily(parts, connection, now)
        await audit.insert(connection, who.actor, "memory.correct", memory_id, {"memories": 1}, now)
        return (await with_sources(connection, [there[row.memory.id]]))[0]


def _note(old: Memory, correction: Correction) -> Note:
    # An external id that the caller gave stays; one that was derived from the content is derived again.
    named = old.external_id if old.external_id and not is_own_name(old.external_id) else None
    return Note(
        old.content if correction.content is None else correction.content,
        manual=old.kind == "manual" if correction.pinned is None else correction.pinned,
        priority=correction.priority or old.priority,
        category=correction.category or old.category,
        tags=old.tags if correction.tags is None else correction.tags,
        project=old.project,
        session_id=old.session_id,
        external_id=correction.external_id or named,
    )


async def _replaced(connection: Connection, memory_id: str) -> Exception:
    """Return the error for a row that is not live any more."""
    row = (await memories.get(connection, [memory_id])).get(memory_id)
    if row is None:
        return memories.missing(memory_id)
    return Conflict(
        f"{memory_id} was replaced by {row.superseded_by} meanwhile; nothing was changed.",
        hint="Read that one, and correct it if it is wrong.",
    )
