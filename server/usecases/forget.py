"""Forget: a row, its vectors and terms, the reflections drawn from it and the packs that show it, at once."""

from collections.abc import Iterable
from dataclasses import dataclass

from server.core.errors import NotFound
from server.core.records import Memory, Principal
from server.db.database import Connection
from server.store import audit, groups, memories, messages, packs, sessions, vectors
from server.usecases.pack import rebuild_existing
from server.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Receipt:
    """What went, `reflections` among the `memories`.

    `restored` rows had been condensed into a reflection that is gone, and are live again.
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
    such a reflection stood for comes back. Packs that showed any of it are built anew, which changes a frozen prefix:
    forgetting goes before freezing. Raises NotFound.
    """
    now = parts.clock()
    async with parts.database.tenant(who.pool_id) as connection:
        meant = await memories.stood_for(connection, [memory_id])
        if not meant:
            raise NotFound(f"There is no memory {memory_id!r} in this pool.")
        gone = meant | await memories.drawn_from(connection, meant)
        rows = (await memories.get(connection, gone)).values()
        blanked = await _forget_messages(connection, [r for r in rows if r.id in meant]) if with_messages else 0
        shown, shown_in = await packs.delete_showing(connection, gone)
        embedded = await vectors.delete(connection, gone)
        restored = await memories.restore(connection, {row.id for row in rows if row.kind == "reflection"})
        deleted = await memories.delete(connection, gone)
        await rebuild_existing(connection, shown_in, "forgotten", now)
        reflections = sum(row.kind == "reflection" for row in rows)
        receipt = Receipt(memory_id, deleted, reflections, len(restored - gone), embedded, shown, blanked)
        counts = {"memories": deleted, "vectors": embedded, "packs": shown, "messages": blanked}
        await audit.insert(connection, who.actor, "memory.forget", memory_id, counts, now)
    return receipt


async def _forget_messages(connection: Connection, rows: Iterable[Memory]) -> int:
    blanked = 0
    for row in rows:
        if row.session_id and row.source_seqs:
            await groups.forget_around(connection, row.session_id, row.source_seqs)
            await sessions.forget_task(connection, row.session_id)
            blanked += await messages.blank(connection, row.session_id, row.source_seqs)
    return blanked
