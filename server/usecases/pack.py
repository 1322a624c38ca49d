"""The pack of a session: frozen until a reflection commits, messages are evicted, or a row in it is forgotten."""

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import datetime

from esker.server.core.budgets import budgets
from esker.server.core.conversation.records import Group, StoredSession
from esker.server.core.pack.reasons import PackExplanation
from esker.server.core.pack.records import Pack, PackReason, PackRow
from esker.server.core.pack.rendering import render_pack
from esker.server.core.pack.selection import PackChoice, choose
from esker.server.core.pack.walks import Walk, best, next_pages, walks_for
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, fetch, known, send
from esker.server.store import groups, memories, packs, sessions
from esker.server.usecases.parts import Parts

# Up to this many rows are ranked in a few ms; a worker thread is not worth it.
_FEW = 1_000


async def get_pack(parts: Parts, pool_id: str, session_id: str) -> Pack:
    """Return the session's pack, frozen now if there is none. Raises NotFound."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        frozen = await send(connection, packs.current(session_id))
        session = await send(connection, sessions.by_id(session_id))
    return await frozen or await freeze_first_pack(parts, pool_id, await session)


async def freeze_first_pack(parts: Parts, pool_id: str, session: StoredSession) -> Pack:
    """Return the pack of a session that had none when it was read. Raises NotFound."""
    async with parts.database.tenant_pipeline(pool_id) as connection:
        pack = await _first_pack(parts, connection, session)
    return await pack


async def explain_pack(parts: Parts, pool_id: str, session_id: str) -> tuple[Pack, PackExplanation | None]:
    """Return the session's pack, frozen now if there is none, and the reasons for its rows.

    A pack that was frozen before reasons were stored has none. Raises NotFound.
    """
    async with parts.database.tenant_pipeline(pool_id) as connection:
        pack = await fetch(connection, packs.current(session_id))
        if pack is None:
            pack = await (await _first_pack(parts, connection, await sessions.get(connection, session_id)))
        return pack, await packs.explanation(connection, session_id, pack)


async def _first_pack(parts: Parts, connection: Connection, before: StoredSession) -> Answer[Pack]:
    """Freeze the pack of a session that had none `before`, unless another request was faster."""
    now = parts.clock()
    locked = await send(connection, sessions.locked(before.id))
    frozen = await send(connection, packs.current(before.id))
    await packs.lock_to_freeze(connection)
    offer = await _send_offer(connection, before, now)
    session = await locked
    if pack := await frozen:
        return known(pack)
    if session.project != before.project:
        offer = await _send_offer(connection, session, now)
    choice = await _choose(connection, session, offer, now)
    reason: PackReason = "forgotten" if session.pack_version else "initial"
    parts.instruments.packs.labels(reason).inc()
    return await _insert(connection, session, choice, reason, now)


async def freeze_pack(
    parts: Parts, connection: Connection, session: StoredSession, reason: PackReason, now: datetime
) -> None:
    """Freeze the next version of a session's pack. The caller holds the session's lock."""
    parts.instruments.packs.labels(reason).inc()
    await packs.lock_to_freeze(connection)
    await _insert(connection, session, await choose_rows(connection, session, now), reason, now)


async def _insert(
    connection: Connection, session: StoredSession, choice: PackChoice, reason: PackReason, now: datetime
) -> Answer[Pack]:
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
    return await send(connection, packs.inserted(session.id, pack, choice.reasons, choice.left_out))


@dataclass(frozen=True, slots=True)
class _Offer:
    """Queries under way for the rows that a pack is chosen from, with the first pages of all walks."""

    pinned: Answer[list[PackRow]]
    own: Answer[list[PackRow]]
    own_groups: Answer[dict[str, Group]]
    walks: Answer[list[Walk]]


async def _send_offer(connection: Connection, session: StoredSession, now: datetime) -> _Offer:
    walks = walks_for(session.project)
    first = memories.walked(
        walks, next_pages(walks, _tokens(session)), project=session.project, without_session=session.id, now=now
    )
    return _Offer(
        await send(connection, memories.pinned(session.project, now)),
        await send(connection, memories.own_pack_rows(session.id, now)),
        await send(connection, groups.of_session(session.id)),
        await send(connection, first),
    )


def _tokens(session: StoredSession) -> int:
    return budgets(session.effective_context).global_pack_tokens


async def choose_rows(connection: Connection, session: StoredSession, now: datetime) -> PackChoice:
    """Return the rows that a pack of the session would show now. Nothing is frozen."""
    return await _choose(connection, session, await _send_offer(connection, session, now), now)


async def _choose(connection: Connection, session: StoredSession, offer: _Offer, now: datetime) -> PackChoice:
    pinned, own, own_groups, walks = await offer.pinned, await offer.own, await offer.own_groups, await offer.walks
    tokens = _tokens(session)
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
        next_walks = memories.walked(walks, pages, project=project, without_session=without_session, now=now)
        walks = await fetch(connection, next_walks)
    return walks, best(walks, tokens)
