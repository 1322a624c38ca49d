"""Cut messages into passages, which are searchable word for word, right after they were stored.

Passages are cut without holding a connection, and written unless another call was faster. The next call catches up on
messages that a crash left out, or that arrived while the pool had passages switched off.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from esker.server.core.conversation.passages import NewPassage, passage_over, passages_of, passages_over
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.errors import Unavailable
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, fetch, send
from esker.server.store import messages, passages, pools, sessions, vectors
from esker.server.store.passages import Deleted, PassageProgress
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.in_each_pool import in_each_pool
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

_MOST_MESSAGES = 1_000
_MOST_SESSIONS = 100

OnProgress = Callable[[int, int], None]
"""Called with the number of finished sessions and their total."""


@dataclass(frozen=True, slots=True)
class UncutMessages:
    """Queries under way for the next messages of a session to cut, those of its last passage included."""

    progress: Answer[PassageProgress]
    messages: Answer[list[StoredMessage]]


async def send_uncut(connection: Connection, session_id: str) -> UncutMessages:
    """Ask for the next messages to cut, in a transaction that sees one moment or holds the lock of the session."""
    return UncutMessages(
        await send(connection, passages.progress(session_id)),
        await send(connection, passages.to_cut(session_id, _MOST_MESSAGES)),
    )


async def cut_passages(parts: Parts, pool_id: str, session_id: str, uncut: UncutMessages | None = None) -> None:
    """Cut a session's messages up to the last one, unless its pool has passages switched off. Raises NotFound.

    `uncut`: what was read already.
    """
    while await _cut_some(parts, pool_id, session_id, uncut):
        uncut = None


async def cut_if_possible(parts: Parts, pool_id: str, session_id: str, uncut: UncutMessages | None = None) -> None:
    """Cut a session's messages; a fault of this session is logged, and the upkeep tries again, later each time."""
    subject = (pool_id, session_id)
    try:
        await cut_passages(parts, pool_id, session_id, uncut)
    except Unavailable as error:
        log.warning("the messages of session %s cannot be cut into passages now: %s", session_id, error)
    except Exception:
        pause = parts.setbacks.note(subject, parts.clock())
        log.exception("the messages of session %s cannot be cut into passages; trying again in %s", session_id, pause)
    else:
        parts.setbacks.clear(subject)


async def _cut_some(parts: Parts, pool_id: str, session_id: str, uncut: UncutMessages | None) -> bool:
    """Cut the next messages; return whether there may be more."""
    if uncut is None:
        async with parts.database.moment_pipeline(pool_id) as connection:
            uncut = await send_uncut(connection, session_id)
    seen, found = await uncut.progress, await uncut.messages
    if seen.passages_seq >= seen.last_seq or not seen.wanted:
        return False
    made = await parts.processes.run(sum(len(message.text) for message in found), passages_of, found)
    async with parts.database.tenant_pipeline(pool_id) as connection:
        await send(connection, sessions.locked(session_id))
        await passages.lock_to_write(connection)
        now_seen = await send(connection, passages.progress(session_id))
        spaces = await send(connection, vectors.all_spaces())
        if await now_seen != seen:
            return True
        await _write(parts, connection, session_id, seen, made, await spaces)
        await passages.advance_cut(connection, session_id, found[-1].seq)
    return found[-1].seq < seen.last_seq


async def _write(
    parts: Parts,
    connection: Connection,
    session_id: str,
    seen: PassageProgress,
    made: Sequence[NewPassage],
    spaces: Sequence[PoolSpace],
) -> None:
    """Write the passages of a session from its last one on, which had room for more messages, so it was cut again."""
    known: dict[int, str] = {}
    if seen.open_id and seen.open_first and seen.open_number:
        if made and (made[0].first_seq, made[0].content_hash) == (seen.open_first, seen.open_hash):
            # The last passage has not grown. Writing it again would cost as much as writing the new ones.
            made = made[1:]
        else:
            known[seen.open_first] = seen.open_id
            await passages.delete(connection, seen.open_id)
            await vectors.delete_in(connection, spaces, "passage", [seen.open_number])
    if made:
        await passages.insert(connection, session_id, seen.project, made, parts.clock(), known)
        await vectors.wake(connection)


async def cut_behind(parts: Parts, pool_id: str, on_progress: OnProgress | None = None) -> int:
    """Cut the sessions of a pool whose passages are behind; return how many there were."""
    done, last = 0, ""
    async with parts.database.tenant(pool_id) as connection:
        total = await passages.count_behind(connection) if await passages.wanted(connection) else 0
    while total:
        async with parts.database.tenant(pool_id) as connection:
            behind = await passages.behind(connection, last, _MOST_SESSIONS)
        for last in behind:
            if parts.setbacks.may_try((pool_id, last), parts.clock()):
                await cut_if_possible(parts, pool_id, last)
                done += 1
            if on_progress:
                on_progress(done, max(total, done))
        if len(behind) < _MOST_SESSIONS:
            break
    return done


async def cut_all_behind(parts: Parts) -> int:
    """Cut the messages that a crash left uncut, in all pools; return the number of sessions."""
    every = await pools.ids(parts.database)
    return sum(await in_each_pool("cutting passages", every, partial(cut_behind, parts)))


async def restore_passages(
    parts: Parts, connection: Connection, session_id: str, spans: Mapping[tuple[int, int], str]
) -> None:
    """Write the passages with these spans (first and last seq) and ids, in order, unless the pool has none.

    The caller has just added the last messages of them and holds the session's lock. Raises InvalidInput.
    """
    if not spans or not await passages.may_write(connection):
        return
    first, last = min(span[0] for span in spans), max(span[1] for span in spans)
    found = await _span(connection, session_id, first, last)
    made = await parts.processes.run(sum(len(one.text) for one in found), passages_over, found, list(spans))
    # The upkeep may have cut a session of which only a part had come.
    await vectors.delete(connection, "passage", await passages.delete_from(connection, session_id, first))
    project = (await fetch(connection, passages.progress(session_id))).project
    known = {first_seq: passage_id for (first_seq, _), passage_id in spans.items()}
    await passages.insert(connection, session_id, project, made, parts.clock(), known)
    await passages.advance_cut(connection, session_id, last)
    await vectors.wake(connection)


async def leave_out_of_passages(
    parts: Parts, connection: Connection, said_in: Mapping[str, Sequence[int]]
) -> list[str]:
    """Remove messages (session id → seqs) from the passages that show them, for good; return the ids of these.

    The caller holds the locks of the sessions.
    """
    for session_id, seqs in said_in.items():
        await messages.leave_out(connection, session_id, seqs)
    return await recut_passages(parts, connection, said_in)


async def recut_passages(parts: Parts, connection: Connection, said_in: Mapping[str, Sequence[int]]) -> list[str]:
    """Cut the passages that show some messages (session id → seqs) again, from what these messages say now.

    The caller holds the locks of the sessions. Return the ids of the passages, of which some may be gone.
    """
    wanted = await passages.may_write(connection)
    gone = await passages.delete_over(connection, said_in)
    if wanted:
        for session_id in {one.session_id for one in gone}:
            await _cut_again(parts, connection, session_id, [one for one in gone if one.session_id == session_id])
    await vectors.delete(connection, "passage", [one.number for one in gone])
    return [one.id for one in gone]


async def _cut_again(parts: Parts, connection: Connection, session_id: str, gone: Sequence[Deleted]) -> None:
    """Write deleted passages of a session again, without the messages that are left out now."""
    spans = [await _span(connection, session_id, one.first_seq, one.last_seq) for one in gone]
    kept = [passage for span in spans if (passage := passage_over(span))]
    if kept:
        project = (await fetch(connection, passages.progress(session_id))).project
        known = {one.first_seq: one.id for one in gone}
        await passages.insert(connection, session_id, project, kept, parts.clock(), known)
        await vectors.wake(connection)


async def _span(connection: Connection, session_id: str, first_seq: int, last_seq: int) -> list[StoredMessage]:
    """Return the searchable messages of a span."""
    return await messages.searchable(connection, session_id, first_seq - 1, last_seq - first_seq + 1)
