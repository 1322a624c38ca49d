"""Recall over HTTP by words and by meaning: while the worker is busy, and when everything is embedded."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter
from typing import Any

from esker.server.bench.backfills import notes_of
from esker.server.bench.bench_server import BenchServer, ask
from esker.server.bench.figures import BenchFigure, Effort, timed, timing
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer
from esker.server.bench.waiting import until_embedded

_ABOUT = 500
_HITS = 8


@dataclass(frozen=True, slots=True)
class _TimedRecall:
    """The seconds of a recall, how many notes had no vector then, and whether the answer was degraded."""

    seconds: float
    pending: int
    degraded: bool


async def measure_recalls_during_backfill(
    place: BenchServer, effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    """Yield the time of a recall while the worker embeds notes, which stay in the server's pool."""
    writer, busy, idle, seconds = Writer(effort.texts + 1), list[_TimedRecall](), list[_TimedRecall](), 0.0
    questions = await _new_questions(place, seed=1)
    total = effort.rounds * effort.texts
    with progress.step("Recalling during a backfill", total) as advance:
        for _ in range(effort.rounds):
            await ask(place.client, "/v1/memories/batch", notes_of([writer.turn() for _ in range(effort.texts)]))
            began = perf_counter()
            asked = await _until_embedded(place, questions)
            seconds += perf_counter() - began
            busy += asked
            idle += [await _recall(place, next(questions)) for _ in asked]
            advance(effort.texts)
    of_busy, of_idle = timing([one.seconds for one in busy]), timing([one.seconds for one in idle])
    more = {
        "p95": of_busy.p95,
        "floor p95": of_idle.p95,
        "times the floor at the 95th": of_busy.p95 / of_idle.p95,
        "recalls": len(busy),
        "degraded": fmean(one.degraded for one in busy),
        "rows/s meanwhile": total / seconds,
    }
    at = f"{await _rows(place)}, new questions"
    yield BenchFigure(
        "recall during a backfill",
        at,
        "ms",
        of_busy.p50,
        "the same while the worker has nothing to do",
        of_idle.p50,
        more,
    )


async def _until_embedded(place: BenchServer, questions: Iterator[str]) -> list[_TimedRecall]:
    """Recall until all notes have vectors, and return the recalls until then."""
    embedding = asyncio.create_task(until_embedded(place))
    asked: list[_TimedRecall] = []
    while not embedding.done():
        asked.append(await _recall(place, next(questions)))
    await embedding
    # No note had a vector when the first recall began.
    return [one for place, one in enumerate(asked) if one.pending or place == 0]


async def _recall(place: BenchServer, question: str) -> _TimedRecall:
    began = perf_counter()
    answer = await ask(place.client, "/v1/recall", _body(question))
    seconds = perf_counter() - began
    said = answer.json()
    return _TimedRecall(seconds, said["pending"], said["semantic"] == "degraded")


async def measure_recalls_by_meaning(
    place: BenchServer, effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    """Yield the time of a recall when all notes have vectors: for a new question, and for a cached one."""
    new = await _new_questions(place, seed=2)
    questions = [next(new) for _ in range(effort.recalls + 1)]
    with progress.step("Recalling by words and by meaning", 1) as advance:
        first, again, words, empty = await timed(
            effort.recalls,
            lambda n: ask(place.client, "/v1/recall", _body(questions[n])),
            lambda n: ask(place.client, "/v1/recall", _body(questions[n])),
            lambda n: ask(place.client, "/v1/recall", _body(questions[n], ranking="keyword")),
            lambda n: ask(place.empty, "/empty", _body(questions[n])),
        )
        advance(1)
    rows = await _rows(place)
    for asked, taken in (("new questions", first), ("asked again", again)):
        more = {"p95": taken.p95, "floor p95": words.p95, "times an empty route": taken.p50 / empty.p50}
        floor = "the same question, by keyword alone"
        yield BenchFigure("recall with vectors", f"{rows}, {asked}", "ms", taken.p50, floor, words.p50, more)


def _body(question: str, ranking: str = "full") -> dict[str, Any]:
    return {"query": question, "limit": _HITS, "ranking": ranking}


async def _new_questions(place: BenchServer, seed: int) -> Iterator[str]:
    found: Sequence[Any] = await place.rows("some_rows", {"pool": place.pool_id, "limit": _ABOUT})
    return Writer(seed).questions([content for _, content in found])


async def _rows(place: BenchServer) -> str:
    [[rows, _]] = await place.rows("count_rows", {"pool": place.pool_id})
    return f"{rows:,} rows in the pool"
