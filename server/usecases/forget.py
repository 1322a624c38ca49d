"""Forget a row with its vectors and terms, the reflections drawn from it and the packs that show it, at once.

A passage is forgotten with the words of its messages and the rows that were taken from them.
"""

from collections.abc import Collection, Mapping, Sequence, Set

from esker.server.core.errors import Conflict
from esker.server.core.facts.same_fact import fingerprint, same_fact
from esker.server.core.ids import is_passage
from esker.server.core.records import Memory, Principal
from esker.server.core.reports import Receipt
from esker.server.core.sources import sources_of
from esker.server.core.text.labels import without_notes
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import audit, groups, jobs, memories, messages, packs, passages, sessions, vectors
from esker.server.usecases.cut_passages import leave_out_of_passages
from esker.server.usecases.parts import Parts

_MOST_TRIES = 5


async def forget(parts: Parts, who: Principal, text_id: str, *, with_messages: bool) -> Receipt:
    """Delete a row and all rows that say the same; `with_messages` also blanks the messages that it was said in.

    A reflection is deleted with its sources, and a row with the reflections drawn from it; other sources of such a
    reflection are live again. A newer row that quotes the forgotten one loses the quotation. Packs that show any of
    these are deleted and frozen again at the next request. That changes a frozen prefix: forgetting is more
    important.

    A passage contains only the words of its messages, so these are blanked in any case, and the rows taken from them
    are deleted; `with_messages` is then about other messages in which those rows were said. Raises NotFound, and
    Conflict when sessions repeat it faster than it can be forgotten.
    """
    forget_one = _forget_passage if is_passage(text_id) else _forget_memory
    locked: set[str] = set()
    for _ in range(_MOST_TRIES):
        try:
            async with parts.database.tenant(who.pool_id) as connection:
                await sessions.lock_all(connection, locked)
                receipt, reworded = await forget_one(
                    parts, connection, who, text_id, locked, with_messages=with_messages
                )
        except _SessionsNotLocked as error:
            locked |= error.sessions
            continue
        # Another transaction, since this one has locked other entries of the queue.
        async with parts.database.tenant(who.pool_id) as connection:
            await vectors.enqueue(connection, reworded, parts.clock())
        return receipt
    raise Conflict("Sessions keep repeating this; nothing was forgotten.", hint="Try again.")


class _SessionsNotLocked(Exception):
    """More sessions are concerned than are locked. Locking them now would break the lock order, so start again."""

    def __init__(self, sessions: set[str]) -> None:
        super().__init__()
        self.sessions = sessions


async def _forget_memory(
    parts: Parts, connection: Connection, who: Principal, memory_id: str, locked: Set[str], *, with_messages: bool
) -> tuple[Receipt, list[str]]:
    """Delete a row and what depends on it; return the ids of rows that need new vectors, too.

    Raises NotFound, _SessionsNotLocked.
    """
    same, rows, quoting = await _lock(connection, [memory_id], locked)
    if memory_id not in rows:
        raise memories.missing(memory_id)
    said_in = await _said_in(connection, [rows[i] for i in sorted(same & rows.keys())])
    blanked = await _forget_messages(connection, said_in) if with_messages else 0
    receipt = await _delete(parts, connection, who, memory_id, rows, quoting, said_in, blanked)
    return receipt, [row.id for row in quoting]


async def _forget_passage(
    parts: Parts, connection: Connection, who: Principal, passage_id: str, locked: Set[str], *, with_messages: bool
) -> tuple[Receipt, list[str]]:
    """Blank the messages of a passage, delete the rows taken from them, and return the same as `_forget_memory`.

    Raises NotFound, _SessionsNotLocked.
    """
    found = (await passages.get(connection, [passage_id])).get(passage_id)
    if found is None:
        raise passages.missing(passage_id)
    own = {found.session_id: list(range(found.first_seq, found.last_seq + 1))}
    taken = await memories.taken_from(connection, found.session_id, own[found.session_id])
    same, rows, quoting = await _lock(connection, taken, locked, found.session_id)
    # An observer that is reading these messages must not store facts from them.
    await jobs.take_back(connection, "observe", found.session_id)
    said_in = await _said_in(connection, [rows[i] for i in sorted(same & rows.keys())])
    said_in = {**said_in, **{s: sorted({*seqs, *said_in.get(s, ())}) for s, seqs in own.items()}}
    blanked = await _forget_messages(connection, said_in if with_messages else own)
    receipt = await _delete(parts, connection, who, passage_id, rows, quoting, said_in, blanked)
    return receipt, [row.id for row in quoting]


async def _delete(
    parts: Parts,
    connection: Connection,
    who: Principal,
    text_id: str,
    rows: Mapping[str, Memory],
    quoting: Sequence[Memory],
    said_in: Mapping[str, Sequence[int]],
    blanked: int,
) -> Receipt:
    """Delete locked rows and all that shows them, remove their messages from passages, and the notes that quote them.

    The locks are taken in the common order (`store/sessions.py`).
    """
    # Otherwise recall would still find it word for word.
    await leave_out_of_passages(parts, connection, said_in)
    numbers = await memories.delete(connection, rows.keys())
    restored = await memories.restore(connection, rows.keys())
    reworded = await memories.reword(connection, {row.id: without_notes(row.content) for row in quoting})
    concerned = {row.session_id for row in rows.values() if row.session_id} | said_in.keys()
    await jobs.forget_errors(connection, concerned)
    embedded = await vectors.delete(connection, "memory", [*numbers, *reworded])
    shown = await packs.delete_showing(connection, [*rows, *(row.id for row in quoting)])
    reflections = sum(row.kind == "reflection" for row in rows.values())
    receipt = Receipt(text_id, len(numbers), reflections, len(restored), embedded, shown, blanked)
    counts = {"memories": len(numbers), "vectors": embedded, "packs": shown, "messages": blanked}
    what = "passage" if is_passage(text_id) else "memory"
    await audit.insert(connection, who.actor, f"{what}.forget", text_id, counts, parts.clock())
    return receipt


async def _lock(
    connection: Connection, memory_ids: Collection[str], locked: Set[str], *own: str
) -> tuple[set[str], dict[str, Memory], list[Memory]]:
    """Lock the rows that say the same as these, all rows drawn from them, and rows whose notes quote one of these.

    Return the ids of the first, all rows to delete by id, and those that quote them. A reflection that commits
    meanwhile may draw from them; its rows are included, because the session's lock waits for it. Raises
    _SessionsNotLocked unless the sessions of all these rows, and those in `own`, are `locked`.
    """
    same = await _saying_the_same(connection, memory_ids)
    rows = await memories.get(connection, same | await memories.drawn_from(connection, same))
    other_sources = await fetch(connection, memories.other_sources(same))
    # Rows that become live again are locked with the rest, and so are their sessions.
    replaced = await memories.get(connection, await memories.replaced_by(connection, rows))
    quoting = await memories.quoting(connection, rows.values())
    sources = (source for each in other_sources.values() for source in each)
    changed = (*rows.values(), *replaced.values(), *quoting.values())
    concerned = {one.session_id for one in (*changed, *sources) if one.session_id} | {*own}
    if not concerned <= locked:
        raise _SessionsNotLocked(concerned)
    # In one statement, so that all locks are taken in one order.
    existing = await memories.lock_to_delete(connection, rows.keys() | replaced.keys() | quoting.keys())
    left = [row for row_id, row in quoting.items() if row_id in existing - rows.keys()]
    return same, {row_id: row for row_id, row in rows.items() if row_id in existing}, left


async def _saying_the_same(connection: Connection, memory_ids: Collection[str]) -> set[str]:
    """Return the ids of these rows and their sources, and of rows that they replaced by a slightly longer wording."""
    same = await memories.with_sources_of(connection, memory_ids)
    while True:
        replaced = await memories.replaced_by(connection, same) - same
        rows = await memories.get(connection, same | replaced)
        reworded = {row.id for row in rows.values() if row.id in replaced and _says_the_same(row, rows)}
        if not reworded:
            return same
        same |= await memories.with_sources_of(connection, reworded)


def _says_the_same(row: Memory, rows: Mapping[str, Memory]) -> bool:
    by = rows.get(row.superseded_by or "")
    return by is not None and same_fact(fingerprint(row.content), fingerprint(by.content))


async def _said_in(connection: Connection, rows: Sequence[Memory]) -> dict[str, list[int]]:
    """Return the messages in which rows were said, first or again, as session id → seqs."""
    other_sources = await fetch(connection, memories.other_sources([row.id for row in rows]))
    said_in: dict[str, set[int]] = {}
    for source in (source for row in rows for source in sources_of(row, other_sources.get(row.id, ()))):
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
