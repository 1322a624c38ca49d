"""The pack of a session: frozen until a reflection commits, messages are evicted, or a row in it is forgotten."""

import asyncio
import hashlib
from datetime import datetime

from esker.server.core.budgets import budgets
from esker.server.core.conversation.records import StoredSession
from esker.server.core.pack.reasons import PackExplanation
from esker.server.core.pack.records import Pack, PackReason, PackRow
from esker.server.core.pack.rendering import render_pack
from esker.server.core.pack.selection import PackChoice, choose
from esker.server.core.pack.walks import Walk, best, next_pages, walks_for
from esker.server.db.database import Connection
from esker.server.store import groups, memories, packs, sessions
from esker.server.usecases.parts import Parts

# Up to this many rows are ranked in a few ms; a worker thread is not worth it.
_FEW = 1_000


async def get_pack(parts: Parts, pool_id: str, session_id: str) -> Pack:
    """Return the session's pack, frozen now if there is none. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        return await _current(parts, connection, session_id)


async def explain_pack(parts: Parts, pool_id: str, session_id: str) -> tuple[Pack, PackExplanation | None]:
    """Return the session's pack, frozen now if there is none, and the reasons for its rows.

    A pack that was frozen before reasons were stored has none. Raises NotFound.
    """
    async with parts.database.tenant(pool_id) as connection:
        pack = await _current(parts, connection, session_id)
        return pack, await packs.explanation(connection, session_id, pack)


async def _current(parts: Parts, connection: Connection, session_id: str) -> Pack:
    if pack := await packs.current(connection, session_id):
        return pack
    session = await sessions.lock(connection, session_id)
    # The previous holder of the lock may have frozen it.
    if session.pack_version and (pack := await packs.current(connection, session_id)):
        return pack
    reason: PackReason = "forgotten" if session.pack_version else "initial"
    return await freeze_pack(connection, session, reason, parts.clock())


async def freeze_pack(connection: Connection, session: StoredSession, reason: PackReason, now: datetime) -> Pack:
    """Freeze the next version of a session's pack and return it. The caller holds the session's lock."""
    await packs.lock_to_freeze(connection)
    choice = await choose_rows(connection, session, now)
    text, tokens = render_pack(choice.lines, session.timezone)
    pack = Pack(
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        tokens=tokens,
        memory_ids=[reason.id for reason in choice.reasons],
        pins_left=choice.pins_left,
        reason=reason,
        created_at=now,
    )
    return await packs.insert(connection, session.id, pack, choice.reasons, choice.left_out)


async def choose_rows(connection: Connection, session: StoredSession, now: datetime) -> PackChoice:
    """Return the rows that a pack of the session would show now. Nothing is frozen."""
    pinned = await memories.pinned(connection, session.project, now)
    own = await memories.own_pack_rows(connection, session.id, now)
    own_groups = {group.id: group for group in await groups.of_session(connection, session.id)} if own else {}
    walks, tokens = walks_for(session.project), budgets(session.effective_context).global_pack_tokens
    while True:
        walks, candidates = await best_rows(
            connection, walks, tokens, project=session.project, without_session=session.id, now=now
        )
        offered = pinned, candidates, own, own_groups, session
        few = len(candidates) + len(own) <= _FEW
        choice = choose(*offered) if few else await asyncio.to_thread(choose, *offered)
        if choice.settled or all(walk.ended for walk in walks):
            return choice
        tokens *= 2


async def best_rows(
    connection: Connection,
    walks: list[Walk],
    tokens: int,
    *,
    project: str | None,
    without_session: str | None,
    now: datetime,
) -> tuple[list[Walk], list[PackRow]]:
    """Walk until the best rows are known; return the walks, and the best rows of at least `tokens` tokens."""
    while pages := next_pages(walks, tokens):
        walks = await memories.walk_on(
            connection, walks, pages, project=project, without_session=without_session, now=now
        )
    return walks, best(walks, tokens)
