"""Forget: a row, its vectors and terms, the reflections drawn from it and the packs that show it, at once."""

from collections.abc import Iterable
from dataclasses import dataclass

from server.core.records import Memory, Principal
from server.db.database import Connection
from server.store import audit, groups, memories, messages, packs, sessions, vectors
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
    """Delete a row and everything that says the same; with `with_messages` also the words of its source messages.

    A reflection goes with the rows that it stands for, and every row with the reflections drawn from it; what else
    such a reflection stood for comes back. Packs that showed any of it go too, and are frozen anew when they are next
    asked for, which changes a frozen prefix: forgetting goes before freezing. Raises NotFound.
    """
    async with parts.database.tenant(who.pool_id) as connection:
        meant, rows = await _lock(connection, memory_id)
        gone = rows.keys()
        blanked = await _forget_messages(connection, [rows[i] for i in sorted(meant)]) if with_messages else 0
        deleted = await memories.delete(connection, gone)
        restored = await memories.restore(connection, gone)
        embedded = await vectors.delete(connection, gone)
        shown = await packs.delete_showing(connection, gone)
        reflections = sum(row.kind == "reflection" for row in rows.values())
        receipt = Receipt(memory_id, deleted, reflections, len(restored), embedded, shown, blanked)
        counts = {"memories": deleted, "vectors": embedded, "packs": shown, "messages": blanked}
        await audit.insert(connection, who.actor, "memory.forget", memory_id, counts, parts.clock())
    return receipt


async def _lock(connection: Connection, memory_id: str) -> tuple[set[str], dict[str, Memory]]:
    """Return the ids that a row stands for and all rows that go with it, locked. Raises NotFound.

    A reflection that commits meanwhile may draw from them: the session's lock waits for it, and then it goes too.
    """
    locked: set[str] = set()
    while True:
        meant = await memories.stood_for(connection, [memory_id])
        if not meant:
            raise memories.missing(memory_id)
        rows = await memories.get(connection, meant | await memories.drawn_from(connection, meant))
        if {row.session_id for row in rows.values() if row.session_id} <= locked:
            break
        locked |= {row.session_id for row in rows.values() if row.session_id}
        await sessions.lock_all(connection, locked)
    # In one statement with what will come back, so that all locks are taken in one order.
    replaced = await memories.replaced_by(connection, rows)
    if memory_id not in await memories.lock_to_delete(connection, rows.keys() | replaced):
        raise memories.missing(memory_id)
    return meant, rows


async def _forget_messages(connection: Connection, rows: Iterable[Memory]) -> int:
    blanked = 0
    for row in rows:
        if row.session_id and row.source_seqs:
            await groups.forget_around(connection, row.session_id, row.source_seqs)
            await sessions.forget_task(connection, row.session_id)
            blanked += await messages.blank(connection, row.session_id, row.source_seqs)
    return blanked
