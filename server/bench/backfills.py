"""A backfill: how fast existing notes get their vectors."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

from esker.server.bench.bench_server import MODEL, BenchServer, ask
from esker.server.bench.figures import BenchFigure, Effort
from esker.server.bench.plain_model import PlainModel
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer
from esker.server.bench.waiting import until_embedded, until_ready
from esker.server.providers.thread_priority import lower_priority


async def measure_backfill(place: BenchServer, effort: Effort, progress: BenchProgress) -> AsyncGenerator[BenchFigure]:
    """Yield how many notes a second get their vectors from the server's worker; they stay in its pool.

    One request writes all notes of a round, and the timing starts at its response.
    """
    await until_ready(place)
    plain = PlainModel(MODEL, place.parts.settings.embed_threads)
    plain.encode(["The first text takes longer than others."])
    writer, seconds, floors = Writer(effort.texts), 0.0, dict.fromkeys(plain.batches, 0.0)
    total = effort.rounds * effort.texts
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, initializer=lower_priority) as aside, progress.step("A backfill", total) as advance:
        for _ in range(effort.rounds):
            texts = [writer.turn() for _ in range(effort.texts)]
            await ask(place.client, "/v1/memories/batch", notes_of(texts))
            began = perf_counter()
            await until_embedded(place)
            seconds += perf_counter() - began
            for at_a_time in plain.batches:
                floors[at_a_time] += await loop.run_in_executor(aside, plain.seconds, texts, at_a_time)
            advance(len(texts))
    best = min(floors, key=lambda at_a_time: floors[at_a_time])
    at = f"{effort.texts} notes as long as turns at a time, up to {total:,}"
    floor = "the model's library with the same, in its best batches"
    yield BenchFigure("backfill", at, "rows/s", total / seconds, floor, total / floors[best], {"batches of": best})


def notes_of(texts: list[str]) -> dict[str, list[dict[str, str]]]:
    """Return the request body that writes texts as notes, all in one transaction."""
    return {"memories": [{"content": text} for text in texts]}
