"""Import: what a pool's file holds is written as it was, part by part, and once however often it comes.

What is there already stays as it is. Terms, counters and passages are made by what makes them of new rows; vectors are
made by the worker, and no language model is asked: what was observed comes with its groups.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from esker.server.core.errors import Conflict, InvalidInput
from esker.server.core.json_input import Json
from esker.server.core.pool.lines import TYPES, ImportBatch, LineType, MemoryLine, ReflectionLine, read_batch
from esker.server.core.records import NewMemory, Principal
from esker.server.core.text.indexing import IndexedMemory, indexed
from esker.server.db.database import Connection
from esker.server.store import audit, jobs, memories, pool_import, vectors
from esker.server.store.memories import Past
from esker.server.store.pool_import import KnownMemory
from esker.server.usecases.cut_passages import cut_passages
from esker.server.usecases.import_sessions import import_sessions
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect_pool import schedule_daily

# What cannot change of a reflection.
_FIXED = ("scope", "session_id", "project", "reflector", "created_at")


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many lines of each type were `new`, and `known`. `ended`: the end of the file was among them."""

    new: dict[LineType, int]
    known: dict[LineType, int]
    ended: bool


async def import_pool(parts: Parts, who: Principal, body: bytes, first_line: int = 2) -> ImportReport:
    """Write a part of a pool's file: its header, and lines from number `first_line` on. All are written or none.

    Parts have to come in the order of the file. Raises InvalidInput for a line that is broken, unknown or out of order,
    and Conflict for one that this pool has with other content, both with its number.
    """
    batch, rows = await asyncio.to_thread(_read, body, first_line)
    last_line = first_line + body.rstrip().count(b"\n") - 1
    async with parts.database.tenant(who.pool_id) as connection:
        with pool_import.told_as_conflict(first_line, last_line):
            counts = await _write(parts, connection, who, batch, rows)
        if batch.ends:
            await _schedule(parts, connection)
    for session_id in sorted({line.session_id for line in batch.messages.values()}):
        await cut_passages(parts, who.pool_id, session_id)
    new = dict(zip(TYPES, counts, strict=True))
    return ImportReport(new, {name: count - new[name] for name, count in batch.counts.items()}, bool(batch.ends))


async def _schedule(parts: Parts, connection: Connection) -> None:
    """Have done what comes after messages and memories, now that all of them are there."""
    now = parts.clock()
    idle = now + timedelta(seconds=parts.settings.observe_idle_seconds)
    await jobs.schedule_unobserved(connection, parts.settings.observe_tokens, idle, now)
    await schedule_daily(parts, connection, now)


def _read(body: bytes, first_line: int) -> tuple[ImportBatch, list[IndexedMemory]]:
    batch = read_batch(body, first_line)
    return batch, indexed(map(_row, batch.memories.values()))


def _row(line: MemoryLine) -> NewMemory:
    return NewMemory(
        id=line.id,
        kind=line.kind,
        priority=line.priority,
        category=line.category,
        trust=line.trust,
        content=line.content,
        author=line.author,
        said_at=line.said_at,
        created_at=line.created_at,
        session_id=line.session_id,
        group_id=line.group_id,
        project=line.project,
        tags=tuple(line.tags),
        source_seqs=tuple(line.source_seqs),
        source_ids=tuple(line.source_ids),
        refers_from=line.refers_from,
        refers_to=line.refers_to,
        valid_until=line.valid_until,
        reflection_id=line.reflection_id,
        external_id=line.external_id,
        tentative=line.tentative,
        facet=line.facet,
    )


def _past(line: MemoryLine) -> Past:
    return Past(line.last_used_at, line.superseded_by, line.superseded_at, line.outdated_at, line.left_alone)


async def _write(
    parts: Parts, connection: Connection, who: Principal, batch: ImportBatch, rows: Sequence[IndexedMemory]
) -> tuple[int, ...]:
    """Write what is new; return how many lines of each type that was."""
    await pool_import.lock(connection)
    of_sessions = await import_sessions(connection, batch)
    written = await _import_memories(parts, connection, batch.memories, rows)
    reflected = await _import_reflections(connection, batch.reflections)
    counts = (*of_sessions, written, reflected)
    if any(counts):
        detail: dict[str, Json] = dict(zip(TYPES, counts, strict=True))
        await audit.insert(connection, who.actor, "pool.import", batch.header.pool, detail, parts.clock())
    return counts


async def _import_memories(
    parts: Parts, connection: Connection, lines: Mapping[int, MemoryLine], rows: Sequence[IndexedMemory]
) -> int:
    """Write memories that are new; return how many. Those that are there only learn what is new about them."""
    if not lines:
        return 0
    places = {number: _places(line) for number, line in lines.items()}
    await _require_places(connection, places)
    known = await pool_import.known_memories(connection, lines.values())
    for number, line in lines.items():
        if line.id in known and not known[line.id].same:
            raise Conflict(f"Line {number}: {line.id} says something else here.")
    await _learn(connection, [line for line in lines.values() if line.id in known], known)
    new = {number: line for number, line in lines.items() if line.id not in known}
    fresh = [row for row in rows if row.memory.id not in known]
    written = await memories.insert(connection, fresh, {line.id: _past(line) for line in new.values()})
    for number, line in new.items():
        if line.id not in written:
            raise Conflict(
                f"Line {number}: the external id {line.external_id!r} names another row here.",
                hint="Forget that one first, or import into a pool of its own.",
            )
    await pool_import.insert_sources(connection, list(new.values()))
    await vectors.enqueue(connection, written, parts.clock())
    return len(new)


def _places(line: MemoryLine) -> set[str]:
    """Return the sessions and groups that a memory belongs to."""
    heard = (place for source in line.sources for place in (source.session_id, source.group_id))
    return {place for place in (line.session_id, line.group_id, *heard) if place}


async def _require_places(connection: Connection, places: Mapping[int, Iterable[str]]) -> None:
    """Raise InvalidInput for the first line that belongs to a session or a group that is not there."""
    there = await pool_import.places(connection, {place for of_line in places.values() for place in of_line})
    for number, of_line in places.items():
        if missing := sorted(set(of_line) - there):
            raise InvalidInput(f"Line {number}: {missing[0]} is not there; its line comes first.")


async def _learn(connection: Connection, lines: Sequence[MemoryLine], known: Mapping[str, KnownMemory]) -> None:
    """Let memories that are there be replaced by what the file brings, and learn where else they were said.

    A row that is live here although what replaced it is here as well was brought back here, and stays live.
    """
    replaced = [line for line in lines if line.superseded_by and known[line.id].live]
    here = await pool_import.superseders(connection, {line.superseded_by or "" for line in replaced})
    replaced = [line for line in replaced if line.superseded_by not in here]
    said = await pool_import.known_sources(connection, [line.id for line in lines])
    again = [line for line in lines if {(line.id, source.group_id) for source in line.sources} - said]
    touched = await memories.lock_to_change(connection, {line.id for line in (*replaced, *again)})
    await pool_import.supersede(connection, [line for line in replaced if line.id in touched])
    await pool_import.say_again(connection, [line for line in again if line.id in touched])


async def _import_reflections(connection: Connection, lines: Mapping[int, ReflectionLine]) -> int:
    """Write reflections that are new; return how many."""
    if not lines:
        return 0
    await _require_places(connection, {n: {line.session_id} for n, line in lines.items() if line.session_id})
    known = await pool_import.known_reflections(connection, [line.id for line in lines.values()])
    for number, line in lines.items():
        there = known.get(line.id)
        if there and any(getattr(there, name) != getattr(line, name) for name in _FIXED):
            raise Conflict(f"Line {number}: {line.id} is another reflection here.")
    new = [line for line in lines.values() if line.id not in known]
    await pool_import.insert_reflections(connection, new)
    return len(new)
