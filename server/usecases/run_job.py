"""Running one job: under a lease that is kept alive, with failures counted and backed off."""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from server.core.errors import EskerError, LeaseLost, ModelFailed
from server.core.records import JobKind, Lease
from server.db.database import Connection
from server.store import jobs
from server.usecases.parts import Parts

log = logging.getLogger(__name__)

Work = Callable[[Parts, Lease], Awaitable[None]]
Done = Callable[[Connection], Awaitable[bool]]

_POLL_SECONDS = 0.1
_FIRST_BACKOFF = timedelta(seconds=15)
_LONGEST_BACKOFF = timedelta(hours=1)


async def pools_with_jobs(parts: Parts) -> list[str]:
    """Return the pools that have a job that can run now."""
    return await jobs.pools_with_work(parts.database, parts.clock())


async def claim_job(
    parts: Parts, pool_id: str, kinds: Sequence[JobKind], session_id: str | None = None
) -> Lease | None:
    """Take a job of a pool that is due, or None."""
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        return await jobs.claim(connection, kinds, now, _lease_end(parts, now), session_id)


async def run_job(parts: Parts, lease: Lease, work: Work) -> None:
    """Do the work of a job and keep its lease alive meanwhile.

    The work ends the job itself, in the transaction that completes it. A failure is recorded and raised; a job whose
    worker stops is given back at once; one whose lease was lost is somebody else's.
    """
    try:
        async with _heartbeat(parts, lease):
            await work(parts, lease)
    except LeaseLost:
        log.info("%s of %s went to another worker", lease.kind, lease.session_id)
    except asyncio.CancelledError:
        async with parts.database.tenant(lease.pool_id) as connection:
            await jobs.release(connection, lease)
        raise
    except EskerError as error:
        await _record_failure(parts, lease, str(error))
        raise
    except Exception as error:
        await _record_failure(parts, lease, f"unexpected {type(error).__name__}")
        raise


async def finish_job(
    parts: Parts,
    pool_id: str,
    session_id: str,
    kind: JobKind,
    work: Work,
    done: Done,
) -> None:
    """Run a session's job here, or wait for whoever runs it, until `done` says so.

    Raises ModelFailed with the job's error when it has failed, NotFound.
    """
    while True:
        if lease := await claim_job(parts, pool_id, [kind], session_id):
            with suppress(EskerError):  # it is recorded with the job, and told from there whoever ran it
                await run_job(parts, lease, work)
        async with parts.database.tenant(pool_id) as connection:
            if await done(connection):
                return
            found = await jobs.of_session(connection, session_id)
        job = next((job for job in found if job.kind == kind), None)
        if job and job.last_error and (job.state == "dead" or job.run_after > parts.clock()):
            raise ModelFailed(job.last_error)
        await asyncio.sleep(_POLL_SECONDS)


def _lease_end(parts: Parts, now: datetime) -> datetime:
    return now + timedelta(seconds=parts.settings.job_lease_seconds)


@asynccontextmanager
async def _heartbeat(parts: Parts, lease: Lease) -> AsyncGenerator[None]:
    """Lengthen a lease while the block runs; a lease that is lost shows when the block wants to commit."""
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
        except EskerError as error:
            log.warning("the lease of %s %s was not renewed: %s", lease.kind, lease.session_id, error)


async def _record_failure(parts: Parts, lease: Lease, error: str) -> None:
    dead = lease.attempts >= parts.settings.job_attempts
    log.warning("%s of %s failed%s: %s", lease.kind, lease.session_id, " for good" if dead else "", error)
    async with parts.database.tenant(lease.pool_id) as connection:
        again = parts.clock() + backoff(lease.attempts)
        await jobs.fail(connection, lease, error, again, dead=dead)


def backoff(attempts: int) -> timedelta:
    """Return how long to wait after so many failures: doubling from 15 s to an hour, less up to half at random."""
    longest = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(attempts - 1, 16))
    return longest * (0.5 + secrets.randbelow(1000) / 2000)
