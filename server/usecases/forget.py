"""Forget: a row, its vectors and terms, the reflections drawn from it and the packs that show it, at once.

A passage is forgotten with the words of its messages and the rows that were taken from them.
"""

from collections.abc import Collection, Mapping, Sequence, Set

from esker.server.core.errors import Conflict
from esker.server.core.facts.similarity import fingerprint, same_fact
from esker.server.core.ids import is_passage
from esker.server.core.records import Memory, Principal
from esker.server.core.reports import Receipt
from esker.server.core.sources import sources_of
from esker.server.db.database import Connection
from esker.server.store import audit, groups, jobs, memories, messages, packs, passages, sessions, vectors
from esker.server.usecases.cut_passages import leave_out_of_passages
from esker.server.usecases.parts import Parts

_MOST_TRIES = 5


async def forget(parts: Parts, who: Principal, text_id: str, *, with_messages: bool) -> Receipt:
    """Delete a row and everything that says the same; with `with_messages` also the words of all messages it was
    said in, of whatever session.

    A reflection goes with the rows that it stands for, and every row with the reflections drawn from it; what else
    such a reflection stood for comes back. Packs that showed any of it go too, and are frozen anew when they are next
    asked for, which changes a frozen prefix: forgetting goes before freezing.

    A passage is nothing but the words of its messages, so they go in any case, and with them the rows that were taken
    from them; `with_messages` is about where else those rows were said. Raises NotFound, and Conflict when sessions
    say it again as fast as it is forgotten.
    """
    forget_one = _forget_passage if is_passage(text_id) else _forget_memory
    locked: set[str] = set()
    for _ in range(_MOST_TRIES):
        try:
            async with parts.database.tenant(who.pool_id) as connection:
                await sessions.lock_all(connection, locked)
                return await forget_one(parts, connection, who, text_id, locked, with_messages=with_messages)
        except _Elsewhere as error:
            locked |= error.sessions
    raise Conflict("This is being said again while it is forgotten.", hint="Try again.")


class _Elsewhere(Exception):
    """What goes is about sessions that are not locked. More locks would be out of order, so all begins anew."""

    def __init__(self, sessions: set[str]) -> None:
        super().__init__()
        self.sessions = sessions


async def _forget_memory(
    parts: Parts, connection: Connection, who: Principal, memory_id: str, locked: Set[str], *, with_messages: bool
) -> Receipt:
    """Delete a row and what goes with it. Raises NotFound, _Elsewhere."""
    meant, rows = await _lock(connection, [memory_id], locked)
    if memory_id not in rows:
        raise memories.missing(memory_id)
    said_in = await _said_in(connection, [rows[i] for i in sorted(meant & rows.keys())])
    blanked = await _forget_messages(connection, said_in) if with_messages else 0
    return await _delete(parts, connection, who, memory_id, rows, said_in, blanked)


async def _forget_passage(
    parts: Parts, connection: Connection, who: Principal, passage_id: str, locked: Set[str], *, with_messages: bool
) -> Receipt:
    """Blank the messages of a passage and delete the rows that were taken from them. Raises NotFound, _Elsewhere."""
    found = (await passages.get(connection, [passage_id])).get(passage_id)
    if found is None:
        raise passages.missing(passage_id)
    own = {found.session_id: list(range(found.first_seq, found.last_seq + 1))}
    taken = await memories.taken_from(connection, found.session_id, own[found.session_id])
    meant, rows = await _lock(connection, taken, locked, found.session_id)
    # Whoever reads these messages now must not write down what they said.
    await jobs.take_back(connection, "observe", found.session_id)
    said_in = await _said_in(connection, [rows[i] for i in sorted(meant & rows.keys())])
    said_in = {**said_in, **{s: sorted({*seqs, *said_in.get(s, ())}) for s, seqs in own.items()}}
    blanked = await _forget_messages(connection, said_in if with_messages else own)
    return await _delete(parts, connection, who, passage_id, rows, said_in, blanked)


async def _delete(
    parts: Parts,
    connection: Connection,
    who: Principal,
    text_id: str,
    rows: Mapping[str, Memory],
    said_in: Mapping[str, Sequence[int]],
    blanked: int,
) -> Receipt:
    """Delete rows that are locked and all that shows them, and take what they were said in out of passages."""
    # Whoever looks for it must not find it word for word.
    await leave_out_of_passages(parts, connection, said_in)
    numbers = await memories.delete(connection, rows.keys())
    restored = await memories.restore(connection, rows.keys())
    concerned = {row.session_id for row in rows.values() if row.session_id} | said_in.keys()
    await jobs.forget_errors(connection, concerned)
    embedded = await vectors.delete(connection, "memory", numbers)
    shown = await packs.delete_showing(connection, rows.keys())
    reflections = sum(row.kind == "reflection" for row in rows.values())
    receipt = Receipt(text_id, len(numbers), reflections, len(restored), embedded, shown, blanked)
    counts = {"memories": len(numbers), "vectors": embedded, "packs": shown, "messages": blanked}
    what = "passage" if is_passage(text_id) else "memory"
    await audit.insert(connection, who.actor, f"{what}.forget", text_id, counts, parts.clock())
    return receipt


async def _lock(
    connection: Connection, memory_ids: Collection[str], locked: Set[str], *own: str
) -> tuple[set[str], dict[str, Memory]]:
    """Return the ids that some rows stand for and all rows that go with them, locked, as far as they are there.

    A reflection that commits meanwhile may draw from them: the session's lock waits for it, and then it goes too.
    Raises _Elsewhere unless the sessions that any of it is about, and those in `own`, are `locked`.
    """
    meant = await _meant(connection, memory_ids)
    rows = await memories.get(connection, meant | await memories.drawn_from(connection, meant))
    again = await memories.other_sources(connection, meant)
    # What comes back is locked with the rest, so its sessions are, too.
    replaced = await memories.get(connection, await memories.replaced_by(connection, rows))
    heard = (*rows.values(), *replaced.values(), *(source for sources in again.values() for source in sources))
    concerned = {place.session_id for place in heard if place.session_id} | {*own}
    if not concerned <= locked:
        raise _Elsewhere(concerned)
    # In one statement, so that all locks are taken in one order.
    there = await memories.lock_to_delete(connection, rows.keys() | replaced.keys())
    return meant, {row_id: row for row_id, row in rows.items() if row_id in there}


async def _meant(connection: Connection, memory_ids: Collection[str]) -> set[str]:
    """Return the ids of all that some rows stand for, and of what such a row replaced by saying it with a word more."""
    meant = await memories.stood_for(connection, memory_ids)
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
