"""A run of all measurements, ordered so that each leaves the rows that the next one needs."""

from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from enum import StrEnum

from esker.server.bench.backfills import measure_backfill
from esker.server.bench.bench_server import MODEL, WITHOUT_MODEL, BenchServer, started_server, with_model
from esker.server.bench.figures import BenchFigure, Effort
from esker.server.bench.filling import fill_table
from esker.server.bench.machine import machine_line
from esker.server.bench.nearest import measure_nearest
from esker.server.bench.packs import measure_packs
from esker.server.bench.pages import measure_pages
from esker.server.bench.progress import BenchProgress
from esker.server.bench.questions import measure_questions
from esker.server.bench.recalls import measure_recalls
from esker.server.bench.reembedding import measure_reembedding
from esker.server.bench.semantic_recalls import measure_recalls_by_meaning, measure_recalls_during_backfill
from esker.server.bench.writes import measure_writes

SMALL = 10_000
"""The smaller pool size, in rows."""
FULL = 1_000_000
MOST_VECTORS = 100_000
"""The most vectors of an index; building a larger one takes many minutes."""

MOST_OF_PAGES = 100_000
"""The most rows of the pool whose pages are measured."""


class BenchPart(StrEnum):
    """A part that can be measured alone. A recall needs the rows of the writes.

    `embedding` is the embedding of questions; `backfill` is every figure that needs a server with a worker.
    """

    WRITES = "writes"
    RECALL = "recall"
    PACK = "pack"
    EMBEDDING = "embedding"
    NEAREST = "nearest"
    PAGES = "pages"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class BenchReport:
    """The figures, and the machine with its load before and after."""

    before: str
    after: str
    figures: list[BenchFigure]


async def run(
    rows: int, only: Collection[BenchPart], effort: Effort, progress: BenchProgress, model: str = MODEL
) -> BenchReport:
    """Measure at 10,000 rows and at `rows`, all or `only` some parts, on servers started for this run.

    `model` is the embedder setting of the server with a worker.
    """
    parts = set(only or BenchPart)
    async with started_server(WITHOUT_MODEL) as measured:
        before = await machine_line(measured)
        figures = [figure async for figure in _by_words(measured, rows, parts, effort, progress)]
        if BenchPart.PAGES in parts:
            measuring = measure_pages(measured, min(MOST_OF_PAGES, rows), effort, progress)
            figures += [figure async for figure in measuring]
        figures += [figure async for figure in _by_vectors(measured, rows, parts, effort, progress)]
        if BenchPart.BACKFILL in parts:
            async with started_server(with_model(model)) as embedding:
                figures += [figure async for figure in _with_worker(embedding, effort, progress)]
        return BenchReport(before, await machine_line(measured), figures)


async def _by_words(
    measured: BenchServer, rows: int, parts: set[BenchPart], effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    if parts & {BenchPart.WRITES, BenchPart.RECALL}:
        async for figure in measure_writes(measured, min(SMALL, rows), progress):
            yield figure
    if BenchPart.RECALL in parts:
        async for figure in measure_recalls(measured, effort, progress):
            yield figure
    if BenchPart.RECALL in parts and rows > SMALL:
        await fill_table(measured, SMALL, rows, progress)
        async for figure in measure_recalls(measured, effort, progress):
            yield figure
    if BenchPart.PACK in parts:
        async for figure in measure_packs(measured, sorted({min(SMALL, rows), rows}), effort, progress):
            yield figure


async def _by_vectors(
    measured: BenchServer, rows: int, parts: set[BenchPart], effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    if BenchPart.EMBEDDING in parts:
        async for figure in measure_questions(measured, effort, progress):
            yield figure
    if BenchPart.NEAREST in parts:
        most = min(rows, MOST_VECTORS)
        async for figure in measure_nearest(measured, sorted({min(SMALL, most), most}), effort, progress):
            yield figure


async def _with_worker(embedding: BenchServer, effort: Effort, progress: BenchProgress) -> AsyncGenerator[BenchFigure]:
    for measure in (
        measure_backfill,
        measure_recalls_during_backfill,
        measure_recalls_by_meaning,
        measure_reembedding,
    ):
        async for figure in measure(embedding, effort, progress):
            yield figure
