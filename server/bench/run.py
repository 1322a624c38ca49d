"""One run of all measurements, in the order in which each leaves behind what the next one needs."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from server.bench.figures import Effort, Figure
from server.bench.filling import fill_table
from server.bench.machine import machine_line
from server.bench.packs import measure_packs
from server.bench.place import Place, place
from server.bench.progress import Progress
from server.bench.recalls import measure_recalls
from server.bench.writes import measure_writes

SMALL = 10_000
"""The size with which the large one is compared."""
FULL = 1_000_000


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, and on which machine, with its load before and after."""

    before: str
    after: str
    figures: list[Figure]


async def run(rows: int, effort: Effort, progress: Progress) -> Report:
    """Measure at 10,000 rows and at `rows`, on a server that is there for that alone."""
    async with place() as measured:
        before = await machine_line(measured)
        figures = [figure async for figure in _figures(measured, rows, effort, progress)]
        return Report(before, await machine_line(measured), figures)


async def _figures(measured: Place, rows: int, effort: Effort, progress: Progress) -> AsyncGenerator[Figure]:
    async for figure in measure_writes(measured, min(SMALL, rows), progress):
        yield figure
    async for figure in measure_recalls(measured, effort, progress):
        yield figure
    if rows > SMALL:
        await fill_table(measured, SMALL, rows, progress)
        async for figure in measure_recalls(measured, effort, progress):
            yield figure
    async for figure in measure_packs(measured, sorted({min(SMALL, rows), rows}), effort, progress):
        yield figure
