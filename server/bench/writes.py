"""How many rows per second the server writes, keyword index included."""

import json
from collections.abc import AsyncGenerator
from time import perf_counter

from esker.server.bench.bench_server import BenchServer, ask
from esker.server.bench.figures import BenchFigure
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer
from esker.server.core.ids import new_id

_BATCH = 500


async def measure_writes(place: BenchServer, rows: int, progress: BenchProgress) -> AsyncGenerator[BenchFigure]:
    """Yield how fast one client writes notes over HTTP, 500 a request; they stay in the server's pool."""
    await place.rows("create_bare_table")
    writer, seconds, floor_seconds = Writer(rows), 0.0, 0.0
    with progress.step(f"Writing {rows:,} rows over HTTP", rows) as advance:
        for first in range(0, rows, _BATCH):
            notes = [{"content": writer.sentence()} for _ in range(min(_BATCH, rows - first))]
            began = perf_counter()
            await ask(place.client, "/v1/memories/batch", {"memories": notes})
            seconds += perf_counter() - began
            bare = [{"id": new_id("mem", place.parts.clock()), **note} for note in notes]
            began = perf_counter()
            await place.rows("bare_insert", {"rows": json.dumps(bare)})
            floor_seconds += perf_counter() - began
            advance(len(notes))
    await place.rows("analyze")
    at = f"{_BATCH} a request, until there are {rows:,}"
    floor = "raw SQL: the texts alone into a table with a key"
    yield BenchFigure("writes", at, "rows/s", rows / seconds, floor, rows / floor_seconds)
