"""Background work of a server: the job runner, which runs due jobs of all pools, a few at a time, and upkeep."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from esker.server.core.config.logs import LOG_IDS
from esker.server.core.errors import EskerError
from esker.server.core.records import JobKind, Lease
from esker.server.core.tracing import span
from esker.server.db.listening import listening
from esker.server.store.jobs import job_name
from esker.server.usecases.bring_forward import bring_jobs_forward
from esker.server.usecases.cut_passages import cut_all_behind
from esker.server.usecases.expire import mark_expired
from esker.server.usecases.observe import observe_leased
from esker.server.usecases.parts import Parts
from esker.server.usecases.pool_turns import PoolTurns
from esker.server.usecases.quarantine import extend_all_quarantines
from esker.server.usecases.reflect import reflect_leased
from esker.server.usecases.reflect_pool import reflect_pool_leased
from esker.server.usecases.rename_project import move_all_late_rows
from esker.server.usecases.retain import retain_all
from esker.server.usecases.run_job import Work, claim_job, pools_with_jobs, run_job
from esker.server.usecases.spending import resume_paused_jobs

log = logging.getLogger(__name__)

_T = TypeVar("_T")

# A notification can be lost, and a job becomes due without one when a session has been idle.
_LOOK_SECONDS = 2.0
_RESTART_SECONDS = 2.0
_UPKEEP_SECONDS = 60.0
_WATCH_SECONDS = 0.5
_RETENTION_PAUSE = timedelta(hours=1)
_WORK: dict[JobKind, Work] = {"observe": observe_leased, "reflect": reflect_leased, "reflect_pool": reflect_pool_leased}


@asynccontextmanager
async def beside(what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> AsyncGenerator[None]:
    """Run `work` during the block; it is restarted when it fails, and cancelled at the end."""
    task = asyncio.create_task(_restarted(what, work))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(stopping: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do some work until `stopping` is set, and cancel it then; raise its error if it has one before."""
    tasks = asyncio.create_task(work), asyncio.create_task(stopping.wait())
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not tasks[0].cancelled():
        tasks[0].result()


async def _restarted(what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    while True:
        try:
            await work()
            return
        except Exception:
            log.exception("%s failed; restarting it", what)
        await asyncio.sleep(_RESTART_SECONDS)


async def run_jobs(parts: Parts) -> None:
    """Run due jobs until cancelled; jobs in progress are then released."""
    kinds = _kinds(parts)
    if not kinds:
        return
    wake = asyncio.Event()
    free, turns = asyncio.Semaphore(parts.settings.job_concurrency), PoolTurns()
    resumed = False
    async with asyncio.TaskGroup() as running, listening(parts.database.direct_url, "esker_jobs", wake):
        while True:
            wake.clear()
            parts.pulse.beat(parts.clock())
            try:
                if not resumed:
                    await resume_paused_jobs(parts)
                    resumed = True
                while lease := await _next(parts, kinds, free, turns):
                    running.create_task(_run(parts, lease, free, turns))
            except EskerError as error:
                log.warning("jobs cannot be claimed now: %s", error)
            except Exception:
                log.exception("jobs cannot be claimed now")
            await _woken(wake)


async def watch_loop(parts: Parts) -> None:
    """Measure the lag of the event loop until cancelled."""
    clock = asyncio.get_running_loop().time
    while True:
        due = clock() + _WATCH_SECONDS
        await asyncio.sleep(_WATCH_SECONDS)
        parts.instruments.loop_lag.observe(max(0.0, clock() - due))


async def keep_up(parts: Parts) -> None:
    """Mark expired memories, extend quarantines and index late passages, every minute, until cancelled.

    Once an hour, delete what the pools do not keep any longer. At the start, and after the clock of the database was
    set back, schedule anew what would wait for the former time.
    """
    retained: datetime | None = None
    set_back: int | None = None
    while True:
        # A clock that was set back before this server started is not known.
        if set_back != parts.database.clock.times_set_back:
            set_back = parts.database.clock.times_set_back
            retained = None
            await _upkeep(bring_jobs_forward, parts)
        if retained is None or parts.clock() >= retained + _RETENTION_PAUSE:
            retained = parts.clock()
            await _upkeep(retain_all, parts)
        await _upkeep(mark_expired, parts)
        await _upkeep(extend_all_quarantines, parts)
        await _upkeep(move_all_late_rows, parts)
        if behind := await _upkeep(cut_all_behind, parts):
            log.info("made the missing passages of %d sessions", behind)
        await asyncio.sleep(_UPKEEP_SECONDS)


async def _upkeep(step: Callable[[Parts], Awaitable[_T]], parts: Parts) -> _T | None:
    """Run a step of the upkeep and return its result; a step that fails does not prevent the others."""
    try:
        return await step(parts)
    except EskerError as error:
        log.warning("the upkeep (%s) cannot run now: %s", step.__name__, error)
    except Exception:
        log.exception("the upkeep (%s) failed", step.__name__)
    return None


def _kinds(parts: Parts) -> list[JobKind]:
    kinds: list[JobKind] = []
    if parts.observer:
        kinds.append("observe")
    if parts.reflector:
        kinds.append("reflect")
        kinds.append("reflect_pool")
    return kinds


async def _next(parts: Parts, kinds: list[JobKind], free: asyncio.Semaphore, turns: PoolTurns) -> Lease | None:
    """Return the lease of a due job, which keeps one slot of `free`, or None when nothing is due."""
    parts.pulse.beat(parts.clock(), waits_for_slot=free.locked())
    await free.acquire()
    parts.pulse.beat(parts.clock())
    lease: Lease | None = None
    try:
        for pool_id in turns.order(await pools_with_jobs(parts, kinds)):
            if lease := await claim_job(parts, pool_id, kinds):
                turns.begin(pool_id)
                break
    finally:
        if lease is None:
            free.release()
    return lease


async def _run(parts: Parts, lease: Lease, free: asyncio.Semaphore, turns: PoolTurns) -> None:
    LOG_IDS.set({"job": f"{lease.kind}:{lease.subject}"})
    try:
        about = {"esker.job.kind": lease.kind, "esker.job.subject": lease.subject, "esker.job.attempts": lease.attempts}
        with parts.instruments.job(lease.kind), span(f"job {lease.kind}", "INTERNAL", about):
            await run_job(parts, lease, _WORK[lease.kind])
    except EskerError:
        pass  # recorded with the job, and logged there
    except Exception:
        log.exception("%s failed unexpectedly", job_name(lease.kind, lease.subject))
    finally:
        turns.end(lease.pool_id)
        free.release()


async def _woken(wake: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            await wake.wait()
    except TimeoutError:
        pass
