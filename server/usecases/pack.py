"""The pack of a session: frozen until a reflection commits, messages were evicted, or something in it is forgotten."""

import asyncio
import hashlib
from datetime import datetime

from server.core.budgets import budgets
from server.core.packing import choose
from server.core.records import Memory, Pack, PackReason, Session
from server.core.rendering import PackRows, render_pack
from server.core.tokens import estimate_tokens
from server.db.database import Connection
from server.store import groups, memories, packs, sessions
from server.usecases.parts import Parts

# No row of a pack costs less than this, so no more rows than budget / this can fit.
_SHORTEST_ROW = 12


async def get_pack(parts: Parts, pool_id: str, session_id: str) -> Pack:
    """Return the session's pack, frozen now if there is none. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        if pack := await packs.current(connection, session_id):
            return pack
        session = await sessions.lock(connection, session_id)
        # Whoever held the lock before us may have frozen it.
        if pack := await packs.current(connection, session_id):
            return pack
        reason: PackReason = "forgotten" if session.pack_version else "initial"
        return await freeze_pack(connection, session, reason, parts.clock())


async def freeze_pack(connection: Connection, session: Session, reason: PackReason, now: datetime) -> Pack:
    """Freeze the next version of a session's pack and return it. The caller holds the session's lock."""
    rows = await _rows(connection, session, now)
    text = await asyncio.to_thread(render_pack, rows, session)
    pack = Pack(
        version=await sessions.next_pack_version(connection, session.id),
        text=text,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        tokens=estimate_tokens(text),
        memory_ids=_shown(rows),
        pins_left=rows.pins_left,
        reason=reason,
        created_at=now,
    )
    await packs.insert(connection, session.id, pack)
    return pack


async def _rows(connection: Connection, session: Session, now: datetime) -> PackRows:
    """Return the rows of a pack, held so that what is being forgotten meanwhile is in none."""
    while True:
        rows = await _chosen(connection, session, now)
        shown = _shown(rows)
        if await memories.hold(connection, shown) == set(shown):
            return rows


async def _chosen(connection: Connection, session: Session, now: datetime) -> PackRows:
    budget = budgets(session.effective_context).global_pack_tokens
    pinned = await memories.pinned(connection, session.project, now)
    ranked = await memories.best_of_classes(
        connection, session.id, session.project, now, tokens=budget, limit=budget // _SHORTEST_ROW
    )
    own = [row for row in await memories.live_of_session(connection, session.id) if not _expired(row, now)]
    known = {group.id: group for group in await groups.of_session(connection, session.id)}
    return await asyncio.to_thread(choose, pinned, ranked, own, known, session)


def _expired(row: Memory, now: datetime) -> bool:
    return row.valid_until is not None and row.valid_until <= now


def _shown(rows: PackRows) -> list[str]:
    return [row.id for row in (*rows.pool, *rows.own)]
