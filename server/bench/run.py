"""One run of all measurements, in the order in which each leaves behind what the next one needs."""

from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass
from enum import StrEnum

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


class Part(StrEnum):
    """What can be measured alone. A recall needs the rows that were written."""

    WRITES = "writes"
    RECALL = "recall"
    PACK = "pack"


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured, and on which machine, with its load before and after."""

    before: str
    after: str
    figures: list[Figure]


async def run(rows: int, only: Collection[Part], effort: Effort, progress: Progress) -> Report:
    """Measure at 10,000 rows and at `rows`, all or `only` some parts, on a server that is there for that alone."""
    async with place() as measured:
        before = await machine_line(measured)
        figures = [figure async for figure in _figures(measured, rows, set(only or Part), effort, progress)]
        return Report(before, await machine_line(measured), figures)


async def _figures(
    measured: Place, rows: int, parts: set[Part], effort: Effort, progress: Progress
) -> AsyncGenerator[Figure]:
    if parts & {Part.WRITES, Part.RECALL}:
        async for figure in measure_writes(measured, min(SMALL, rows), progress):
            yield figure
    if Part.RECALL in parts:
        async for figure in measure_recalls(measured, effort, progress):
            yield figure
    if Part.RECALL in parts and rows > SMALL:
        await fill_table(measured, SMALL, rows, progress)
        async for figure in measure_recalls(measured, effort, progress):
            yield figure
    if Part.PACK in parts:
        async for figure in measure_packs(measured, sorted({min(SMALL, rows), rows}), effort, progress):
            yield figure
