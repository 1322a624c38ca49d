"""Forget: a row, its vectors and terms, the reflections drawn from it and the packs that show it, at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from server.core.records import Memory, Principal
from server.core.similarity import fingerprint, same_fact
from server.core.sources import sources_of
from server.db.database import Connection
from server.store import audit, groups, jobs, memories, messages, packs, sessions, vectors
from server.usecases.index_passages import leave_out_of_passages
from server.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Receipt:
    """What went, `reflections` among the `memories`.

    `restored` rows had been replaced by what is gone, and are live again.
    """

    id: str
    memories: int
    reflections: int
    restored: int
    vectors: int
    packs: int
    messages: int


async def forget(parts: Parts, who: Principal, memory_id: str, *, with_messages: bool) -> Receipt:
    """Delete a row and everything that says the same; with `with_messages` also the words of all messages it was
    said in, of whatever session.

    A reflection goes with the rows that it stands for, and every row with the reflections drawn from it; what else
    such a reflection stood for comes back. Packs that showed any of it go too, and are frozen anew when they are next
    asked for, which changes a frozen prefix: forgetting goes before freezing. Raises NotFound.
    """
    async with parts.database.tenant(who.pool_id) as connection:
        meant, rows = await _lock(connection, memory_id)
        gone = rows.keys()
        said_in = await _said_in(connection, [rows[i] for i in sorted(meant & gone)])
        blanked = await _forget_messages(connection, said_in) if with_messages else 0
        # Whoever looks for it must not find it word for word.
        for session_id, seqs in said_in.items():
            await leave_out_of_passages(parts, connection, session_id, seqs)
        numbers = await memories.delete(connection, gone)
        restored = await memories.restore(connection, gone)
        await jobs.forget_errors(connection, {row.session_id for row in rows.values() if row.session_id})
        embedded = await vectors.delete(connection, "memory", numbers)
        shown = await packs.delete_showing(connection, gone)
        reflections = sum(row.kind == "reflection" for row in rows.values())
        receipt = Receipt(memory_id, len(numbers), reflections, len(restored), embedded, shown, blanked)
        counts = {"memories": len(numbers), "vectors": embedded, "packs": shown, "messages": blanked}
        await audit.insert(connection, who.actor, "memory.forget", memory_id, counts, parts.clock())
    return receipt


async def _lock(connection: Connection, memory_id: str) -> tuple[set[str], dict[str, Memory]]:
    """Return the ids that a row stands for and all rows that go with it, locked. Raises NotFound.

    A reflection that commits meanwhile may draw from them: the session's lock waits for it, and then it goes too.
    """
    locked: set[str] = set()
    while True:
        meant = await _meant(connection, memory_id)
        rows = await memories.get(connection, meant | await memories.drawn_from(connection, meant))
        again = await memories.other_sources(connection, meant)
        # What comes back is locked with the rest, so its sessions are, too.
        replaced = await memories.get(connection, await memories.replaced_by(connection, rows))
        heard = (*rows.values(), *replaced.values(), *(source for sources in again.values() for source in sources))
        concerned = {place.session_id for place in heard if place.session_id}
        if concerned <= locked:
            break
        locked |= concerned
        await sessions.lock_all(connection, locked)
    # In one statement, so that all locks are taken in one order.
    if memory_id not in await memories.lock_to_delete(connection, rows.keys() | replaced.keys()):
        raise memories.missing(memory_id)
    return meant, rows


async def _meant(connection: Connection, memory_id: str) -> set[str]:
    """Return the ids of all that a row stands for, and of what such a row replaced by saying it with a word more.

    Raises NotFound.
    """
    meant = await memories.stood_for(connection, [memory_id])
    if not meant:
        raise memories.missing(memory_id)
    while True:
        replaced = await memories.replaced_by(connection, meant) - meant
        rows = await memories.get(connection, meant | replaced)
        same = {row.id for row in rows.values() if row.id in replaced and _says_the_same(row, rows)}
        if not same:
            return meant
        meant |= await memories.stood_for(connection, same)


def _says_the_same(row: Memory, rows: Mapping[str, Memory]) -> bool:
    by = rows.get(row.superseded_by or "")
    return by is not None and same_fact(fingerprint(row.content), fingerprint(by.content))


async def _said_in(connection: Connection, rows: Sequence[Memory]) -> dict[str, list[int]]:
    """Return the messages in which rows were said, the first time and again, by their sessions."""
    again = await memories.other_sources(connection, [row.id for row in rows])
    said_in: dict[str, set[int]] = {}
    for source in (source for row in rows for source in sources_of(row, again.get(row.id, ()))):
        if source.session_id and source.seqs:
            said_in.setdefault(source.session_id, set()).update(source.seqs)
    return {session_id: sorted(seqs) for session_id, seqs in said_in.items()}


async def _forget_messages(connection: Connection, said_in: Mapping[str, Sequence[int]]) -> int:
    """Blank messages, each once; return how many."""
    blanked = 0
    for session_id, seqs in said_in.items():
        await groups.forget_around(connection, session_id, seqs)
        await sessions.forget_task(connection, session_id)
        blanked += await messages.blank(connection, session_id, seqs)
    return blanked
