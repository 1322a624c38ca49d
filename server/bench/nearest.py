"""The search by meaning alone, among many vectors: exactly, and by an index."""

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter

import numpy as np
from pgvector import HalfVector

from esker.server.bench.bench_server import SQL, BenchServer
from esker.server.bench.figures import BenchFigure, Effort, Timing, timed
from esker.server.bench.filling import fill_pool
from esker.server.bench.progress import BenchProgress
from esker.server.core.arrays import Vector
from esker.server.core.pool.index_agreement import NEAREST, agreement
from esker.server.core.recall.candidates import TextHit
from esker.server.core.records import Filter, Space
from esker.server.db.pipeline import fetch
from esker.server.db.statements import for_pool, for_space
from esker.server.store import search, vector_indexes, vectors
from esker.server.usecases.find_candidates import MOST
from esker.server.usecases.find_nearest import find_nearest

_SPACE = Space("bench_384", "made up", "", 384, "", "none")
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class _Searched:
    """Timings of the searches and of their floor, and the hits of each search, in order."""

    taken: Timing
    floor: Timing
    found: list[list[TextHit]]


async def measure_nearest(
    place: BenchServer, sizes: Sequence[int], effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    """Yield the time to find the nearest of `size` made-up vectors, without an index and with one."""
    await vectors.create_space(place.parts.database, _SPACE)
    for statement in ("create_directions", "seed", "draw_directions"):
        await place.rows(statement)
    for size in sizes:
        pool_id = await fill_pool(place, f"nearest-{size}", size, progress)
        await _fill_vectors(place, pool_id, size, progress)
        made = await place.rows("made_vectors", {"first": size, "last": size + effort.searches})
        asked: list[Vector] = [np.array(json.loads(vector), np.float32) for [vector] in made]
        with progress.step(f"Searching among {size:,} vectors", 3) as advance:
            exact = await _searched(place, pool_id, asked)
            yield _figure(f"{size:,} vectors, exactly", exact, {})
            advance(1)
            more = {"seconds to make the index": await _make_index(place, pool_id)}
            advance(1)
            near = await _searched(place, pool_id, asked)
            pairs = zip(exact.found, near.found, strict=True)
            more[f"agreement at {NEAREST}"] = fmean(agreement(_scores(one), _scores(other)) for one, other in pairs)
            yield _figure(f"{size:,} vectors, by an index", near, more)
            advance(1)


async def _fill_vectors(place: BenchServer, pool_id: str, size: int, progress: BenchProgress) -> None:
    async with place.parts.database.tenant(pool_id) as connection:
        await vectors.register_space(connection, _SPACE, place.parts.clock())
    filling = for_space(SQL["fill_vectors"], _SPACE.name)
    with progress.step(f"Making {size:,} vectors", size) as advance:
        for first in range(0, size, _BATCH):
            last = min(size, first + _BATCH) - 1
            values = {"pool": pool_id, "now": place.parts.clock(), "first": first, "last": last}
            await place.owner.execute(filling, values)
            advance(last - first + 1)
    await place.rows("analyze")


async def _make_index(place: BenchServer, pool_id: str) -> float:
    """Make an index as the worker makes one for a large tier; return the seconds that it took."""
    began = perf_counter()
    async with place.parts.database.tenant(pool_id) as connection:
        await vector_indexes.create(connection, _SPACE.name, "memory")
    return perf_counter() - began


async def _searched(place: BenchServer, pool_id: str, asked: Sequence[Vector]) -> _Searched:
    what, found = Filter(place.parts.clock()), dict[int, list[TextHit]]()
    bare = for_pool(SQL["bare_nearest"], _SPACE.name, pool_id)
    async with place.parts.database.tenant(pool_id) as connection:
        [space] = await vectors.spaces(connection)
        size = (await fetch(connection, search.sizes(what)))["memory"]

        async def nearest(number: int) -> None:
            found[number] = await find_nearest(connection, "memory", space, asked[number], what, size, MOST)

        async def least(number: int) -> None:
            values = {"vector": HalfVector(asked[number]), "limit": MOST}
            async with connection.pipeline():
                await connection.execute(search.SQL["only_as_indexed"])
                cursor = await connection.execute(bare, values)
                await connection.execute(search.SQL["in_any_way"])
                await cursor.fetchall()

        taken, floor = await timed(len(asked) - 1, nearest, least)
    return _Searched(taken, floor, [found[number] for number in range(len(asked))])


def _figure(at: str, searched: _Searched, more: dict[str, float]) -> BenchFigure:
    more = {"p95": searched.taken.p95, "floor p95": searched.floor.p95, **more}
    floor = "raw SQL: the nearest of the table"
    return BenchFigure("nearest", at, "ms", searched.taken.p50, floor, searched.floor.p50, more)


def _scores(found: Sequence[TextHit]) -> list[float]:
    return [hit.score for hit in found]
