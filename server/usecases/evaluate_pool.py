"""Evaluate a pool: how well its memory can be found and its faults, at one moment and without writing."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from esker.server.core.facts.duplicate_pairs import repeated
from esker.server.core.pool.evaluation import FreshPack, IndexProbe, Missing, PoolEvaluation, Repeated, StoreCounts
from esker.server.core.records import Filter, Memory, Pool
from esker.server.db.database import Connection, Snapshot
from esker.server.store import evaluation, memories, vectors
from esker.server.store.vector_indexes import TierOfSpace
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.build_vector_indexes import compare_index
from esker.server.usecases.evaluate_packs import check_pack
from esker.server.usecases.evaluate_recall import EvaluatedPool, ask, make_questions
from esker.server.usecases.find_repeats import find_repeats
from esker.server.usecases.parts import Parts
from esker.server.usecases.query_embedding import active_space

# The newest rows, up to this number, are compared with each other.
_MOST_COMPARED = 20_000
_PAGE = 1_000

StepCounter = Callable[[str, int], Callable[[], None]]
"""Called with the name of a stage and its number of steps; returns a function to call after each step."""


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """The number of questions and their seed, the days without use after which a row of low priority is stale, and the
    number of projects whose packs are checked, largest first."""

    queries: int = 100
    seed: int = 0
    stale_days: int = 90
    projects: int = 3


async def evaluate_pool(parts: Parts, pool: Pool, request: EvaluationRequest, steps: StepCounter) -> PoolEvaluation:
    """Return all findings about a pool. Questions go through recall as its users', but without a language model.

    All of it sees one moment, in one read-only transaction.
    """
    now = parts.clock()
    await _load(parts, pool)
    async with parts.database.snapshot(pool.id) as snapshot:
        return await _evaluate(parts, snapshot, pool, request, now, steps)


async def _load(parts: Parts, pool: Pool) -> None:
    """Wait for the embedder's model before a transaction is open that would wait as well."""
    async with parts.database.tenant(pool.id) as connection:
        space, _ = await active_space(connection, parts)
    if space and parts.embedders:
        await parts.embedders.tried(space.source)


async def _evaluate(
    parts: Parts, snapshot: Snapshot, pool: Pool, request: EvaluationRequest, now: datetime, steps: StepCounter
) -> PoolEvaluation:
    within = replace(parts, database=snapshot, clock=lambda: now, paraphrases=None, reranking=None)
    what = Filter(now)
    async with snapshot.tenant(pool.id) as connection:
        space, _ = await active_space(connection, within)
        name = space.name if space else None
        done = steps("Comparing rows", 1)
        rows = await _newest(connection, what)
        found = await find_repeats(connection, name, rows)
        done()
        done = steps("Counting", 1)
        repeats = Repeated(len(rows), repeated(found.said_by), found.crowded)
        store = await _store(connection, space, request, now, repeats)
        done()
        questions = await make_questions(connection, found.said_by, what, limit=request.queries, seed=request.seed)
        done = steps("Asking questions", len(questions.known) + len(questions.made_up))
        answered, made_up = await ask(EvaluatedPool(within, pool.id, connection, what, space), questions, done)
        projects = await evaluation.largest_projects(connection, now, request.projects)
        done = steps("Checking packs", len(projects))
        packs: list[FreshPack] = []
        for project in projects:
            packs.append(await check_pack(connection, project, name, now))
            done()
    return PoolEvaluation(pool.name, now, request.seed, request.stale_days, answered, made_up, store, packs)


async def _newest(connection: Connection, what: Filter) -> list[Memory]:
    """Return the newest live rows, page by page."""
    found: list[Memory] = []
    while len(found) < _MOST_COMPARED:
        page = await memories.listed(connection, what, found[-1].id if found else None, _PAGE)
        found += page
        if len(page) < _PAGE:
            break
    return found


async def _store(
    connection: Connection, space: PoolSpace | None, request: EvaluationRequest, now: datetime, repeats: Repeated
) -> StoreCounts:
    missing = await vectors.coverage(connection, space.name) if space else None
    tiers = [TierOfSpace(space.pool_id, space.name, tier, True) for tier in sorted(space.indexed)] if space else []
    indexes = [IndexProbe(tier.tier, *await compare_index(connection, tier, str(request.seed), now)) for tier in tiers]
    return StoreCounts(
        messages=await evaluation.messages(connection),
        rows=await evaluation.rows(connection, now, now - timedelta(days=request.stale_days)),
        by_age=await evaluation.rows_by_age(connection, now),
        orphaned_rows=await evaluation.orphaned_rows(connection, now),
        vectors=await evaluation.vector_tables(connection),
        missing=Missing(missing.texts, missing.missing, missing.waiting, missing.failed) if missing else None,
        indexes=indexes,
        repeated=repeats,
    )
