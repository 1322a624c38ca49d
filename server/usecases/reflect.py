"""Reflect: the live rows of a session become fewer rows, and a bad reflection changes nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from server.core.budgets import budgets
from server.core.errors import Conflict, ModelFailed
from server.core.ids import new_id, new_ids
from server.core.indexing import IndexedMemory, indexed
from server.core.records import Lease, Memory, NewMemory, Reflected, Session, TokenUse
from server.core.redaction import redact
from server.core.terms import says_something
from server.core.tokens import estimate_tokens
from server.core.trust import lowest_trust
from server.db.database import Connection
from server.providers.roles import Reflector
from server.store import jobs, memories, reflections, sessions, vectors
from server.store.memories import Superseder
from server.usecases.pack import freeze_pack
from server.usecases.parts import Parts
from server.usecases.run_job import wait_for_job

# A row with less than this share of the tokens of its sources, or of its largest source of high priority, is no
# reflection of them.
_LEAST_SHARE = 0.02
_LEAST_SHARE_OF_HIGH = 0.3


@dataclass(frozen=True, slots=True)
class ReflectReport:
    """What reflecting a session changed. Tokens are those of its live rows, before and after.

    Of the `superseded` rows `left_out` have no row that says the same: they can be found, but only when asked for.
    """

    memories: int
    superseded: int
    left_out: int
    reflector: str
    queued: bool
    tokens_before: int
    tokens_after: int
    reflection_ids: list[str]


async def reflect(parts: Parts, pool_id: str, session_id: str, *, wait: bool) -> ReflectReport:
    """Have a session reflected, in the background or, with `wait`, before returning.

    When nothing was observed since the last reflection, or nothing can be condensed, nothing changes. What takes
    longer than a request may last goes on in the background; asking again waits on. Raises NotFound, Conflict when
    reflecting is switched off, and with `wait` whatever the job failed with.
    """
    reflector = _reflector(parts)
    async with parts.database.tenant(pool_id) as connection:
        await sessions.lock(connection, session_id)
        before = await memories.live_of_session(connection, session_id)
        await jobs.request(connection, "reflect", session_id, parts.clock())

    async def done(connection: Connection) -> bool:
        return not any(job.kind == "reflect" for job in await jobs.of_session(connection, session_id))

    finished = wait and await wait_for_job(parts, pool_id, session_id, "reflect", done)
    async with parts.database.tenant(pool_id) as connection:
        after = await memories.live_of_session(connection, session_id)
        gone = await memories.get(connection, {memory.id for memory in before} - {memory.id for memory in after})
    there = {memory.id for memory in before}
    fresh = [memory for memory in after if memory.id not in there and memory.kind == "reflection"]
    return ReflectReport(
        memories=len(fresh),
        superseded=len(gone),
        left_out=sum((memory.superseded_by or "").startswith("ref_") for memory in gone.values()),
        reflector=reflector.name,
        queued=not finished,
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
    if not reflected.drafts:
        async with parts.database.tenant(lease.pool_id) as connection:
            await jobs.done(connection, lease, parts.clock())
        return
    made = await asyncio.to_thread(_made, session, rows, reflected, reflector.name, parts.clock())
    if made.tokens >= _tokens(rows):
        raise ModelFailed(f"{reflector.name} wrote a reflection that is no smaller than what it replaces.")
    _require_content(reflector.name, rows, reflected)
    await _commit(parts, lease, rows, made)


def _reflector(parts: Parts) -> Reflector:
    if parts.reflector is None:
        raise Conflict("Reflecting is switched off on this server.", hint="Set ESKER_REFLECTOR to switch it on.")
    return parts.reflector


def _require_content(reflector: str, rows: Sequence[Memory], reflected: Reflected) -> None:
    """Raise ModelFailed for a row that says next to nothing of what it stands for, above all of what matters most."""
    by_id = {row.id: row for row in rows}
    for draft in reflected.drafts:
        sources = [by_id[source] for source in draft.source_ids]
        largest = max((row.tokens for row in sources if row.priority == "high"), default=0)
        least = max(_LEAST_SHARE * _tokens(sources), _LEAST_SHARE_OF_HIGH * largest)
        if not says_something(draft.content) or estimate_tokens(draft.content) < least:
            raise ModelFailed(f"{reflector} wrote a row that says too little of what it stands for.")


@dataclass(frozen=True, slots=True)
class _Made:
    """A reflection that is ready to be written. `replaced` are the old rows, each with what takes its place."""

    id: str
    reflector: str
    rows: list[IndexedMemory]
    replaced: dict[str, Superseder]
    used: TokenUse

    @property
    def tokens(self) -> int:
        return sum(row.tokens for row in self.rows)


def _made(session: Session, rows: Sequence[Memory], reflected: Reflected, reflector: str, now: datetime) -> _Made:
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
    whole = Superseder(reflection_id, max(row.said_at for row in fresh))
    replaced = dict.fromkeys(reflected.dropped_ids, whole)
    replaced |= {source: Superseder(row.id, row.said_at) for row in fresh for source in row.source_ids}
    return _Made(reflection_id, reflector, indexed(fresh), replaced, reflected.used)


async def _commit(parts: Parts, lease: Lease, rows: Sequence[Memory], made: _Made) -> None:
    """Write the new rows, supersede the old and rebuild the pack together, or nothing.

    Raises LeaseLost, and Conflict when a source is not live any more: what was forgotten must not come back.
    """
    now = parts.clock()
    async with parts.database.tenant(lease.pool_id) as connection:
        session = await sessions.lock(connection, lease.session_id)
        await memories.insert(connection, made.rows)
        if await memories.supersede(connection, made.replaced, now) != made.replaced.keys():
            raise Conflict(
                "A row was changed while it was being reflected; the reflection is not used.", hint="Try again."
            )
        await reflections.insert(
            connection,
            reflection_id=made.id,
            session_id=session.id,
            reflector=made.reflector,
            input_ids=[row.id for row in rows],
            output_ids=[row.memory.id for row in made.rows],
            tokens_before=_tokens(rows),
            tokens_after=made.tokens,
            used=made.used,
            now=now,
        )
        await vectors.enqueue(connection, [row.memory.id for row in made.rows], now)
        await freeze_pack(connection, session, "reflection", now)
        await jobs.done(connection, lease, now)


def _tokens(rows: Sequence[Memory]) -> int:
    return sum(row.tokens for row in rows)
