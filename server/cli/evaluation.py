"""`esker eval`: what is to be said about a pool's memory, from its own rows."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from esker.server.app import make_embedders
from esker.server.cli.database import settings_for, with_database
from esker.server.cli.evaluation_report import check_report, write_report
from esker.server.cli.evaluation_verdicts import (
    HEADINGS,
    PoolVerdict,
    VerdictStatus,
    headline,
    of_subject,
    to_do,
    verdicts,
)
from esker.server.cli.output import AsJson, DataDir, note, print_json, progress, say
from esker.server.core.config.settings import Settings
from esker.server.core.pool.evaluation import PoolEvaluation
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.evaluate_pool import EvaluationRequest, evaluate_pool
from esker.server.usecases.parts import Parts

app = typer.Typer(add_completion=False)

_MARK: dict[VerdictStatus, str] = {"ok": "✓", "warning": "!", "wrong": "✗", "unknown": "?"}
_MOST_QUERIES = 2_000
_MOST_DAYS = 36_500


@app.command("eval")
def evaluate(
    pool: Annotated[str, typer.Option(help="The pool to look at.")] = "default",
    queries: Annotated[int, typer.Option(min=1, max=_MOST_QUERIES, help="How many questions to ask.")] = 100,
    seed: Annotated[int, typer.Option(help="What they are drawn with; the same seed draws the same.")] = 0,
    stale_days: Annotated[
        int, typer.Option(min=1, max=_MOST_DAYS, help="From so many days without use a row may be stale.")
    ] = 90,
    projects: Annotated[int, typer.Option(min=0, max=50, help="Whose packs are looked at: the largest so many.")] = 3,
    meaning: Annotated[
        bool, typer.Option("--meaning/--no-meaning", help="Embed the questions, as recall does.")
    ] = True,
    report: Annotated[Path | None, typer.Option(help="Write a page with pictures to this file (.html).")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Say how well a pool's memory can be found and what is wrong with it.

    Nothing is written to the pool. The exit code is 1 when something is wrong.
    """
    settings = settings_for(data_dir)
    if report is not None:
        check_report(report)
    asked = EvaluationRequest(queries, seed, stale_days, projects)
    with progress(shown=not as_json) as shown:
        found = with_database(settings, lambda parts: _found(parts, pool, asked, settings if meaning else None, shown))
    said = verdicts(found)
    if report is not None:
        write_report(report, found, said)
    if as_json:
        print_json(_document(found, said))
    else:
        _show(found, said, report)
    if any(verdict.status == "wrong" for verdict in said):
        raise typer.Exit(1)


async def _found(
    parts: Parts, pool: str, asked: EvaluationRequest, meaning: Settings | None, shown: Progress
) -> PoolEvaluation:
    """Evaluate the pool of this name; `meaning` are the settings of the embedder, if there is to be one."""
    found = await require_pool(parts, pool)
    embedders = make_embedders(meaning) if meaning else None
    try:
        return await evaluate_pool(replace(parts, embedders=embedders), found, asked, EvaluationBars(shown))
    finally:
        if embedders:
            await embedders.close()


class EvaluationBars:
    """Shows what an evaluation does, one bar each."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def __call__(self, what: str, total: int) -> Callable[[], None]:
        """Show a step, and return what moves its bar on."""
        task = self._shown.add_task(what, total=total)
        return lambda: self._shown.advance(task)


def _document(found: PoolEvaluation, said: list[PoolVerdict]) -> dict[str, Any]:
    ways = {way: asdict(ranks) for way, ranks in found.ranks_by_way().items()}
    packs = [asdict(pack) | {"precision": pack.precision} for pack in found.packs]
    computed = {"recall": ways, "false_answers": found.false_answers, "without_meaning": found.without_meaning}
    return {"verdicts": said, **computed, **asdict(found), "packs": packs}


def _show(found: PoolEvaluation, said: list[PoolVerdict], report: Path | None) -> None:
    say(f"Pool {found.pool} at {found.moment:%Y-%m-%d %H:%M} UTC: {headline(said)}")
    for subject, heading in HEADINGS.items():
        about = of_subject(said, subject)
        width = max((len(one.figure) for one in about), default=0)
        if about:
            say(f"\n{heading}")
        for one in about:
            say(f"{_MARK[one.status]} {one.figure:<{width}}  {one.shown}")
    if urgent := to_do(said):
        say("\nWhat to do")
    for one in urgent:
        say(f"{_MARK[one.status]} {one.figure}: {one.meaning} Good would be: {one.good}.\n  {one.advice}")
    note(f"The report is in {report}." if report else "`--report FILE.html` explains every figure, with pictures.")
