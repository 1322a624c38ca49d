"""Remember: write the rows of an agent or a person, and read rows."""

import asyncio
import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from esker.server.core.clock import as_utc, in_zone
from esker.server.core.conversation.records import Passage, StoredSession
from esker.server.core.dates.mentioned import mentioned_time
from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.core.ids import is_passage, new_ids
from esker.server.core.records import Category, Filter, Memory, NewMemory, Principal, Priority, SourcedMemory
from esker.server.core.redaction import redact, redact_name
from esker.server.core.sources import sourced
from esker.server.core.text.indexing import IndexedMemory
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch, send
from esker.server.store import audit, memories, passages, quarantine, sessions, vectors
from esker.server.usecases.binding import bound_project, check_row, check_sessions
from esker.server.usecases.find_projects import renamed_projects
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.parts import Parts
from esker.server.usecases.quarantine import extend_quarantines
from esker.server.usecases.reflect_pool import schedule_daily

MAX_CHARACTERS = 16_000
_MOST_TRIES = 5
_OWN = "sha256:"
MAX_PINNED_TOKENS = 2_500
"""Most pinned tokens of one project, and of rows without one; together a third of a pack of the default size."""


@dataclass(frozen=True, slots=True)
class Note:
    """A row as the caller writes it. A `said_at` without an offset is UTC; None means now."""

    content: str
    manual: bool = False
    priority: Priority = "medium"
    category: Category = "fact"
    tags: Sequence[str] = ()
    project: str | None = None
    session_id: str | None = None
    said_at: datetime | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class PreparedNote:
    """A note that is valid and redacted."""

    note: Note
    content: str
    project: str | None
    tags: tuple[str, ...]
    said_at: datetime


async def remember(parts: Parts, who: Principal, notes: Sequence[Note]) -> list[str]:
    """Write notes and return their ids, in order. All are written or none.

    A note with a known external id, or with the words, session and project of a live note, is that note: writing it
    again can raise its priority or pin it, never the reverse. Raises NotFound for an unknown session, InvalidInput,
    and Conflict when an external id belongs to a row with other content.
    """
    return (await _remember(parts, who, notes, read=False)).ids


async def remember_one(parts: Parts, who: Principal, note: Note) -> SourcedMemory:
    """Write a note as `remember` does; return its row as of that transaction."""
    [row] = (await _remember(parts, who, [note], read=True)).rows
    return row


@dataclass(frozen=True, slots=True)
class _Written:
    """The ids of notes in order, and their rows if they were read."""

    ids: list[str]
    rows: list[SourcedMemory]


async def _remember(parts: Parts, who: Principal, notes: Sequence[Note], *, read: bool) -> _Written:
    now = parts.clock()
    if who.project is not None:
        notes = [replace(note, project=bound_project(who, note.project)) for note in notes]
    prepared = await asyncio.to_thread(lambda: [prepare(note, now) for note in notes])
    prepared = await _under_present_names(parts, who, prepared)
    places: dict[str, StoredSession] = {}
    if any(note.session_id is not None for note in notes):
        async with parts.database.tenant(who.pool_id) as connection:
            places = await sessions_of(connection, notes)
        check_sessions(who, places.values())
    rows = await asyncio.to_thread(rows_of, prepared, places, who.actor, now)
    for _ in range(_MOST_TRIES):
        try:
            written, is_covered = await _write(parts, who, rows, read=read)
        except _Gone:
            continue
        if is_covered:
            await extend_quarantines(parts, who.pool_id)
        return written
    if who.project is not None:
        raise Conflict(
            "An external id of these notes belongs to a memory of another project; nothing was written.",
            hint="External ids are names in a whole pool: use another one.",
        )
    raise Conflict("These notes are being written and forgotten at the same time.", hint="Try again.")


async def _under_present_names(parts: Parts, who: Principal, prepared: list[PreparedNote]) -> list[PreparedNote]:
    """Return notes with the present names of projects that were renamed, merged or forgotten."""
    named = {note.project for note in prepared if note.project is not None}
    if not named or who.project is not None:
        return prepared
    async with parts.database.moment_pipeline(who.pool_id) as connection:
        present = await renamed_projects(connection, named)
    return [replace(note, project=present.get(note.project or "", note.project)) for note in prepared]


class _Gone(Exception):
    """A row that one statement read was forgotten before the next."""


async def _write(parts: Parts, who: Principal, rows: Sequence[IndexedMemory], *, read: bool) -> tuple[_Written, bool]:
    """Write rows, or raise the live rows that they repeat; return also whether a quarantine may cover them.

    Raises _Gone, Conflict, InvalidInput.
    """
    async with parts.database.tenant_pipeline(who.pool_id) as connection:
        quarantines = await send(connection, quarantine.active())
        if any(row.memory.kind == "manual" for row in rows):
            await memories.lock_pins(connection)
        written = await memories.insert(connection, rows)
        known = await _repeated(connection, [row.memory for row in rows if row.memory.id not in written])
        ids = [known.get(row.memory.id, row.memory.id) for row in rows]
        there = await _existing(connection, ids if read else known.values())
        for row in there.values():
            check_row(who, row.project)
        await limit_pins(connection, [*there.values(), *(row.memory for row in rows if row.memory.id in written)])
        await vectors.enqueue(connection, written, parts.clock())
        await schedule_daily(parts, connection, parts.clock())
        await audit.insert(connection, who.actor, "memory.write", ids[0], {"memories": len(ids)}, parts.clock())
        shown = await with_sources(connection, [there[memory_id] for memory_id in ids]) if read else []
        return _Written(ids, shown), bool(await quarantines)


async def _repeated(connection: Connection, rows: Sequence[NewMemory]) -> dict[str, str]:
    """Raise the live rows that these rows, which were not written, repeat; return their ids by those of the rows."""
    if not rows:
        return {}
    names = {_named(row) for row in rows}
    known = await memories.by_external_id(connection, names)
    if known.keys() != names:
        # Going on in this transaction would break the lock order, so start again.
        raise _Gone
    again = [(_settled(row, known), row) for row in rows]
    await memories.raise_again(connection, again)
    return {row.id: memory_id for memory_id, row in again}


async def _existing(connection: Connection, ids: Collection[str]) -> dict[str, Memory]:
    """Return rows by id. Raises _Gone if one does not exist any more."""
    there = await memories.get(connection, ids) if ids else {}
    if there.keys() != {*ids}:
        raise _Gone
    return there


def prepare(note: Note, now: datetime) -> PreparedNote:
    content = redact(note.content).strip()
    if not content:
        raise InvalidInput("content must not be empty.")
    if len(content) > MAX_CHARACTERS:
        raise InvalidInput(
            f"content has {len(content):,} characters; the limit is {MAX_CHARACTERS:,}.",
            hint="One row is one fact. Send longer text as messages of a session.",
        )
    return PreparedNote(
        note,
        content,
        stored_name(note.project),
        tuple(dict.fromkeys(redact(tag) for tag in note.tags)),
        in_zone(note.said_at or now, "UTC"),
    )


async def sessions_of(connection: Connection, notes: Sequence[Note]) -> dict[str, StoredSession]:
    """Return the sessions that the notes belong to, by id. Raises NotFound."""
    asked = {note.session_id for note in notes if note.session_id is not None}
    found = await sessions.several(connection, asked) if asked else {}
    if unknown := sorted(asked - found.keys()):
        raise sessions.missing(unknown[0])
    return found


def rows_of(
    prepared: Sequence[PreparedNote], places: Mapping[str, StoredSession], author: str, now: datetime
) -> list[IndexedMemory]:
    ids = new_ids("mem", now, len(prepared))
    # They are indexed in batches, while Postgres writes the batch before.
    return [
        IndexedMemory(_row(note, places, memory_id, author, now)) for memory_id, note in zip(ids, prepared, strict=True)
    ]


def _row(
    prepared: PreparedNote, places: Mapping[str, StoredSession], memory_id: str, author: str, now: datetime
) -> NewMemory:
    note = prepared.note
    session = places[note.session_id] if note.session_id is not None else None
    project = prepared.project or (session.project if session else None)
    refers = mentioned_time(prepared.content, prepared.said_at, session.timezone if session else "UTC").refers
    return NewMemory(
        id=memory_id,
        kind="manual" if note.manual else "note",
        priority=note.priority,
        category=note.category,
        # The author is not known, but most likely an agent. A person confirms a row afterwards.
        trust="assistant",
        content=prepared.content,
        author=author,
        said_at=prepared.said_at,
        created_at=now,
        session_id=note.session_id,
        project=project,
        tags=prepared.tags,
        refers_from=refers.start if refers else None,
        refers_to=refers.end if refers else None,
        external_id=redact_name(note.external_id) if note.external_id else _own_name(note, prepared.content, project),
    )


def _own_name(note: Note, content: str, project: str | None) -> str:
    """Return the external id of a note without one: a hash of its project, session and content."""
    identity = "\0".join([project or "", note.session_id or "", content])
    return f"{_OWN}{hashlib.sha256(identity.encode()).hexdigest()}"


def is_own_name(external_id: str) -> bool:
    """Whether an external id was derived from the note, because the caller gave none."""
    return external_id.startswith(_OWN)


def _named(row: NewMemory) -> str:
    """Return the external id of a note; every note has one."""
    assert row.external_id is not None  # `_row` derives one if the caller gave none
    return row.external_id


def _settled(row: NewMemory, known: Mapping[str, memories.NamedMemory]) -> str:
    named = known[_named(row)]
    if named.content != row.content:
        raise Conflict(
            f"The external id {row.external_id!r} belongs to {named.id}, which has other content.",
            hint="Delete that one first, or use another external id.",
        )
    return named.id


async def limit_pins(connection: Connection, touched: Collection[Memory | NewMemory]) -> None:
    """Raise InvalidInput if the projects of these rows pin more than every pack can show."""
    for project in {row.project for row in touched if row.kind == "manual"}:
        if await memories.pinned_tokens(connection, project) > MAX_PINNED_TOKENS:
            place = f"project {project!r}" if project else "all projects"
            raise InvalidInput(
                f"More than {MAX_PINNED_TOKENS:,} tokens would be pinned for {place}.",
                hint="Pinned rows are in every pack. Forget a pinned row first, or write this one as a note.",
            )


async def get_memory(parts: Parts, pool_id: str, memory_id: str) -> SourcedMemory:
    """Return one row with all its sources. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        found = await memories.get(connection, [memory_id])
        if memory_id not in found:
            raise memories.missing(memory_id)
        return (await with_sources(connection, [found[memory_id]]))[0]


async def get_text(parts: Parts, pool_id: str, text_id: str) -> SourcedMemory | Passage:
    """Return one row with all its sources, or a passage. Raises NotFound."""
    if not is_passage(text_id):
        return await get_memory(parts, pool_id, text_id)
    async with parts.database.tenant(pool_id) as connection:
        found = await passages.get(connection, [text_id])
    if text_id not in found:
        raise passages.missing(text_id)
    return found[text_id]


async def with_sources(connection: Connection, rows: Sequence[Memory]) -> list[SourcedMemory]:
    """Return rows with all their sources."""
    other_sources = await fetch(connection, memories.other_sources([row.id for row in rows]))
    return [sourced(row, other_sources.get(row.id, ())) for row in rows]


async def list_memories(
    parts: Parts, pool_id: str, row_filter: Filter, *, before: str | None, limit: int
) -> list[SourcedMemory]:
    """Return rows with their sources, newest first, that are older than the row `before`.

    Raises InvalidInput for a time out of range, NotFound for an unknown session or row `before`.
    """
    bounded = replace(
        row_filter, since=as_utc(row_filter.since), until=as_utc(row_filter.until), as_of=as_utc(row_filter.as_of)
    )
    async with parts.database.tenant(pool_id) as connection:
        if row_filter.project is not None:
            present = await renamed_projects(connection, [row_filter.project])
            bounded = replace(bounded, project=present.get(row_filter.project, row_filter.project))
        if row_filter.session is not None:
            await sessions.get(connection, row_filter.session)
        if before is not None and not await memories.get(connection, [before]):
            raise NotFound(
                f"There is no memory {before!r} any more, after which the list would continue.",
                hint="Begin the list again.",
            )
        return await with_sources(connection, await memories.listed(connection, bounded, before, limit))
