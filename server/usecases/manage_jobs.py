"""Jobs for the operator: list and show them, run one again, drop one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.core.json_input import Json
from esker.server.core.records import JobKind, JobState, ListedJob
from esker.server.db.database import Connection
from esker.server.store import audit, jobs, pools
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.parts import Parts

KINDS: tuple[JobKind, ...] = get_args(JobKind)
STATES: tuple[JobState, ...] = get_args(JobState)


@dataclass(frozen=True, slots=True)
class PoolJob:
    """A job, with its pool and the id that commands take: its kind and, behind a colon, its subject."""

    pool: str
    id: str
    job: ListedJob


async def list_jobs(parts: Parts, pool: str | None, states: Sequence[JobState]) -> list[PoolJob]:
    """Return the jobs of a pool, or of all pools, that have one of the states, dead ones first. Raises NotFound."""
    found = [await require_pool(parts, pool)] if pool else await pools.listed(parts.database)
    listed: list[PoolJob] = []
    for one in found:
        async with parts.database.tenant(one.id) as connection:
            listed += [PoolJob(one.name, _id(job), job) for job in await jobs.listed(connection, states)]
    return sorted(listed, key=lambda found: found.job.state != "dead")


async def show_job(parts: Parts, pool: str, job_id: str) -> PoolJob:
    """Return a job. Raises InvalidInput for an id of another form, NotFound."""
    kind, subject = _parsed(job_id)
    found = await require_pool(parts, pool)
    async with parts.database.tenant(found.id) as connection:
        return PoolJob(found.name, job_id, await _found(connection, kind, subject, pool))


async def retry_job(parts: Parts, pool: str, job_id: str) -> PoolJob:
    """Have a job run now, as if it had never failed. Raises InvalidInput, NotFound, and Conflict while it runs."""
    kind, subject = _parsed(job_id)
    found, now = await require_pool(parts, pool), parts.clock()
    async with parts.database.tenant(found.id) as connection:
        before = await _found(connection, kind, subject, pool)
        if not await jobs.retry(connection, kind, subject, now):
            raise Conflict(f"{job_id} runs at present.", hint="`esker jobs show` shows since when.")
        await _record(parts, connection, "job.retry", job_id, before)
        return PoolJob(found.name, job_id, await _found(connection, kind, subject, pool))


async def drop_job(parts: Parts, pool: str, job_id: str) -> PoolJob:
    """Delete a job; one that runs is taken from its worker, whose result is discarded. Raises InvalidInput, NotFound.

    Nothing else is deleted: messages stay unobserved, until a new one or a request makes another job.
    """
    kind, subject = _parsed(job_id)
    found = await require_pool(parts, pool)
    async with parts.database.tenant(found.id) as connection:
        dropped = await _found(connection, kind, subject, pool)
        await jobs.drop(connection, kind, subject)
        await _record(parts, connection, "job.drop", job_id, dropped)
    return PoolJob(found.name, job_id, dropped)


def _id(job: ListedJob) -> str:
    return f"{job.kind}:{job.subject}" if job.subject else job.kind


def _parsed(job_id: str) -> tuple[JobKind, str]:
    kind, _, subject = job_id.partition(":")
    for known in KINDS:
        if kind == known:
            return known, subject
    raise InvalidInput(f"{job_id!r} is not the id of a job.", hint="It is KIND:SUBJECT, as `esker jobs list` shows it.")


async def _found(connection: Connection, kind: JobKind, subject: str, pool: str) -> ListedJob:
    for job in await jobs.listed(connection, STATES):
        if (job.kind, job.subject) == (kind, subject):
            return job
    raise NotFound(f"Pool {pool} has no such job.", hint="`esker jobs list` shows the jobs; one that succeeds is gone.")


async def _record(parts: Parts, connection: Connection, action: str, job_id: str, before: ListedJob) -> None:
    detail: dict[str, Json] = {"state": before.state, "attempts": before.attempts}
    await audit.insert(connection, "operator", action, job_id, detail, parts.clock())
