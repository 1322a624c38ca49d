"""The pack of a session: frozen until a reflection commits, messages were evicted, or something in it is forgotten."""

import hashlib
from collections.abc import Iterable
from datetime import datetime

from server.core.budgets import budgets
from server.core.packing import choose
from server.core.records import Pack, PackReason, Session
from server.core.rendering import PackRows, render_pack
from server.core.tokens import estimate_tokens
from server.db.database import Connection
from server.store import groups, memories, packs, sessions
from server.usecases.parts import Parts

# No row of a pack costs less than this, so no more rows than budget / this can fit.
_SHORTEST_ROW = 12


async def get_pack(parts: Parts, pool_id: str, session_id: str) -> Pack:
    """Return the session's pack, frozen now if it is the first. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        if pack := await packs.latest(connection, session_id):
            return pack
        session = await sessions.get(connection, session_id, lock=True)
        # Whoever held the lock before us may have frozen it.
        return await packs.latest(connection, session_id) or await rebuild(
            connection, session, "initial", parts.clock()
        )


async def rebuild(connection: Connection, session: Session, reason: PackReason, now: datetime) -> Pack:
    """Freeze the next version of a session's pack and return it. The caller holds the session's lock."""
    before = await packs.latest(connection, session.id)
    rows = await _rows(connection, session, now)
    text = render_pack(rows, session)
    pack = Pack(
        version=before.version + 1 if before else 1,
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        tokens=estimate_tokens(text),
        memory_ids=[memory.id for memory in (*rows.pool, *rows.own)],
        reason=reason,
        created_at=now,
    )
    await packs.insert(connection, session.id, pack)
    return pack


async def rebuild_existing(
    connection: Connection, session_ids: Iterable[str], reason: PackReason, now: datetime
) -> None:
    """Freeze a new version for each of these sessions."""
    for session_id in sorted(session_ids):
        session = await sessions.get(connection, session_id, lock=True)
        await rebuild(connection, session, reason, now)


async def _rows(connection: Connection, session: Session, now: datetime) -> PackRows:
    limit = budgets(session.effective_context).global_pack_tokens // _SHORTEST_ROW
    pinned = await memories.pinned(connection, session.project, now)
    ranked = await memories.best_of_classes(connection, session.id, session.project, now, limit)
    own = await memories.live_of_session(connection, session.id)
    known = {group.id: group for group in await groups.of_session(connection, session.id)}
    return choose(pinned, ranked, own, known, session)
