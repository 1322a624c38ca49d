"""What the suites over cases have in common: their options, the server under test, and what they leave behind."""

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer
from rich.progress import Progress

from esker.server.core.errors import InvalidInput
from evals import judging
from evals.case_files import AnyCase, read_cases
from evals.judging import Judgement
from evals.output import progress, remark, writable, write_json
from evals.recording import recorded
from evals.reports import CaseResult, document, show
from evals.scoring.scored import RETENTION
from evals.serving import Server, connected, refuse_used_pool

By = Literal["extractive", "model"]
"""Who observes or reflects: rules, or a model behind the Messages API."""

CasesFile = Annotated[Path, typer.Option("--cases", exists=True, dir_okay=False, help="A file of cases.")]
Only = Annotated[list[str] | None, typer.Option("--only", help="Only cases whose names begin with this.")]
ObserverOption = Annotated[
    By | None, typer.Option("--observer", help="Who observes: rules, which is the default, or the model of ESKER_….")
]
ReflectorOption = Annotated[
    By | None, typer.Option("--reflector", help="Who reflects: rules, which is the default, or the model of ESKER_….")
]
RecordOption = Annotated[Path | None, typer.Option("--record", file_okay=False, help="Keep the model's answers here.")]
Replay = Annotated[
    Path | None, typer.Option("--replay", exists=True, file_okay=False, help="Take the model's answers from here.")
]
QuestionsOption = Annotated[
    bool, typer.Option("--questions/--no-questions", help="Ask the questions, look at the pack.")
]
Url = Annotated[str | None, typer.Option("--url", help="A server that runs; without it one is started for this.")]
KeyOption = Annotated[str | None, typer.Option("--key", envvar="ESKER_KEY", help="The key of that server.")]
JsonOption = Annotated[
    Path | None,
    typer.Option("--json", dir_okay=False, callback=writable, help="Write everything to this file."),
]

SomeCase = TypeVar("SomeCase", bound=AnyCase)


def chosen(path: Path, model: type[SomeCase], only: Sequence[str] | None) -> list[SomeCase]:
    """Return the cases of a file, or those of them whose names begin so. Raises InvalidInput where there are none."""
    cases = read_cases(path, model)
    for begin in only or ():
        if not any(case.case.startswith(begin) for case in cases):
            names = ", ".join(case.case for case in cases[:5])
            raise InvalidInput(
                f"{path.name} has no case whose name begins with {begin!r}.", hint=f"It has {len(cases)}: {names} …"
            )
    if not cases:
        raise InvalidInput(f"{path.name} has no case.")
    return [case for case in cases if not only or case.case.startswith(tuple(only))]


@dataclass(frozen=True, slots=True)
class UnderTest:
    """A server under test, how progress is shown, and the environment that says where the model is.

    `observer` and `reflector` are what the server says of itself: `extractive`, the name of a model, or `off`.
    """

    server: Server
    shown: Progress
    environ: Mapping[str, str]
    observer: str
    reflector: str


@contextmanager
def under_test(
    url: str | None,
    key: str | None,
    record: Path | None = None,
    replay: Path | None = None,
    judge: str | None = None,
    *,
    observer: By | None = None,
    reflector: By | None = None,
) -> Generator[UnderTest]:
    """Yield a server with these roles (None: `extractive`) on a database of its own, or the one at `url` as it is.

    With a `judge` there is a model to record even where the server asks none.

    Raises InvalidInput where a model is wanted and there is none, where a server that runs is to be another or its
    pool is in use, or a recording lacks an answer.
    """
    if url and (given := [name for name, by in (("--observer", observer), ("--reflector", reflector)) if by]):
        raise InvalidInput(
            f"{' and '.join(given)} cannot be had of the server at {url}, whose roles were set when it was started.",
            hint="Leave that out, and the run tells what the server has; or leave out --url.",
        )
    if url and (record or replay):
        raise InvalidInput("What a server asks its model is recorded and replayed only where it is started for that.")
    if (record or replay) and judge is None and "model" not in (observer, reflector):
        raise InvalidInput(
            "Without a model there is nothing to record or to replay.", hint="--reflector model asks one."
        )
    wanted = {"ESKER_OBSERVER": observer or "extractive", "ESKER_REFLECTOR": reflector or "extractive"}
    with (
        recorded(record, replay, os.environ) as (_, endpoint),
        progress() as shown,
        connected(url, key, **wanted, **endpoint) as server,
    ):
        if url:
            refuse_used_pool(server)
        serving = server.get("/readyz")
        yield UnderTest(server, shown, {**os.environ, **endpoint}, serving["observer"], serving["reflector"])


def finish(
    suite: str,
    results: Sequence[CaseResult],
    run: dict[str, Any],
    cases: Path,
    json_file: Path | None,
    title: str,
    judged: Judgement | None = None,
) -> None:
    """Print the table of a run and write its document; what a model thinks of it stands beside."""
    told = document(suite, results, run, cases.name)
    show(told, title)
    if judged:
        ours = {one.case.case: one.figures[RETENTION].share for one in results if RETENTION in one.figures}
        told["judge"] = judged.document(ours)
        judging.show(told["judge"])
    remark(f"{told['hardware']}. `python -m evals show RUN CASE` says why.")
    if json_file:
        write_json(json_file, told)
