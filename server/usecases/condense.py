"""Condense rows: ask a reflector for candidates until one is good enough, and replace the rows by it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from esker.server.core.config.prices import add_up
from esker.server.core.conversation.trust import lowest_trust
from esker.server.core.errors import RowsChanged, SpendCapReached, UnusableAnswer
from esker.server.core.facts.condensing import judge
from esker.server.core.facts.records import Draft, Reflected, ReflectionTask, Superseder
from esker.server.core.ids import new_id, new_ids
from esker.server.core.records import Lease, Memory, NewMemory, TokenUse
from esker.server.core.redaction import redact
from esker.server.core.text.indexing import IndexedMemory, indexed
from esker.server.db.database import Connection
from esker.server.providers.roles import Meter, Reflector
from esker.server.store import jobs, memories, reflections, sessions, vectors
from esker.server.store.reflections import ReflectionSubject
from esker.server.usecases.find_projects import renamed_projects
from esker.server.usecases.parts import Parts
from esker.server.usecases.spending import PoolMeter, falls_back
from esker.server.usecases.tombstones import SaidText, are_forgotten

# Tokens of a row in a prompt besides its text, at most: id, date, priority, category and trust.
_LINE_TOKENS = 40
_FORGOTTEN = "it says something that was forgotten"
LEVELS = 4
"""Most candidates that are asked for, each with more guidance than the one before."""


@dataclass(frozen=True, slots=True)
class _ReflectionCandidate:
    """A candidate that is good enough (`problem` is None), or the last one that was not."""

    reflector: str
    level: int
    problem: str | None
    reflected: Reflected
    used: TokenUse

    @property
    def nothing(self) -> bool:
        """Whether the reflector had nothing to condense."""
        return self.problem is None and not self.reflected.drafts


async def condense(
    parts: Parts,
    lease: Lease,
    reflector: Reflector,
    task: ReflectionTask,
    subject: ReflectionSubject,
    and_then: Callable[[Connection, datetime], Awaitable[None]] | None = None,
) -> bool:
    """Condense the rows of a task; return whether anything was gained.

    A gain is written in one transaction, together with `and_then`; without one, no row changes. Raises LeaseLost, the
    errors of a model call, and RowsChanged when a row is not live any more: a forgotten row must not come back.
    """
    async with parts.database.tenant(lease.pool_id) as connection:
        await jobs.hold(connection, lease, lease.until)
    candidate = await _best_candidate(parts, lease.pool_id, reflector, task)
    now = parts.clock()
    if candidate.nothing:
        return False
    if candidate.problem:
        async with parts.database.tenant(lease.pool_id) as connection:
            await _record_rejection(parts, connection, candidate, task.rows, subject, now)
            await jobs.hold(connection, lease, lease.until)
            await jobs.progress(connection, lease, now)
        return False
    made = await asyncio.to_thread(_ready_reflection, candidate, task.rows, subject, now)
    async with parts.database.tenant(lease.pool_id) as connection:
        # No other transaction may condense or forget the rows meanwhile.
        await sessions.lock_all(connection, {row.session_id for row in task.rows if row.session_id})
        if (made := await _without_forgotten(parts, connection, made)) is None:
            await _record_rejection(parts, connection, replace(candidate, problem=_FORGOTTEN), task.rows, subject, now)
            await jobs.hold(connection, lease, lease.until)
            await jobs.progress(connection, lease, now)
            return False
        await _write(connection, made, now)
        if and_then:
            await and_then(connection, now)
        await jobs.hold(connection, lease, lease.until)
        await jobs.progress(connection, lease, now)
    return True


async def _best_candidate(
    parts: Parts, pool_id: str, reflector: Reflector, task: ReflectionTask
) -> _ReflectionCandidate:
    """Return the first candidate that is good enough, or else the last one with its problem.

    If the daily cap is reached and the pool falls back, the candidate is made without a model. Raises ModelFailed
    when the model cannot be called, SpendCapReached.
    """
    meter = PoolMeter(parts, pool_id, "reflect")
    try:
        return await _levels(reflector, task, meter)
    except SpendCapReached:
        if parts.spare_reflector is None or not await falls_back(parts, pool_id):
            raise
        return await _levels(parts.spare_reflector, task, meter)


async def _levels(reflector: Reflector, task: ReflectionTask, meter: Meter) -> _ReflectionCandidate:
    used: list[TokenUse] = []
    problem, reflected, level = None, Reflected(()), 0
    for level in range(LEVELS):
        try:
            reflected = await reflector.reflect(replace(task, level=level, complaint=problem), meter)
        except UnusableAnswer as error:
            # Any other error says nothing about the rows: it fails the job, which is retried.
            problem = str(error)
            continue
        used.append(reflected.used)
        if not reflected.drafts:
            return _ReflectionCandidate(reflector.name, level, None, reflected, add_up(used))
        problem = (await asyncio.to_thread(judge, task.rows, reflected, task.target_tokens)).problem
        if problem is None:
            break
    return _ReflectionCandidate(reflector.name, level, problem, reflected, add_up(used))


@dataclass(frozen=True, slots=True)
class _ReadyReflection:
    """A reflection that is ready to be written. `replaced`: id of an old row → its superseder."""

    id: str
    subject: ReflectionSubject
    candidate: _ReflectionCandidate
    inputs: Sequence[Memory]
    rows: list[IndexedMemory]
    replaced: Mapping[str, Superseder]

    @property
    def tokens(self) -> int:
        """Tokens of the new rows and of the inputs that stay as they were."""
        stays = sum(row.tokens for row in self.inputs if row.id not in self.replaced)
        return stays + sum(row.tokens for row in self.rows)


def _ready_reflection(
    candidate: _ReflectionCandidate, inputs: Sequence[Memory], subject: ReflectionSubject, now: datetime
) -> _ReadyReflection:
    reflection_id = new_id("ref", now)
    by_id = {row.id: row for row in inputs}
    drafts = candidate.reflected.drafts
    fresh = [
        _row(memory_id, draft, [by_id[source] for source in draft.source_ids], subject, candidate.reflector, now)
        for memory_id, draft in zip(new_ids("mem", now, len(drafts)), drafts, strict=True)
    ]
    fresh = [replace(row, reflection_id=reflection_id) for row in fresh]
    whole = Superseder(reflection_id, max(row.said_at for row in inputs))
    replaced = dict.fromkeys(candidate.reflected.dropped_ids, whole)
    for draft, row in zip(drafts, fresh, strict=True):
        if not draft.facet:
            replaced |= {source: Superseder(row.id, row.said_at) for source in row.source_ids}
    return _ReadyReflection(reflection_id, subject, candidate, inputs, indexed(fresh), replaced)


def _row(
    memory_id: str, draft: Draft, sources: Sequence[Memory], subject: ReflectionSubject, reflector: str, now: datetime
) -> NewMemory:
    """Return the row of a draft, with the trust and the times of its sources, and the reflector as its author."""
    # A row that is repeated word for word keeps its own times; its other sources are outdated or say the same.
    dated = [row for row in sources if row.content == draft.content] or sources
    began = [row.refers_from for row in dated if row.refers_from]
    ended = [end for row in dated if (end := row.refers_to or row.refers_from)]
    limits = [row.valid_until for row in dated]
    return NewMemory(
        id=memory_id,
        kind="reflection",
        priority=draft.priority,
        category=draft.category,
        trust=lowest_trust(row.trust for row in sources),
        content=redact(draft.content),
        author=reflector,
        said_at=max(row.said_at for row in sources),
        last_used_at=max(row.last_used_at for row in sources),
        created_at=now,
        session_id=None if draft.facet else subject.session_id,
        project=subject.project,
        tags=tuple(dict.fromkeys(tag for row in sources for tag in row.tags)),
        facet=draft.facet,
        source_ids=draft.source_ids,
        refers_from=min(began, default=None),
        refers_to=max(ended, default=None) if began else None,
        # It expires with the last of its sources, if all of them expire.
        valid_until=max(filter(None, limits)) if all(limits) else None,
        tentative=all(row.tentative for row in sources),
    )


async def _without_forgotten(parts: Parts, connection: Connection, made: _ReadyReflection) -> _ReadyReflection | None:
    """Return a reflection without insights that were forgotten; None if a row that would replace others was."""
    rows = [row.memory for row in made.rows]
    gone = await are_forgotten(parts, connection, [SaidText(row.content, row.said_at, row.project) for row in rows])
    if any(is_gone and not row.facet for row, is_gone in zip(rows, gone, strict=True)):
        return None
    return replace(made, rows=[row for row, is_gone in zip(made.rows, gone, strict=True) if not is_gone])


async def _write(connection: Connection, made: _ReadyReflection, now: datetime) -> None:
    """Write a reflection and supersede the rows that it replaces. The sessions are locked. Raises RowsChanged."""
    drawn_from = {source for row in made.rows for source in row.memory.source_ids}
    touched = {*made.replaced, *drawn_from}
    if await memories.lock_live(connection, touched) != touched:
        raise RowsChanged
    subject = await _present(connection, made.subject)
    if subject != made.subject:
        rows = [IndexedMemory(replace(row.memory, project=subject.project)) for row in made.rows]
        made = replace(made, subject=subject, rows=rows)
    await memories.insert(connection, made.rows)
    await memories.inherit_use(connection, [row.memory.id for row in made.rows])
    await memories.supersede(connection, made.replaced, now)
    await reflections.insert(
        connection,
        reflection_id=made.id,
        subject=made.subject,
        reflector=made.candidate.reflector,
        level=made.candidate.level,
        input_ids=[row.id for row in made.inputs],
        output_ids=[row.memory.id for row in made.rows],
        dropped_ids=list(made.candidate.reflected.dropped_ids),
        tokens_before=tokens_of(made.inputs),
        tokens_after=made.tokens,
        used=made.candidate.used,
        now=now,
    )
    await vectors.enqueue(connection, [row.memory.id for row in made.rows], now)


async def _present(connection: Connection, subject: ReflectionSubject) -> ReflectionSubject:
    """Return a subject with the present name of its project. Its rows are locked, so it gets no other one meanwhile."""
    if subject.project is None:
        return subject
    renamed = await renamed_projects(connection, [subject.project])
    return replace(subject, project=renamed.get(subject.project, subject.project))


async def _record_rejection(
    parts: Parts,
    connection: Connection,
    candidate: _ReflectionCandidate,
    inputs: Sequence[Memory],
    subject: ReflectionSubject,
    now: datetime,
) -> None:
    """Record that no candidate was good enough; nothing else changes."""
    await memories.lock_live(connection, [row.id for row in inputs])
    reason = redact(candidate.problem or "it was not better")
    # A problem may quote the answer of the model, and so a row that was forgotten meanwhile.
    said = SaidText(reason, max(row.said_at for row in inputs), subject.project)
    [is_forgotten] = await are_forgotten(parts, connection, [said])
    await reflections.insert(
        connection,
        reflection_id=new_id("ref", now),
        subject=await _present(connection, subject),
        reflector=candidate.reflector,
        level=candidate.level,
        reason=_FORGOTTEN if is_forgotten else reason,
        input_ids=[row.id for row in inputs],
        tokens_before=tokens_of(inputs),
        tokens_after=tokens_of(inputs),
        used=candidate.used,
        now=now,
    )


def batches(rows: Sequence[Memory], limit: int) -> list[list[Memory]]:
    """Split rows into batches of at most `limit` tokens, each as long as possible; a larger row is one of its own."""
    cut: list[list[Memory]] = []
    room = 0
    for row in rows:
        room -= row.tokens + _LINE_TOKENS
        if room < 0:
            cut.append([])
            room = limit - row.tokens - _LINE_TOKENS
        cut[-1].append(row)
    return cut


def tokens_of(rows: Sequence[Memory]) -> int:
    """Return the sum of the tokens of rows."""
    return sum(row.tokens for row in rows)
