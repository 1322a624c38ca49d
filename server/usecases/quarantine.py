"""Quarantine: take what came from a source, a session, a client or a time out of recall and packs, reversibly.

A memory in quarantine is superseded by it, so nothing shows, merges or condenses it. Its state is kept, and returns
when the quarantine is lifted. Until then the quarantine also covers what is added within its limits.
"""

from dataclasses import replace
from functools import partial

from esker.server.core.clock import as_utc
from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.core.facts.forgetting import Quarantine, Quarantined, Selection
from esker.server.core.ids import new_id
from esker.server.core.records import Principal
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch, send
from esker.server.store import audit, hidden_calls, memories, packs, quarantine, sessions
from esker.server.usecases.find_projects import renamed_projects
from esker.server.usecases.forgotten_places import with_new_names
from esker.server.usecases.in_each_pool import in_each_pool
from esker.server.usecases.parts import Parts

_MOST_TRIES = 5


async def begin_quarantine(parts: Parts, who: Principal, limits: Selection) -> Quarantined:
    """Take everything within some limits out of recall and packs. Raises InvalidInput, NotFound, Conflict."""
    if limits.ids or limits.words or not limits.is_limited:
        raise InvalidInput("A quarantine needs limits.", hint="Give a source, session, client, project or time.")
    now = parts.clock()
    quarantine_id = new_id("qua", now)
    locked: set[str] = set()
    for _ in range(_MOST_TRIES):
        async with parts.database.tenant(who.pool_id) as connection:
            # Nothing is forgotten from here on, so no name that is forgotten meanwhile is written.
            await quarantine.lock(connection)
            present = await _with_present_names(connection, limits)
            values = {**present.limits, "since": as_utc(limits.since), "until": as_utc(limits.until)}
            made = Quarantine(quarantine_id, created_at=now, lifted_at=None, **values)  # pyright: ignore[reportArgumentType]
            if made.session_id is not None:
                await sessions.get(connection, made.session_id)
            await sessions.lock_all(connection, locked)
            if (concerned := await quarantine.sessions_in(connection, made)) <= locked:
                await quarantine.insert(connection, made)
                done = await _cover(parts, connection, made, concerned)
                await _record(parts, connection, who, "quarantine", done)
                return done
        # Locking them now would break the lock order, so start again.
        locked |= concerned
    raise Conflict("Sessions keep being added; nothing was put into quarantine.", hint="Try again.")


async def _with_present_names(connection: Connection, limits: Selection) -> Selection:
    """Return limits with the present names of their project and client, which may be renamed or forgotten."""
    limits = await with_new_names(connection, limits)
    if limits.project is None:
        return limits
    renamed = await renamed_projects(connection, [limits.project], {})
    return replace(limits, project=renamed.get(limits.project, limits.project))


async def _cover(parts: Parts, connection: Connection, one: Quarantine, concerned: set[str]) -> Quarantined:
    """Hide what is within the limits of a quarantine and not hidden yet. The sessions are locked."""
    ids = await memories.drawn_from(connection, await quarantine.memories_in(connection, one))
    revived = await memories.replaced_by(connection, ids) - ids
    existing = await memories.lock_to_change(connection, ids | revived)
    ids, revived = ids & existing, revived & existing
    await quarantine.keep_state(connection, one.id, ids | revived)
    # Before these have another superseder, by which the rows that they replaced are found.
    restored = await memories.restore(connection, ids) if revived else set[str]()
    await quarantine.hide_memories(connection, one.id, ids, parts.clock())
    hidden = await quarantine.hide_passages(connection, one)
    await quarantine.hide_sessions(connection, one.id, concerned)
    shown = await packs.delete_showing(connection, ids)
    if ids or hidden:
        await hidden_calls.delete_all(connection)
    return Quarantined(one.id, len(ids), len(restored - ids), hidden, len(concerned), shown)


async def lift_quarantine(parts: Parts, who: Principal, quarantine_id: str) -> Quarantined:
    """Bring back everything that a quarantine has taken out. Raises NotFound, and Conflict if it is lifted already."""
    async with parts.database.tenant(who.pool_id) as connection:
        await quarantine.lock(connection)
        known = {one.id: one for one in await quarantine.listed(connection)}
        if quarantine_id not in known:
            raise NotFound(f"There is no quarantine {quarantine_id!r} in this pool.")
        changed, concerned = await quarantine.covered(connection, quarantine_id)
        await sessions.lock_all(connection, concerned)
        await memories.lock_to_change(connection, changed)
        if not await quarantine.mark_lifted(connection, quarantine_id, parts.clock()):
            raise Conflict(f"{quarantine_id} is lifted already.")
        rows, shown = await quarantine.restore(connection, quarantine_id)
        done = Quarantined(
            quarantine_id, rows, 0, shown, len(concerned), await packs.delete_showing(connection, changed)
        )
        await _record(parts, connection, who, "quarantine.lift", done)
    # Another quarantine may cover some of it, too.
    await extend_quarantines(parts, who.pool_id)
    return done


async def list_quarantines(parts: Parts, pool_id: str) -> list[Quarantine]:
    """Return the quarantines of a pool, the latest first."""
    async with parts.database.tenant(pool_id) as connection:
        return await quarantine.listed(connection)


async def extend_quarantines(parts: Parts, pool_id: str) -> None:
    """Have the quarantines of a pool cover what was added within their limits."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        active = await send(connection, quarantine.active())
    for one in await active:
        async with parts.database.tenant(pool_id) as connection:
            await quarantine.lock(connection)
            if one in await fetch(connection, quarantine.active()):
                concerned = await quarantine.sessions_in(connection, one)
                await sessions.lock_all(connection, concerned)
                await _cover(parts, connection, one, concerned)


async def extend_all_quarantines(parts: Parts) -> None:
    """Have the quarantines of all pools cover what was added within their limits."""
    pools = await quarantine.pools_with_one(parts.database)
    await in_each_pool("extending quarantines", pools, partial(extend_quarantines, parts))


async def _record(parts: Parts, connection: Connection, who: Principal, action: str, done: Quarantined) -> None:
    counts = {"memories": done.memories, "passages": done.passages, "sessions": done.sessions, "packs": done.packs}
    await audit.insert(connection, who.actor, action, done.id, counts, parts.clock())
