"""Reflect: the live rows of a session become fewer rows, and a bad reflection changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from server.core.budgets import budgets
from server.core.errors import Conflict, ModelFailed
from server.core.ids import new_id, new_ids
from server.core.records import Draft, Lease, Memory, NewMemory, Reflected, Session
from server.core.redaction import redact
from server.core.tokens import estimate_tokens
from server.core.trust import lowest_trust
from server.db.database import Connection
from server.providers.roles import Reflector
from server.store import jobs, memories, reflections, sessions, vectors
from server.usecases.pack import rebuild
from server.usecases.parts import Parts
from server.usecases.run_job import finish_job


@dataclass(frozen=True, slots=True)
class ReflectReport:
    """What reflecting a session changed. Tokens are those of its live rows, before and after."""

    memories: int
    superseded: int
    reflector: str
    queued: bool
    tokens_before: int
    tokens_after: int
    reflection_ids: list[str]


async def reflect(parts: Parts, pool_id: str, session_id: str, *, wait: bool) -> ReflectReport:
    """Have a session reflected, in the background or, with `wait`, before returning.

    When nothing was observed since the last reflection, or nothing can be condensed, nothing changes. Raises NotFound,
    Conflict when reflecting is switched off, ModelFailed (with `wait`).
    """
    reflector = _reflector(parts)
    async with parts.database.tenant(pool_id) as connection:
        await sessions.get(connection, session_id)
        before = await memories.live_of_session(connection, session_id)
        await jobs.request(connection, "reflect", session_id, parts.clock())

    async def done(connection: Connection) -> bool:
        return not any(job.kind == "reflect" for job in await jobs.of_session(connection, session_id))

    if wait:
        await finish_job(parts, pool_id, session_id, "reflect", reflect_leased, done)
    async with parts.database.tenant(pool_id) as connection:
        after = await memories.live_of_session(connection, session_id)
    there = {memory.id for memory in before}
    fresh = [memory for memory in after if memory.id not in there and memory.kind == "reflection"]
    return ReflectReport(
        memories=len(fresh),
        superseded=len(there - {memory.id for memory in after}),
        reflector=reflector.name,
        queued=not wait,
        tokens_before=_tokens(before),
        tokens_after=_tokens(after),
        reflection_ids=sorted({memory.reflection_id for memory in fresh if memory.reflection_id}),
    )


async def reflect_leased(parts: Parts, lease: Lease) -> None:
    """Reflect a session once, and end the job. Raises ModelFailed when the answer is not better than what is there."""
    reflector = _reflector(parts)
    async with parts.database.tenant(lease.pool_id) as connection:
        session = await sessions.get(connection, lease.session_id)
        rows = await memories.live_of_session(connection, lease.session_id)
    fresh = any(row.kind == "observation" for row in rows)
    target = budgets(session.effective_context).observation_tokens // 2
    reflected = await reflector.reflect(session, rows, target) if fresh else Reflected(drafts=())
    if reflected.drafts and _cost(reflected.drafts) >= _tokens(rows):
        raise ModelFailed(f"{reflector.name} wrote a reflection that is no smaller than what it replaces.")
    await _commit(parts, lease, session, rows, reflected, reflector.name)


def _reflector(parts: Parts) -> Reflector:
    if parts.reflector is None:
        raise Conflict("Reflecting is switched off on this server.", hint="Set ESKER_REFLECTOR to switch it on.")
    return parts.reflector


async def _commit(
    parts: Parts, lease: Lease, session: Session, rows: Sequence[Memory], reflected: Reflected, reflector: str
) -> None:
    """Write the new rows, supersede the old and rebuild the pack together, or nothing."""
    now = parts.clock()
    async with parts.database.tenant(lease.pool_id) as connection:
        if reflected.drafts:
            await sessions.get(connection, session.id, lock=True)
            await _replace(connection, session, rows, reflected, reflector, now)
            await rebuild(connection, session, "reflection", now)
        await jobs.done(connection, lease)


async def _replace(
    connection: Connection,
    session: Session,
    rows: Sequence[Memory],
    reflected: Reflected,
    reflector: str,
    now: datetime,
) -> None:
    """Raises Conflict when a source is not live any more: what was forgotten must not come back."""
    reflection_id = new_id("ref", now)
    by_id = {row.id: row for row in rows}
    ids = new_ids("mem", now, len(reflected.drafts))
    fresh = [
        NewMemory(
            id=memory_id,
            kind="reflection",
            priority=draft.priority,
            category=draft.category,
            trust=lowest_trust(by_id[source].trust for source in draft.source_ids),
            content=redact(draft.content),
            author=reflector,
            said_at=draft.said_at,
            last_used_at=max(by_id[source].last_used_at for source in draft.source_ids),
            created_at=now,
            session_id=session.id,
            project=session.project,
            source_ids=draft.source_ids,
            reflection_id=reflection_id,
        )
        for memory_id, draft in zip(ids, reflected.drafts, strict=True)
    ]
    replaced = dict.fromkeys(reflected.dropped_ids, reflection_id)
    replaced |= {source: row.id for row in fresh for source in row.source_ids}
    await memories.insert(connection, fresh)
    if await memories.supersede(connection, replaced, now) != replaced.keys():
        raise Conflict("A row was changed while it was being reflected; the reflection is not used.", hint="Try again.")
    await vectors.enqueue(connection, ids, now)
    await reflections.insert(
        connection,
        reflection_id=reflection_id,
        session_id=session.id,
        reflector=reflector,
        input_ids=[row.id for row in rows],
        output_ids=ids,
        tokens_before=_tokens(rows),
        tokens_after=_cost(reflected.drafts),
        used=reflected.used,
        now=now,
    )


def _tokens(rows: Sequence[Memory]) -> int:
    return sum(row.tokens for row in rows)


def _cost(drafts: Sequence[Draft]) -> int:
    return sum(estimate_tokens(draft.content) for draft in drafts)
