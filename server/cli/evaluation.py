"""`esker eval`: how well one pool's memory can be found, measured on its own rows."""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from esker.server.app import make_embedders
from esker.server.cli.database import settings_for, with_database
from esker.server.cli.output import AsJson, DataDir, note, print_json, progress, say
from esker.server.cli.pool_file import replaced
from esker.server.core.config.settings import Settings
from esker.server.core.errors import InvalidInput
from esker.server.core.pool.evaluation import PoolEvaluation
from esker.server.evaluation.figures import HEADINGS
from esker.server.evaluation.page import page
from esker.server.evaluation.verdicts import PoolVerdict, VerdictStatus, headline, of_subject, to_do, verdicts
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.evaluate_pool import EvaluationRequest, evaluate_pool
from esker.server.usecases.parts import Parts

app = typer.Typer(add_completion=False)

_MARK: dict[VerdictStatus, str] = {"ok": "✓", "warning": "!", "wrong": "✗", "unknown": "?"}
_MOST_QUERIES = 2_000
_MOST_DAYS = 36_500


@app.command("eval")
def evaluate(
    pool: Annotated[str, typer.Option(help="The pool to evaluate.")] = "default",
    queries: Annotated[int, typer.Option(min=1, max=_MOST_QUERIES, help="How many questions to ask.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of the questions; the same seed draws the same ones.")] = 0,
    stale_days: Annotated[
        int, typer.Option(min=1, max=_MOST_DAYS, help="After how many days without use a row may be stale.")
    ] = 90,
    projects: Annotated[int, typer.Option(min=0, max=50, help="How many packs to check, largest project first.")] = 3,
    meaning: Annotated[
        bool, typer.Option("--meaning/--no-meaning", help="Embed the questions, as recall does.")
    ] = True,
    report: Annotated[Path | None, typer.Option(help="Write a page with charts to this file (.html).")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well a pool's memory can be found, and report faults.

    Nothing is written to the pool. The exit code is 1 when a figure is wrong.
    """
    settings = settings_for(data_dir)
    if report is not None:
        check_report(report)
    request = EvaluationRequest(queries, seed, stale_days, projects)
    embedding = settings if meaning else None
    with progress(shown=not as_json) as shown:
        evaluation = with_database(settings, lambda parts: _evaluated(parts, pool, request, embedding, shown))
    found = verdicts(evaluation)
    if report is not None:
        write_report(report, page(evaluation, found))
    if as_json:
        print_json(_document(evaluation, found))
    else:
        _show(evaluation, found, report)
    if any(verdict.status == "wrong" for verdict in found):
        raise typer.Exit(1)


async def _evaluated(
    parts: Parts, name: str, request: EvaluationRequest, embedding: Settings | None, shown: Progress
) -> PoolEvaluation:
    """Evaluate the pool of this name; `embedding` are the settings of the embedder, None for a run without one."""
    pool = await require_pool(parts, name)
    embedders = make_embedders(embedding) if embedding else None
    try:
        return await evaluate_pool(replace(parts, embedders=embedders), pool, request, EvaluationBars(shown))
    finally:
        if embedders:
            await embedders.close()


class EvaluationBars:
    """Shows the steps of an evaluation, a progress bar each."""

    def __init__(self, shown: Progress) -> None:
        self._shown = shown

    def __call__(self, description: str, total: int) -> Callable[[], None]:
        """Show a step, and return a function that advances its bar."""
        task = self._shown.add_task(description, total=total)
        return lambda: self._shown.advance(task)


def check_report(path: Path) -> None:
    """Raise InvalidInput if no page can be written to `path`, before the user waits for one."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InvalidInput(f"{path} is a folder.", hint="Name a file to write, such as memory.html.")
    if target.exists() and not target.is_file():
        raise InvalidInput(f"{path} is not a regular file.", hint="Name a file to write, such as memory.html.")
    if not target.parent.is_dir():
        raise InvalidInput(f"{path}: the folder {target.parent} does not exist.", hint="Make it, or name another file.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise InvalidInput(f"{path}: the folder {target.parent} is not writable.", hint="Name a file elsewhere.")


def write_report(path: Path, text: str) -> None:
    """Write the page to a file, or replace it. Raises InvalidInput if the file cannot be written."""
    try:
        with replaced(path) as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or type(error).__name__}.") from error


def _document(evaluation: PoolEvaluation, found: Sequence[PoolVerdict]) -> dict[str, Any]:
    ways = {way: asdict(ranks) for way, ranks in evaluation.ranks_by_way().items()}
    packs = [asdict(pack) | {"precision": pack.precision, "useful": pack.worth.useful} for pack in evaluation.packs]
    computed = {"false_answers": evaluation.false_answers, "without_meaning": evaluation.without_meaning}
    return {"verdicts": found, "recall": ways, **computed, **asdict(evaluation), "packs": packs}


def _show(evaluation: PoolEvaluation, found: Sequence[PoolVerdict], report: Path | None) -> None:
    say(f"Pool {evaluation.pool} at {evaluation.moment:%Y-%m-%d %H:%M} UTC: {headline(found)}")
    for subject, heading in HEADINGS.items():
        about = of_subject(found, subject)
        width = max((len(one.figure) for one in about), default=0)
        if about:
            say(f"\n{heading}")
        for one in about:
            say(f"{_MARK[one.status]} {one.figure:<{width}}  {one.shown}")
    if urgent := to_do(found):
        say("\nWhat to do")
    for one in urgent:
        say(f"{_MARK[one.status]} {one.figure}: {one.meaning} Good: {one.good}.\n  {one.advice}")
    note(f"The report is in {report}." if report else "`--report FILE.html` explains every figure, with charts.")
