"""Import: write the lines of a pool's file as they were, part by part; importing a line again changes nothing.

Existing records stay as they are. Terms, counters and texts of passages are derived as for new rows; the worker makes
the vectors. No language model is asked: observed messages come with their groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from esker.server.core.conversation.trust import lowest_trust
from esker.server.core.errors import Conflict, InvalidInput
from esker.server.core.ids import is_quarantine
from esker.server.core.json_input import Json
from esker.server.core.pool.lines import TYPES, ImportBatch, LineType, MemoryLine, ReflectionLine, read_batch
from esker.server.core.records import NewMemory, Principal, Trust
from esker.server.core.text.indexing import IndexedMemory, indexed
from esker.server.db.database import Connection
from esker.server.store import audit, jobs, memories, pool_import, vectors
from esker.server.store.memories import Past
from esker.server.store.pool_import import KnownMemory
from esker.server.usecases.cut_passages import cut_behind, cut_passages
from esker.server.usecases.forgotten_places import batch_with_new_names
from esker.server.usecases.import_sessions import import_sessions
from esker.server.usecases.parts import Parts
from esker.server.usecases.quarantine import extend_quarantines
from esker.server.usecases.reflect_pool import schedule_daily
from esker.server.usecases.tombstones import SaidText, are_forgotten

# The columns of a reflection that never change.
_FIXED = ("scope", "session_id", "project", "reflector", "created_at")


@dataclass(frozen=True, slots=True)
class ImportReport:
    """How many lines of each type were `new` and `known`, and whether the end of the file was among them.

    `forgotten` further memories were not written, since they say what was forgotten in this pool.
    """

    new: dict[LineType, int]
    known: dict[LineType, int]
    forgotten: int
    ended: bool


async def import_pool(parts: Parts, who: Principal, body: bytes, first_line: int = 2) -> ImportReport:
    """Write a part of a pool's file: its header, and lines from number `first_line` on, all of them or none.

    Parts must come in the order of the file. Without the scope admin, no memory gets the trust of a person. Raises
    InvalidInput for a line that is broken, unknown or out of order, and Conflict for one whose id this pool has with
    other content, both with the line number.
    """
    highest: Trust = "user" if "admin" in who.scopes else "assistant"
    batch, rows = await parts.processes.run(len(body), _read, body, first_line, highest)
    last_line = first_line + body.rstrip().count(b"\n") - 1
    async with parts.database.tenant(who.pool_id) as connection:
        with pool_import.raising_conflict(first_line, last_line):
            counts, forgotten = await _write(parts, connection, who, batch, rows)
        if batch.ends:
            await _schedule(parts, connection)
    for session_id in _complete(batch):
        await cut_passages(parts, who.pool_id, session_id)
    if batch.ends:
        await cut_behind(parts, who.pool_id)
    await extend_quarantines(parts, who.pool_id)
    new: dict[LineType, int] = dict(zip(TYPES, counts, strict=True))
    known: dict[LineType, int] = {name: count - new[name] for name, count in batch.counts.items()}
    known["memory"] -= forgotten
    return ImportReport(new, known, forgotten, bool(batch.ends))


def _complete(batch: ImportBatch) -> list[str]:
    """Return the sessions whose last messages are in a part, as far as it shows that.

    The passages of the last session in it may end with a message of the next part.
    """
    by_line = {number: line.session_id for number, line in batch.messages.items()}
    found = dict.fromkeys(by_line[number] for number in sorted(by_line))
    followed = [*batch.memories, *batch.reflections, *batch.ends, *batch.sessions]
    if by_line and not any(number > max(by_line) for number in followed):
        del found[by_line[max(by_line)]]
    return list(found)


async def _schedule(parts: Parts, connection: Connection) -> None:
    """Schedule the jobs for the imported messages and memories, now that the file is complete."""
    now = parts.clock()
    idle = now + timedelta(seconds=parts.settings.observe_idle_seconds)
    await jobs.schedule_unobserved(connection, parts.settings.observe_tokens, idle, now)
    await schedule_daily(parts, connection, now)


def _read(body: bytes, first_line: int, highest: Trust) -> tuple[ImportBatch, list[IndexedMemory]]:
    batch = read_batch(body, first_line)
    return batch, indexed(_row(line, highest) for line in batch.memories.values())


def _row(line: MemoryLine, highest: Trust) -> NewMemory:
    return NewMemory(
        id=line.id,
        kind=line.kind,
        priority=line.priority,
        category=line.category,
        trust=lowest_trust([line.trust, highest]),
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
) -> tuple[tuple[int, ...], int]:
    """Write the new lines; return how many there were of each type, and how many memories were forgotten."""
    await pool_import.lock(connection)
    # By the names in the file first: a row may have been forgotten before its project was.
    told = len(batch.memories)
    batch = replace(batch, memories=await _without_forgotten(parts, connection, batch.memories))
    batch, rows = await batch_with_new_names(connection, batch, rows)
    of_sessions = await import_sessions(parts, connection, batch)
    lines = await _without_forgotten(parts, connection, batch.memories)
    written = await _import_memories(parts, connection, lines, rows)
    reflected = await _import_reflections(connection, batch.reflections)
    counts = (*of_sessions, written, reflected)
    if any(counts):
        detail: dict[str, Json] = dict(zip(TYPES, counts, strict=True))
        await audit.insert(connection, who.actor, "pool.import", batch.header.pool, detail, parts.clock())
    return counts, told - len(lines)


async def _import_memories(
    parts: Parts, connection: Connection, lines: Mapping[int, MemoryLine], rows: Sequence[IndexedMemory]
) -> int:
    """Write new memories and update existing ones; return the number of new ones."""
    if not lines:
        return 0
    parents = {number: _parents(line) for number, line in lines.items()}
    await _require_parents(connection, parents)
    known = await pool_import.known_memories(connection, lines.values())
    for number, line in lines.items():
        if line.id in known and not known[line.id].same:
            raise Conflict(f"Line {number}: {line.id} has another content in this pool.")
    await _update(connection, [line for line in lines.values() if line.id in known], known)
    new = {number: line for number, line in lines.items() if line.id not in known}
    new_ids = {line.id for line in new.values()}
    fresh = [row for row in rows if row.memory.id in new_ids]
    written = await memories.insert(connection, fresh, {line.id: _past(line) for line in new.values()})
    for number, line in new.items():
        if line.id not in written:
            raise Conflict(
                f"Line {number}: the external id {line.external_id!r} belongs to another row in this pool.",
                hint="Forget that row first, or import into a new pool.",
            )
    await pool_import.insert_sources(connection, list(new.values()))
    await vectors.enqueue(connection, written, parts.clock())
    return len(new)


async def _without_forgotten(
    parts: Parts, connection: Connection, lines: Mapping[int, MemoryLine]
) -> dict[int, MemoryLine]:
    """Return memories without those that were forgotten in this pool, by their contents or a tag."""
    said = [(number, text) for number, line in lines.items() for text in (line.content, *line.tags)]
    texts = [SaidText(text, lines[n].said_at, lines[n].project, lines[n].id) for n, text in said]
    gone = await are_forgotten(parts, connection, texts)
    forgotten = {number for (number, _), is_gone in zip(said, gone, strict=True) if is_gone}
    return {number: line for number, line in lines.items() if number not in forgotten}


def _parents(line: MemoryLine) -> set[str]:
    """Return the sessions and groups that a memory belongs to."""
    heard = (parent for source in line.sources for parent in (source.session_id, source.group_id))
    return {parent for parent in (line.session_id, line.group_id, *heard) if parent}


async def _require_parents(connection: Connection, parents: Mapping[int, Iterable[str]]) -> None:
    """Raise InvalidInput for the first line whose session or group does not exist."""
    there = await pool_import.existing_parents(
        connection, {parent for of_line in parents.values() for parent in of_line}
    )
    for number, of_line in parents.items():
        if missing := sorted(set(of_line) - there):
            raise InvalidInput(f"Line {number}: {missing[0]} does not exist; its line must come first.")


async def _update(connection: Connection, lines: Sequence[MemoryLine], known: Mapping[str, KnownMemory]) -> None:
    """Supersede existing memories as the file does, and add their other sources.

    A row that is live here although its superseder exists here was revived here, and stays live.
    """
    # Only a file that somebody changed names a quarantine.
    replaced = [line for line in lines if line.superseded_by and known[line.id].live]
    replaced = [line for line in replaced if not is_quarantine(line.superseded_by or "")]
    here = await pool_import.superseders(connection, {line.superseded_by or "" for line in replaced})
    replaced = [line for line in replaced if line.superseded_by not in here]
    known_sources = await pool_import.known_sources(connection, [line.id for line in lines])
    said_again = [line for line in lines if {(line.id, source.group_id) for source in line.sources} - known_sources]
    touched = await memories.lock_to_change(connection, {line.id for line in (*replaced, *said_again)})
    await pool_import.supersede(connection, [line for line in replaced if line.id in touched])
    await pool_import.add_restatements(connection, [line for line in said_again if line.id in touched])


async def _import_reflections(connection: Connection, lines: Mapping[int, ReflectionLine]) -> int:
    """Write new reflections; return how many."""
    if not lines:
        return 0
    await _require_parents(connection, {n: {line.session_id} for n, line in lines.items() if line.session_id})
    known = await pool_import.known_reflections(connection, [line.id for line in lines.values()])
    for number, line in lines.items():
        there = known.get(line.id)
        if there and any(getattr(there, name) != getattr(line, name) for name in _FIXED):
            raise Conflict(f"Line {number}: {line.id} is another reflection in this pool.")
    new = [line for line in lines.values() if line.id not in known]
    await pool_import.insert_reflections(connection, new)
    return len(new)
