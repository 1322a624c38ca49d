"""Status: whether the server has everything it needs, and how much work is waiting."""

import shutil
from dataclasses import dataclass

from esker.server.core.errors import EskerError
from esker.server.core.reports import Measure
from esker.server.db.migrate import newest
from esker.server.providers.model_observer import ModelObserver
from esker.server.providers.model_reflector import ModelReflector
from esker.server.store import inspection, jobs, vector_indexes
from esker.server.usecases.parts import Parts

_LEAST_FREE_BYTES = 64 * 1024 * 1024
"""Free space of an embedded Postgres below which any write may fail."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served; `reasons` say why not, one sentence each.

    `database`, `disk` (whether writes succeed) and `jobs` (whether the job runner moves; if not, a restart is needed)
    are `ok` or a reason. `language_model` is `none`, `ok`, or why it could not be reached the last time.
    """

    ready: bool
    reasons: list[str]
    database: str
    disk: str
    jobs: str
    observer: str
    reflector: str
    language_model: str
    embedder: str
    paraphraser: str
    reranker: str
    worker: str


async def readiness(parts: Parts) -> Readiness:
    """Return whether the server can serve, which it can while a model is still loading."""
    database, disk, jobs = await _database(parts), _disk(parts), _jobs(parts)
    reasons = [state for state in (database, disk, jobs) if state != "ok"]
    return Readiness(
        ready=not reasons,
        reasons=reasons,
        database=database,
        disk=disk,
        jobs=jobs,
        observer=parts.observer.name if parts.observer else "off",
        reflector=parts.reflector.name if parts.reflector else "off",
        language_model=_language_model(parts),
        embedder=parts.embedders.state if parts.embedders else "none",
        paraphraser=parts.paraphrases.name if parts.paraphrases else "off",
        reranker=parts.reranking.state if parts.reranking else "none",
        worker=str(parts.worker) if parts.worker else "none",
    )


async def _database(parts: Parts) -> str:
    try:
        found = await inspection.serving(parts.database)
    except EskerError as error:
        return f"{error} {error.hint or ''}".strip()
    if found.version < newest():
        return "The database lacks migrations: run `esker migrate`."
    if found.needs > newest():
        return (
            f"The database was migrated for a newer Esker, which knows migration {found.needs:04d}; start that one"
            " instead."
        )
    if found.read_only:
        await parts.database.reconnect()
        return "The database is read-only, as a standby is."
    return parts.database.refusals.missing_right or "ok"


def _disk(parts: Parts) -> str:
    if refusal := parts.database.refusals.full_disk:
        return refusal
    space = disk_space(parts)
    if space and space.free < _LEAST_FREE_BYTES:
        return f"The disk of the data directory has only {space.free / 2**20:.1f} MB left."
    return "ok"


def _jobs(parts: Parts) -> str:
    stopped = parts.pulse.stopped_for(parts.clock())
    return f"The job runner has not moved for {stopped.total_seconds():.0f} s." if stopped else "ok"


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The free and the whole space of a disk in bytes."""

    free: int
    size: int


def disk_space(parts: Parts) -> DiskSpace | None:
    """Return the space of the embedded Postgres's disk; None for a Postgres elsewhere."""
    if parts.settings.database_url:
        return None
    try:
        found = shutil.disk_usage(parts.settings.data_dir)
    except OSError:
        return None
    return DiskSpace(found.free, found.total)


def process_state(parts: Parts) -> dict[str, float]:
    """Return what the process knows of itself and its database without asking it, by the name of a metric."""
    connections, space, worker = parts.database.connections, disk_space(parts), parts.worker
    moved = parts.pulse.moved_at
    state = {
        "database_connections_open": connections["open"],
        "database_connections_idle": connections["idle"],
        "database_connections_most": connections["most"],
        "database_connection_waiting": connections["waiting"],
        "database_connection_wait_seconds_total": connections["waited_seconds"],
        "database_connection_failures_total": connections["failed"],
        "database_writable": float(parts.database.refusals.present is None),
        "job_slots": parts.settings.job_concurrency,
        "job_runner_idle_seconds": (parts.clock() - moved).total_seconds() if moved else 0.0,
        "language_model_up": float(_language_model(parts) in ("ok", "none")),
        "embedder_up": float(parts.embedders is None or parts.embedders.broken is None),
    }
    if worker:
        state |= {"embedding_worker_up": float(not worker.deaths), "embedding_worker_deaths": worker.deaths}
    if space:
        state |= {"disk_free_bytes": space.free, "disk_size_bytes": space.size}
    return state


def _language_model(parts: Parts) -> str:
    for breaker in parts.breakers.open():
        return f"{breaker.problem} It is not asked again for {breaker.seconds:.0f} s."
    models = [role for role in (parts.observer, parts.reflector) if isinstance(role, ModelObserver | ModelReflector)]
    return next((model.problem for model in models if model.problem), "ok" if models else "none")


async def backlog(parts: Parts) -> dict[str, float]:
    """Return the metrics of waiting work over all pools, by name. Raises Unavailable."""
    waiting = await jobs.backlog(parts.database, parts.clock())
    return waiting | {"lowest_index_agreement": await vector_indexes.lowest_agreement(parts.database)}


async def operations(parts: Parts) -> list[Measure]:
    """Return what an operator watches in all pools together.

    Raises Unavailable, and soon: a scraper waits ten seconds for its answer, and its key was looked for before.
    """
    await inspection.serving(parts.database)
    return await jobs.operations(parts.database, parts.clock())


async def pool_backlog(parts: Parts, pool_id: str) -> dict[str, float]:
    """Return the same metrics of one pool. Raises Unavailable."""
    async with parts.database.tenant(pool_id) as connection:
        return await jobs.pool_backlog(connection, parts.clock())
