"""Status: whether the server has everything it needs, and how much work is waiting."""

from dataclasses import dataclass

from esker.server.core.errors import EskerError
from esker.server.db.migrate import newest
from esker.server.providers.model_observer import ModelObserver
from esker.server.providers.model_reflector import ModelReflector
from esker.server.store import inspection, jobs, vector_indexes
from esker.server.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether requests can be served; `database` is `ok` or the reason why not.

    `jobs` is `ok`, or how long the job runner has not moved; then the server is not ready, since a restart is needed.
    `language_model` is `none`, `ok`, or why it could not be reached the last time.
    """

    ready: bool
    database: str
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
    try:
        there = await inspection.schema_version(parts.database)
        database = "ok" if there >= newest() else "The database lacks migrations: run `esker migrate`."
    except EskerError as error:
        database = str(error)
    stopped = parts.pulse.stopped_for(parts.clock())
    return Readiness(
        ready=database == "ok" and stopped is None,
        database=database,
        jobs=f"have not moved for {stopped.total_seconds():.0f} s" if stopped else "ok",
        observer=parts.observer.name if parts.observer else "off",
        reflector=parts.reflector.name if parts.reflector else "off",
        language_model=_language_model(parts),
        embedder=parts.embedders.state if parts.embedders else "none",
        paraphraser=parts.paraphrases.name if parts.paraphrases else "off",
        reranker=parts.reranking.state if parts.reranking else "none",
        worker=str(parts.worker) if parts.worker else "none",
    )


def _language_model(parts: Parts) -> str:
    for breaker in parts.breakers.open():
        return f"{breaker.problem} It is not asked again for {breaker.seconds:.0f} s."
    models = [role for role in (parts.observer, parts.reflector) if isinstance(role, ModelObserver | ModelReflector)]
    return next((model.problem for model in models if model.problem), "ok" if models else "none")


async def backlog(parts: Parts) -> dict[str, float]:
    """Return the metrics of waiting work over all pools, by name. Raises Unavailable."""
    waiting = await jobs.backlog(parts.database, parts.clock())
    return waiting | {"lowest_index_agreement": await vector_indexes.lowest_agreement(parts.database)}


async def pool_backlog(parts: Parts, pool_id: str) -> dict[str, float]:
    """Return the same metrics of one pool. Raises Unavailable."""
    async with parts.database.tenant(pool_id) as connection:
        return await jobs.pool_backlog(connection, parts.clock())
