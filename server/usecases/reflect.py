"""Reflect a session: condense its live rows into fewer. A bad reflection changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from esker.server.core.budgets import budgets
from esker.server.core.conversation.records import StoredSession
from esker.server.core.errors import Conflict
from esker.server.core.facts.condensing import MAX_ROW_TOKENS, is_insight
from esker.server.core.facts.records import Reflection, ReflectionTask
from esker.server.core.records import Lease, Memory
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.providers.roles import Reflector
from esker.server.store import jobs, memories, reflections, sessions, vectors
from esker.server.store.reflections import ReflectionSubject
from esker.server.usecases.condense import batches, condense, tokens_of
from esker.server.usecases.pack import freeze_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.run_job import wait_for_job

# After a reflection that gained nothing, 1/8 of the trigger must be new before the next one.
_NEW_PART = 8


@dataclass(frozen=True, slots=True)
class ReflectReport:
    """The effect of reflecting. Tokens are those of the live rows that it read, before and after.

    `left_out` of the `superseded` rows have no successor: recall finds them only if superseded rows are asked for.
    `rejected` says why no candidate was good enough; then nothing was changed.
    """

    memories: int
    superseded: int
    left_out: int
    reflector: str
    queued: bool
    rejected: str | None
    tokens_before: int
    tokens_after: int
    reflection_ids: list[str]


async def reflect(parts: Parts, pool_id: str, session_id: str, *, wait: bool) -> ReflectReport:
    """Reflect a session, in the background or, with `wait`, before returning.

    If nothing was observed since the last reflection, or nothing can be condensed, nothing changes. A run that
    outlasts the request continues in the background; call again to keep waiting. Raises NotFound, Conflict when
    reflecting is switched off, and with `wait` the error of the job.
    """
    reflector = reflector_of(parts)
    if wait:
        parts.breakers.try_again()
    async with parts.database.tenant(pool_id) as connection:
        await sessions.lock(connection, session_id)
        rows = await memories.live_of_session(connection, session_id)
        newest = next((r.id for r in await reflections.listed(connection, session_id=session_id, limit=1)), "")
        # A caller that waits, waits for the run that has begun; requesting another each time would never end.
        if not (wait and await jobs.runs(connection, "reflect", session_id)):
            await jobs.request(connection, "reflect", session_id, parts.clock())

    async def done(connection: Connection) -> bool:
        return not any(job.kind == "reflect" for job in await jobs.about(connection, session_id))

    finished = wait and await wait_for_job(parts, pool_id, session_id, "reflect", done)
    async with parts.database.tenant(pool_id) as connection:
        made = await reflections.listed(connection, session_id=session_id, after=newest)
        return await report_of(connection, made, reflector.name, tokens_of(rows), queued=not finished)


async def report_of(
    connection: Connection, made: Sequence[Reflection], reflector: str, untouched: int, *, queued: bool
) -> ReflectReport:
    """Return the combined effect of some reflections; without any, the tokens are `untouched`."""
    committed = [reflection for reflection in made if reflection.state == "committed"]
    rejected = next((reflection.reason for reflection in made if reflection.state == "rejected"), None)
    outputs = await memories.get(connection, {i for reflection in committed for i in reflection.output_ids})
    cited = {i for row in outputs.values() if not is_insight(row) for i in row.source_ids}
    left_out = sum(len(reflection.dropped_ids) for reflection in committed)
    return ReflectReport(
        memories=len(outputs),
        superseded=len(cited) + left_out,
        left_out=left_out,
        reflector=made[0].reflector if made else reflector,
        queued=queued,
        rejected=rejected,
        tokens_before=sum(r.tokens_before for r in made) if made else untouched,
        tokens_after=sum(r.tokens_after for r in made) if made else untouched,
        reflection_ids=[reflection.id for reflection in committed],
    )


async def reflect_leased(parts: Parts, lease: Lease) -> None:
    """Reflect the live rows of a session, batch by batch, and finish the job.

    If nothing was gained, the next reflection waits until enough rows are new. Raises LeaseLost, RowsChanged.
    """
    limit = await reflector_of(parts).batch_tokens()
    async with parts.database.tenant(lease.pool_id) as connection:
        session = await sessions.get(connection, lease.subject)
        rows = await memories.live_of_session(connection, lease.subject)
    gained = [
        await _reflect_batch(parts, lease, session, batch) for batch in batches(rows, limit) if _is_worth_it(batch)
    ]
    async with parts.database.tenant(lease.pool_id) as connection:
        if gained and not any(gained):
            await sessions.lock(connection, session.id)
            await wait_for_more(connection, session)
        await jobs.done(connection, lease, parts.clock())


def _is_worth_it(batch: Sequence[Memory]) -> bool:
    """Whether rows could get fewer or shorter: reflected ones could not, until an observation is added."""
    return any(row.kind == "observation" for row in batch) and (len(batch) > 1 or tokens_of(batch) > MAX_ROW_TOKENS)


async def _reflect_batch(parts: Parts, lease: Lease, session: StoredSession, rows: Sequence[Memory]) -> bool:
    async with parts.database.tenant(lease.pool_id) as connection:
        known = await vectors.of_rows(connection, [row.id for row in rows])
    target = budgets(session.effective_context).observation_tokens // 2
    task = ReflectionTask(tuple(rows), target, session.timezone, "session", known)

    async def rebuild_pack(connection: Connection, now: datetime) -> None:
        await sessions.reflect_at(connection, session.id, None)
        await freeze_pack(parts, connection, await sessions.get(connection, session.id), "reflection", now)

    return await condense(
        parts, lease, reflector_of(parts), task, ReflectionSubject(session.id, session.project), rebuild_pack
    )


def reflector_of(parts: Parts) -> Reflector:
    """Return the reflector. Raises Conflict when reflecting is switched off."""
    if parts.reflector is None:
        raise Conflict("Reflecting is switched off on this server.", hint="Set ESKER_REFLECTOR to switch it on.")
    return parts.reflector


async def wait_for_more(connection: Connection, session: StoredSession) -> None:
    """Postpone the automatic reflection until an eighth of the session's trigger is new. The session is locked."""
    trigger = budgets(session.effective_context).observation_tokens
    live_tokens = await fetch(connection, memories.observation_tokens(session.id))
    await sessions.reflect_at(connection, session.id, max(trigger, live_tokens + max(1, trigger // _NEW_PART)))
