"""Run one job under a lease that is renewed; failures are counted and retried with backoff."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

from esker.server.core.clock import tomorrow
from esker.server.core.errors import EskerError, LeaseLost, ModelDown, SpendCapReached, named
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
    worker stops is released at once; a job whose lease was lost belongs to another worker.
    """
    try:
        async with _heartbeat(parts, lease):
            await work(parts, lease)
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


@asynccontextmanager
async def _heartbeat(parts: Parts, lease: Lease) -> AsyncGenerator[None]:
    """Renew a lease while the block runs; a lost lease is detected when the block commits."""
    beat = asyncio.create_task(_beat(parts, lease))
    try:
        yield
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)


async def _beat(parts: Parts, lease: Lease) -> None:
    while True:
        await asyncio.sleep(parts.settings.job_lease_seconds / 3)
        try:
            async with parts.database.tenant(lease.pool_id) as connection:
                await jobs.hold(connection, lease, _lease_end(parts, parts.clock()))
        except LeaseLost:
            return
        except Exception as error:  # noqa: BLE001 - the next renewal may succeed, and without any the lease is lost
            log.warning("the lease of %s was not renewed: %s", job_name(lease.kind, lease.subject), error)


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
    """Return the wait for a model that is not asked for so many seconds; without them, it is a minute.

    It is a little longer, so that not all jobs ask at once.
    """
    if seconds is None:
        return _OUTAGE_PAUSE
    return timedelta(seconds=seconds) + _SPREAD * (secrets.randbelow(1000) / 1000)


def backoff(attempts: int) -> timedelta:
    """Return the wait after this many failures: 15 s, doubling to an hour, less a random part of up to half."""
    longest = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(attempts - 1, 16))
    return longest * (0.5 + secrets.randbelow(1000) / 2000)
