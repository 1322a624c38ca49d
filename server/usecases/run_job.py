"""Run one job under a lease that is renewed; failures are counted and retried with backoff."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from esker.server.core.clock import tomorrow
from esker.server.core.errors import EskerError, JobStuck, LeaseLost, ModelDown, SpendCapReached, named
from esker.server.core.records import Job, JobKind, Lease
from esker.server.core.redaction import error_text
from esker.server.db.database import Connection
from esker.server.store import jobs
from esker.server.store.jobs import job_name
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

Work = Callable[[Parts, Lease], Awaitable[None]]
FinishJob = Callable[[Connection], Awaitable[bool]]

LONGEST_WAIT_SECONDS = 300.0
"""Maximum time that a request waits for a job."""
_FIRST_PAUSE_SECONDS = 0.02
_LONGEST_PAUSE_SECONDS = 0.5
_FIRST_BACKOFF = timedelta(seconds=15)
_LONGEST_BACKOFF = timedelta(hours=1)
_OUTAGE_PAUSE = timedelta(seconds=60)
_SPREAD = timedelta(seconds=5)


async def pools_with_jobs(parts: Parts, kinds: Sequence[JobKind]) -> list[str]:
    """Return the pools with a job that is due, the longest-waiting first."""
    return await jobs.pools_with_work(parts.database, kinds, parts.clock())


async def claim_job(parts: Parts, pool_id: str, kinds: Sequence[JobKind]) -> Lease | None:
    """Claim a job of a pool that is due, or return None."""
    now = parts.clock()
    async with parts.database.tenant_pipeline(pool_id) as connection:
        await jobs.bury(connection, parts.settings.job_attempts, now)
        return await jobs.claim(connection, kinds, parts.holder.token(), now, _lease_end(parts, now))


async def run_job(parts: Parts, lease: Lease, work: Work) -> None:
    """Do the work of a job and renew its lease meanwhile.

    The work ends the job itself, in the transaction that completes it. A failure is recorded and raised; a job whose
    worker stops is released at once; a job whose lease was lost belongs to another worker. Work that completes no part
    of it for long, or does not end, is stopped and counts as failed.
    """
    try:
        await _limited(parts, lease, work)
    except LeaseLost:
        log.info("%s went to another worker", job_name(lease.kind, lease.subject))
    except asyncio.CancelledError:
        async with parts.database.tenant(lease.pool_id) as connection:
            await jobs.release(connection, lease)
        raise
    except EskerError as error:
        await _record_failure(parts, lease, error)
        raise
    except Exception as error:
        await _record_failure(parts, lease, EskerError(f"unexpected {type(error).__name__}"))
        raise


async def wait_for_job(parts: Parts, pool_id: str, subject: str, kind: JobKind, done: FinishJob) -> bool:
    """Wait until `done` reports that the job about a subject has finished, in this process or another.

    Returns False when that takes longer than a request may wait. Raises the error of a failed job.
    """
    clock = asyncio.get_running_loop().time
    deadline, pause = clock() + LONGEST_WAIT_SECONDS, _FIRST_PAUSE_SECONDS
    while clock() < deadline:
        async with parts.database.tenant(pool_id) as connection:
            if await done(connection):
                return True
            found = await jobs.about(connection, subject)
        job = next((job for job in found if job.kind == kind), None)
        if job and job.last_error and (job.state == "dead" or job.run_after > parts.clock()):
            raise _as_it_was(job)
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE_SECONDS)
    return False


def _as_it_was(job: Job) -> EskerError:
    """Return the recorded error of a job as an exception."""
    return named(job.error_kind)(job.last_error)


def _lease_end(parts: Parts, now: datetime) -> datetime:
    return now + timedelta(seconds=parts.settings.job_lease_seconds)


async def _limited(parts: Parts, lease: Lease, work: Work) -> None:
    """Do the work within its limits. Raises JobStuck when it exceeds one, and LeaseLost when another worker has it."""
    settings = parts.settings
    limit = asyncio.timeout(settings.job_max_seconds)
    beat = asyncio.create_task(_beat(parts, lease, limit))
    try:
        async with limit:
            await work(parts, lease)
    except TimeoutError as error:
        if not limit.expired():
            raise
        if not beat.done():
            raise JobStuck(f"It did not end within {settings.job_max_seconds:,.0f} s.") from error
        beat.result()  # raises LeaseLost
        raise JobStuck(f"It completed no part of its work within {settings.job_stall_seconds:,.0f} s.") from error
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)


async def _beat(parts: Parts, lease: Lease, limit: asyncio.Timeout) -> None:
    """Renew a lease as long as the job makes progress; then end the work. Raises LeaseLost."""
    stall = timedelta(seconds=parts.settings.job_stall_seconds)
    while True:
        await asyncio.sleep(parts.settings.job_lease_seconds / 3)
        now = parts.clock()
        try:
            async with parts.database.tenant(lease.pool_id) as connection:
                moves = await jobs.renew(connection, lease, now - stall, _lease_end(parts, now))
            if not moves:
                _end_now(limit)
                return
        except LeaseLost:
            _end_now(limit)
            raise
        except Exception as error:  # noqa: BLE001 - the next renewal may succeed, and without any the lease is lost
            log.warning("the lease of %s was not renewed: %s", job_name(lease.kind, lease.subject), error)


def _end_now(limit: asyncio.Timeout) -> None:
    with suppress(RuntimeError):  # the work has ended
        limit.reschedule(asyncio.get_running_loop().time())


async def _record_failure(parts: Parts, lease: Lease, error: EskerError) -> None:
    name = job_name(lease.kind, lease.subject)
    async with parts.database.tenant(lease.pool_id) as connection:
        if isinstance(error, SpendCapReached):
            log.warning("%s waits: %s", name, error)
            await jobs.put_off(connection, lease, error, tomorrow(parts.clock()))
            return
        if isinstance(error, ModelDown):
            log.warning("%s waits for its model: %s", name, error_text(error))
            await jobs.put_off(connection, lease, error, parts.clock() + outage_pause(error.seconds))
            return
        attempts = await jobs.attempts(connection, lease)
        dead = attempts >= parts.settings.job_attempts
        how = "failed for good" if dead else "failed"
        log.warning("%s %s: %s", name, how, error_text(error))
        await jobs.fail(connection, lease, error, parts.clock() + backoff(max(1, attempts)), dead=dead)


def outage_pause(seconds: float | None) -> timedelta:
    """Return the wait for a model that is not asked for `seconds`; a minute if they are unknown.

    It is a little longer, so that not all jobs ask at once.
    """
    if seconds is None:
        return _OUTAGE_PAUSE
    return timedelta(seconds=seconds) + _SPREAD * (secrets.randbelow(1000) / 1000)


def backoff(attempts: int) -> timedelta:
    """Return the wait after this many failures: 15 s, doubling to an hour, less a random part of up to half."""
    longest = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(attempts - 1, 16))
    return longest * (0.5 + secrets.randbelow(1000) / 2000)
