"""`esker bench`: measure this machine."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.progress import Progress

from esker.server.bench.figures import BenchFigure, Effort
from esker.server.bench.run import FULL, BenchPart, BenchReport, run
from esker.server.cli.output import AsJson, print_json, progress, say, table

app = typer.Typer(add_completion=False)

_DEFAULT = 30_000
_LARGE = 10
"""Ratios below it are shown with two decimals, since 1.05 and 1.15 differ for some figures."""


@app.command()
def bench(
    rows: Annotated[
        int, typer.Option(min=1_000, help="The larger of the two measured pool sizes, in rows.")
    ] = _DEFAULT,
    full: Annotated[bool, typer.Option("--full", help="Measure at a million rows.")] = False,
    only: Annotated[list[BenchPart] | None, typer.Option(help="Measure only this part; may be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Measure Esker's speed on this machine, each figure beside its floor."""
    with progress(shown=not as_json) as shown:
        report = asyncio.run(run(FULL if full else rows, only or (), Effort(), BenchBars(shown)))
    if as_json:
        print_json({**asdict(report), "figures": [asdict(f) | {"ratio": f.ratio} for f in report.figures]})
    else:
        _show(report)


@dataclass(frozen=True, slots=True)
class BenchBars:
    """Shows a progress bar for each step of a run."""

    shown: Progress

    @contextmanager
    def step(self, what: str, total: int) -> Generator[Callable[[int], None]]:
        """Show a step of `total` units during the block."""
        task = self.shown.add_task(what, total=total)
        yield lambda done: self.shown.advance(task, done)


def _show(report: BenchReport) -> None:
    table(("figure", "at", "median", "p95", "floor", "its median", "times the floor", ""), map(_row, report.figures))
    say()
    say(report.before)
    say(f"At the end: {report.after.rpartition('; ')[2]}. On a busy machine, compare the ratios and not the times.")


def _row(figure: BenchFigure) -> tuple[object, ...]:
    more = {name: value for name, value in figure.more.items() if "p95" not in name}
    return (
        figure.name,
        figure.at,
        _measured(figure.value, figure.unit),
        _measured(figure.more["p95"], figure.unit) if "p95" in figure.more else "",
        figure.floor,
        _measured(figure.floor_value, figure.unit),
        f"{figure.ratio:.1f}" if figure.ratio >= _LARGE else f"{figure.ratio:.2f}",
        ", ".join(f"{name} {_plainly(value)}" for name, value in more.items()),
    )


def _measured(value: float, unit: str) -> str:
    return f"{value:,.1f} {unit}" if unit == "ms" else f"{value:,.0f} {unit}"


def _plainly(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or value >= 100 else f"{value:.2f}"
