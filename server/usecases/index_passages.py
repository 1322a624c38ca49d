"""Index passages: what messages said becomes searchable word for word, right after it was stored.

Windows are cut without a connection held and written if nobody else was faster; whatever is left by a crash, or by a
pool that had no passages for a while, is made up for by the next call.
"""

import asyncio

from server.core.passages import passage_over, passages_of
from server.db.database import Connection
from server.store import messages, passages, sessions, vectors
from server.usecases.parts import Parts

_MOST_MESSAGES = 1_000
_MOST_SESSIONS = 100
_MOST_DELETED = 2_000


async def index_passages(parts: Parts, pool_id: str, session_id: str) -> None:
    """Bring a session's passages up to its last message, unless its pool has none. Raises NotFound."""
    while await _index_some(parts, pool_id, session_id):
        pass


async def _index_some(parts: Parts, pool_id: str, session_id: str) -> bool:
    """Index the next messages; return whether there was anything to do."""
    async with parts.database.tenant(pool_id) as connection:
        seen = await passages.progress(connection, session_id)
        if seen.passages_seq >= seen.last_seq or not await passages.wanted(connection):
            return False
        found = await messages.searchable(connection, session_id, seen.first_seq - 1, _MOST_MESSAGES)
    made = await asyncio.to_thread(passages_of, found)
    async with parts.database.tenant(pool_id) as connection:
        await sessions.lock(connection, session_id)
        if await passages.progress(connection, session_id) != seen:
            return True
        # The last window had room for more, so it was cut anew.
        await vectors.delete(connection, "passage", await passages.delete_from(connection, session_id, seen.first_seq))
        await passages.insert(connection, session_id, seen.project, made, parts.clock())
        await passages.reach(connection, session_id, found[-1].seq)
        await vectors.wake(connection)
    return True


async def index_behind(parts: Parts, pool_id: str) -> int:
    """Index the sessions of a pool whose passages are behind; return how many there were."""
    indexed = 0
    while True:
        async with parts.database.tenant(pool_id) as connection:
            behind = await passages.behind(connection, _MOST_SESSIONS) if await passages.wanted(connection) else []
        if not behind:
            return indexed
        for session_id in behind:
            await index_passages(parts, pool_id, session_id)
        indexed += len(behind)


async def leave_out_of_passages(parts: Parts, connection: Connection, session_id: str, seqs: list[int]) -> None:
    """Take messages out of the passages that show them, for good. The caller holds the session's lock."""
    await messages.leave_out(connection, session_id, seqs)
    numbers, spans = await passages.delete_over(connection, session_id, seqs)
    project = (await passages.progress(connection, session_id)).project
    kept = [
        passage
        for first, last in spans
        if (passage := passage_over(await messages.searchable(connection, session_id, first - 1, last - first + 1)))
    ]
    await passages.insert(connection, session_id, project, kept, parts.clock())
    await vectors.delete(connection, "passage", numbers)
