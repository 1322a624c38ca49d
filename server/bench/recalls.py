"""Recall over HTTP, without the embedding of the query: one client, and eight at once."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import httpx2

from esker.server.bench.bench_server import BenchServer, ask
from esker.server.bench.figures import BenchFigure, Effort, Timing, timed, timing
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer

_CLIENTS = 8
_QUESTIONS = 500
_HITS = 8


async def measure_recalls(place: BenchServer, effort: Effort, progress: BenchProgress) -> AsyncGenerator[BenchFigure]:
    """Yield the time of a recall in the server's pool, for one client and for eight at once."""
    found = await place.rows("some_rows", {"pool": place.pool_id, "limit": _QUESTIONS})
    writer = Writer(_QUESTIONS)
    questions = [{"query": writer.question(content), "limit": _HITS} for _, content in found]
    ids = [row_id for row_id, _ in found]
    [[rows, everywhere]] = await place.rows("count_rows", {"pool": place.pool_id})
    at = f"{rows:,} rows in the pool, {everywhere:,} in the table"
    with progress.step(f"Recalling: {at}", 2) as advance:
        for figure in await _one_client(place, questions, ids, at, effort.recalls):
            yield figure
        advance(1)
        yield await _many_clients(place, questions, at, effort.seconds)
        advance(1)


async def _one_client(
    place: BenchServer, questions: Sequence[Any], ids: Sequence[str], at: str, times: int
) -> list[BenchFigure]:
    async def read(number: int) -> None:
        first = number % max(1, len(ids) - _HITS)
        await place.rows("bare_read", {"pool": place.pool_id, "ids": ids[first : first + _HITS]})

    recalled, empty, raw = await timed(
        times,
        lambda n: ask(place.client, "/v1/recall", questions[n % len(questions)]),
        lambda n: ask(place.empty, "/empty", questions[n % len(questions)]),
        read,
    )
    more = {"p95": recalled.p95}
    return [
        BenchFigure(
            "recall", at, "ms", recalled.p50, "an empty FastAPI route", empty.p50, more | {"floor p95": empty.p95}
        ),
        BenchFigure(
            "recall", at, "ms", recalled.p50, "raw SQL: its hits by key", raw.p50, more | {"floor p95": raw.p95}
        ),
    ]


async def _many_clients(place: BenchServer, questions: Sequence[Any], at: str, seconds: float) -> BenchFigure:
    recalled = await _at_once(place.client, "/v1/recall", questions, seconds)
    empty = await _at_once(place.empty, "/empty", questions, seconds)
    more = {
        "p95": recalled.timing.p95,
        "floor p95": empty.timing.p95,
        "errors": recalled.errors,
        "requests/s": recalled.requests / seconds,
        "slowest client's share": recalled.least_share,
    }
    name = f"recall, {_CLIENTS} clients"
    return BenchFigure(name, at, "ms", recalled.timing.p50, "an empty FastAPI route", empty.timing.p50, more)


@dataclass(frozen=True, slots=True)
class _AtOnce:
    """Results of several clients at once. `least_share` is the slowest client's part of a fair share: 1 is fair."""

    timing: Timing
    requests: int
    errors: int
    least_share: float


async def _at_once(client: httpx2.AsyncClient, path: str, questions: Sequence[Any], seconds: float) -> _AtOnce:
    ends = perf_counter() + seconds
    taken: list[list[float]] = [[] for _ in range(_CLIENTS)]
    errors = 0

    async def ask(number: int) -> None:
        nonlocal errors
        place = number * len(questions) // _CLIENTS
        while (began := perf_counter()) < ends:
            answer = await client.post(path, json=questions[place % len(questions)])
            errors += answer.is_error
            taken[number].append(perf_counter() - began)
            place += 1

    async with asyncio.TaskGroup() as running:
        for number in range(_CLIENTS):
            running.create_task(ask(number))
    requests = sum(map(len, taken))
    least = min(map(len, taken)) * _CLIENTS / requests
    return _AtOnce(timing([second for of_client in taken for second in of_client]), requests, errors, least)
