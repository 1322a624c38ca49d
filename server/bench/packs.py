"""The time to build a pack, in pools of two sizes."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence

from esker.server.bench.bench_server import SQL, BenchServer
from esker.server.bench.figures import BenchFigure, Effort, timed
from esker.server.bench.filling import fill_pool
from esker.server.bench.progress import BenchProgress
from esker.server.core.ids import new_id
from esker.server.usecases.pack import get_pack

_SESSIONS: Mapping[str, str | None] = {"a large project": "project-1", "a tiny project": "tiny", "no project": None}


async def measure_packs(
    place: BenchServer, sizes: Sequence[int], effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    """Yield the cost of building a pack for a session of a large project, a tiny one and none, by pool size."""
    await place.rows("create_bare_table")
    for size in sizes:
        pool_id = await fill_pool(place, f"pack-{size}", size, progress)
        for sort, project in _SESSIONS.items():
            yield await _pack(place, pool_id, f"{size:,} rows in the pool, {sort}", project, effort.packs)


async def _pack(place: BenchServer, pool_id: str, at: str, project: str | None, times: int) -> BenchFigure:
    names = [new_id("ses", place.parts.clock()) for _ in range(times + 1)]
    for name in names:
        values = {"pool": pool_id, "id": name, "project": project, "now": place.parts.clock()}
        await place.rows("add_session", values)
    pack = await get_pack(place.parts, pool_id, names[0])

    async def least(number: int) -> None:
        """Read the rows of a pack by their keys and keep its text, in one transaction."""
        async with place.owner.transaction():
            await place.rows("bare_read", {"pool": pool_id, "ids": pack.memory_ids})
            kept = [{"id": new_id("ses", place.parts.clock()), "content": pack.text}]
            await place.owner.execute(SQL["bare_insert"], {"rows": json.dumps(kept)})

    built, floor = await timed(times, lambda number: get_pack(place.parts, pool_id, names[number]), least)
    more = {"p95": built.p95, "rows": len(pack.memory_ids), "tokens": pack.tokens, "floor p95": floor.p95}
    return BenchFigure("pack", at, "ms", built.p50, "raw SQL: read its rows by key, keep its text", floor.p50, more)
