"""Index passages: what messages said becomes searchable word for word, right after it was stored.

Windows are cut without a connection held and written if nobody else was faster; whatever is left by a crash, or by a
pool that had no passages for a while, is made up for by the next call.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from esker.server.core.conversation.passages import passage_over, passages_of
from esker.server.core.conversation.records import Message
from esker.server.db.database import Connection
from esker.server.store import messages, passages, pools, sessions, vectors
from esker.server.store.passages import Deleted, PassageProgress
from esker.server.usecases.parts import Parts

_MOST_MESSAGES = 1_000
_MOST_SESSIONS = 100

OnProgress = Callable[[int, int], None]
"""Is told how much is done, and of how much."""


async def cut_passages(parts: Parts, pool_id: str, session_id: str) -> None:
    """Bring a session's passages up to its last message, unless its pool has none. Raises NotFound."""
    while await _index_some(parts, pool_id, session_id):
        pass


async def _index_some(parts: Parts, pool_id: str, session_id: str) -> bool:
    """Index the next messages; return whether there was anything to do."""
    async with parts.database.tenant(pool_id) as connection:
        seen = await passages.progress(connection, session_id)
        if seen.passages_seq >= seen.last_seq or not await passages.wanted(connection):
            return False
        found = await _to_cut(connection, session_id, seen)
    made = await asyncio.to_thread(passages_of, found)
    async with parts.database.tenant(pool_id) as connection:
        await sessions.lock(connection, session_id)
        if not await passages.may_write(connection) or await passages.progress(connection, session_id) != seen:
            return True
        known: dict[int, str] = {}
        if seen.open_id and seen.open_first:
            # The last window had room for more, so it was cut anew.
            known[seen.open_first] = seen.open_id
            numbers = await passages.delete_from(connection, session_id, seen.open_first)
            await vectors.delete(connection, "passage", numbers)
        await passages.insert(connection, session_id, seen.project, made, parts.clock(), known)
        await passages.reach(connection, session_id, found[-1].seq)
        await vectors.wake(connection)
    return True


async def _to_cut(connection: Connection, session_id: str, seen: PassageProgress) -> Sequence[Message]:
    """Return the messages of the last window and the next ones; what stands between them says nothing."""
    again: list[Message] = []
    if seen.open_first and seen.open_last:
        again = await _span(connection, session_id, seen.open_first, seen.open_last)
    return [*again, *await messages.searchable(connection, session_id, seen.passages_seq, _MOST_MESSAGES)]


async def index_behind(parts: Parts, pool_id: str, told: OnProgress | None = None) -> int:
    """Index the sessions of a pool whose passages are behind; return how many there were."""
    indexed, last = 0, ""
    async with parts.database.tenant(pool_id) as connection:
        total = await passages.count_behind(connection) if await passages.wanted(connection) else 0
    while total:
        async with parts.database.tenant(pool_id) as connection:
            behind = await passages.behind(connection, last, _MOST_SESSIONS)
        for last in behind:
            await cut_passages(parts, pool_id, last)
            indexed += 1
            if told:
                told(indexed, max(total, indexed))
        if len(behind) < _MOST_SESSIONS:
            break
    return indexed


async def index_all_behind(parts: Parts) -> int:
    """Make up in all pools for what a crash left; return in how many sessions."""
    return sum([await index_behind(parts, pool_id) for pool_id in await pools.ids(parts.database)])


async def leave_out_of_passages(parts: Parts, connection: Connection, said_in: Mapping[str, Sequence[int]]) -> None:
    """Take messages, given by their sessions, out of the passages that show them, for good.

    The caller holds the locks of the sessions.
    """
    for session_id, seqs in said_in.items():
        await messages.leave_out(connection, session_id, seqs)
    wanted = await passages.may_write(connection)
    gone = await passages.delete_over(connection, said_in)
    if wanted:
        for session_id in {one.session_id for one in gone}:
            await _cut_again(parts, connection, session_id, [one for one in gone if one.session_id == session_id])
    await vectors.delete(connection, "passage", [one.number for one in gone])


async def _cut_again(parts: Parts, connection: Connection, session_id: str, gone: Sequence[Deleted]) -> None:
    """Write passages of a session anew that were deleted, without what is left out by now."""
    spans = [await _span(connection, session_id, one.first_seq, one.last_seq) for one in gone]
    kept = [passage for span in spans if (passage := passage_over(span))]
    if kept:
        project = (await passages.progress(connection, session_id)).project
        known = {one.first_seq: one.id for one in gone}
        await passages.insert(connection, session_id, project, kept, parts.clock(), known)
        await vectors.wake(connection)


async def _span(connection: Connection, session_id: str, first_seq: int, last_seq: int) -> list[Message]:
    """Return the messages from one to another."""
    return await messages.searchable(connection, session_id, first_seq - 1, last_seq - first_seq + 1)
