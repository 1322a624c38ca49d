"""Reflect the pool: condense rows that are days old across sessions, project by project."""

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from esker.server.core.budgets import MIN_REFLECTION_TOKENS, REFLECTION_TOKENS
from esker.server.core.errors import InvalidInput, RowsChanged
from esker.server.core.facts.records import ReflectionTask
from esker.server.core.records import Lease, Memory
from esker.server.db.database import Connection
from esker.server.store import jobs, memories, reflections, vectors
from esker.server.store.jobs import POOL
from esker.server.store.reflections import ReflectionSubject
from esker.server.usecases.condense import batches, condense, tokens_of
from esker.server.usecases.find_projects import renamed_project
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect import ReflectReport, reflector_of, report_of
from esker.server.usecases.run_job import wait_for_job

log = logging.getLogger(__name__)

MIN_TARGET_TOKENS = 100
# Minimum age of notes, which an agent chose to write down, even if a lower age is asked for.
_NOTES_AGE = timedelta(days=3)
# Most rows that one run reads, in a pool that was never reflected.
_MOST_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class PoolReflection:
    """Options of a pool reflection. None: every project and none, the age in the settings, half of a batch."""

    project: str | None = None
    min_age_days: float | None = None
    target_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows that are condensed together: of one project (or none), oldest first."""

    project: str | None
    rows: int
    tokens: int
    first_said_at: datetime
    last_said_at: datetime


async def plan_pool_reflection(parts: Parts, pool_id: str, asked: PoolReflection) -> list[RowBatch]:
    """Return the batches that a reflection of the pool would condense. Nothing changes, and no model is called.

    Raises InvalidInput.
    """
    asked = await _present(parts, pool_id, _checked(asked))
    limit = await _batch_tokens(parts)
    async with parts.database.tenant(pool_id) as connection:
        found = await _batches(parts, connection, asked, limit)
    return [RowBatch(b[0].project, len(b), tokens_of(b), b[0].said_at, b[-1].said_at) for b in found]


async def reflect_pool(parts: Parts, pool_id: str, asked: PoolReflection, *, wait: bool) -> ReflectReport:
    """Reflect the pool, in the background or, with `wait`, before returning.

    If no rows are old enough, no model is called and nothing changes. A run that outlasts the request continues in
    the background; call again to keep waiting. Raises InvalidInput, Conflict when reflecting is switched off, and
    with `wait` the error of the job.
    """
    reflector = reflector_of(parts)
    asked = await _present(parts, pool_id, _checked(asked))
    subject = jobs.requested_subject(asdict(asked))
    limit = await _batch_tokens(parts)
    if wait:
        parts.breakers.try_again()
    async with parts.database.tenant(pool_id) as connection:
        due = await _batches(parts, connection, asked, limit)
        newest = next((found.id for found in await reflections.listed(connection, scope="pool", limit=1)), "")
        if due and not (wait and await jobs.runs(connection, "reflect_pool", subject)):
            await jobs.request(connection, "reflect_pool", subject, parts.clock(), options=asdict(asked))

    async def done(connection: Connection) -> bool:
        return not await jobs.about(connection, subject)

    finished = not due or (wait and await wait_for_job(parts, pool_id, subject, "reflect_pool", done))
    async with parts.database.tenant(pool_id) as connection:
        latest = await reflections.listed(connection, scope="pool", after=newest, limit=_MOST_ROWS)
        concerned = {row.id for batch in due for row in batch}
        made = [found for found in latest if not concerned.isdisjoint(found.input_ids)]
        untouched = sum(map(tokens_of, due))
        return await report_of(connection, made, reflector.name, untouched, queued=not finished)


def _checked(asked: PoolReflection) -> PoolReflection:
    if asked.min_age_days is not None and not 0 <= asked.min_age_days <= 36_500:
        raise InvalidInput("min_age_days must be between 0 and 36,500.")
    if asked.target_tokens is not None and not MIN_TARGET_TOKENS <= asked.target_tokens <= REFLECTION_TOKENS:
        raise InvalidInput(f"target_tokens must be between {MIN_TARGET_TOKENS} and {REFLECTION_TOKENS:,}.")
    return PoolReflection(stored_name(asked.project), asked.min_age_days, asked.target_tokens)


async def _present(parts: Parts, pool_id: str, asked: PoolReflection) -> PoolReflection:
    """Return a request with the present name of a project that was renamed."""
    present = await renamed_project(parts, pool_id, asked.project)
    return replace(asked, project=present) if present else asked


async def _batch_tokens(parts: Parts) -> int:
    return await parts.reflector.batch_tokens() if parts.reflector else REFLECTION_TOKENS


async def _batches(parts: Parts, connection: Connection, asked: PoolReflection, limit: int) -> list[list[Memory]]:
    """Return the batches to condense. A batch for which no candidate was good enough before is left out."""
    now = parts.clock()
    days = parts.settings.pool_reflect_min_age_days if asked.min_age_days is None else asked.min_age_days
    age = timedelta(days=days)
    notes_until = now - max(age, _NOTES_AGE)
    rows = await memories.to_reflect(
        connection, asked.project, until=now - age, notes_until=notes_until, now=now, limit=_MOST_ROWS
    )
    found = [batch for _, same in groupby(rows, lambda row: row.project) for batch in batches(list(same), limit)]
    # A single row is condensed only if it is larger than a batch.
    found = [batch for batch in found if len(batch) > 1 or tokens_of(batch) > limit]
    return [b for b in found if not await reflections.was_rejected(connection, [row.id for row in b])]


async def reflect_pool_leased(parts: Parts, lease: Lease) -> None:
    """Condense every batch that is due, each in a transaction of its own, and finish the job.

    The periodic job leaves a small batch until more of its rows are old enough.
    """
    asked = _requested_options(lease)
    least = MIN_REFLECTION_TOKENS if lease.subject == POOL else 0
    limit = await _batch_tokens(parts)
    async with parts.database.tenant(lease.pool_id) as connection:
        due = await _batches(parts, connection, asked, limit)
    planned = [[row.id for row in batch] for batch in due if tokens_of(batch) >= least]
    for ids in planned:
        await _reflect_batch(parts, lease, asked, ids)
    await _end(parts, lease)


def _requested_options(lease: Lease) -> PoolReflection:
    given = lease.options
    project, days, target = given.get("project"), given.get("min_age_days"), given.get("target_tokens")
    return PoolReflection(
        stored_name(project) if isinstance(project, str) else None,
        float(days) if isinstance(days, (int, float)) else None,
        int(target) if isinstance(target, (int, float)) else None,
    )


async def _reflect_batch(parts: Parts, lease: Lease, asked: PoolReflection, ids: Sequence[str]) -> None:
    """Condense one batch; if a row was changed or forgotten meanwhile, leave the batch to another run."""
    async with parts.database.tenant(lease.pool_id) as connection:
        rows = await memories.get(connection, ids)
        known = await vectors.of_rows(connection, ids)
    batch = [rows[i] for i in ids if i in rows and rows[i].superseded_at is None]
    if len(batch) < len(ids):
        return
    target = asked.target_tokens or REFLECTION_TOKENS // 2
    task = ReflectionTask(tuple(batch), target, "UTC", "pool", known)
    try:
        await condense(parts, lease, reflector_of(parts), task, ReflectionSubject(None, batch[0].project))
    except RowsChanged:
        log.info("a batch of %s rows changed while it was being condensed; it is left to another run", len(batch))


async def _end(parts: Parts, lease: Lease) -> None:
    """Finish the job; the periodic one is scheduled again as long as some row will be old enough one day."""
    now = parts.clock()
    daily = lease.subject == POOL and parts.settings.pool_reflect_hours > 0
    async with parts.database.tenant(lease.pool_id) as connection:
        if daily and await memories.grows_old(connection):
            await jobs.rest(connection, lease, _next_run(parts, now), if_asked=now)
        else:
            await jobs.done(connection, lease, now)


async def schedule_daily(parts: Parts, connection: Connection, now: datetime) -> None:
    """Schedule the next periodic reflection of the pool, in the transaction that adds to the pool."""
    if parts.reflector and parts.settings.pool_reflect_hours:
        await jobs.schedule_first(connection, "reflect_pool", POOL, _next_run(parts, now), now)


def _next_run(parts: Parts, now: datetime) -> datetime:
    return now + timedelta(hours=parts.settings.pool_reflect_hours)
