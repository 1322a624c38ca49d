"""`python -m evals score OUTPUTS`: the scores of rows written by hand or by another program.

A line of the file is a case: `{"case": …, "rows": […]}`. A row is a text, or `text` with optional `sources` (names of
the case's rows or messages), `by` and `at`.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import AwareDatetime, Field, model_validator

from esker.server.core.errors import InvalidInput
from esker.server.core.records import Trust
from evals.case_files import OWN, CaseText, Name, StrictPart, read_cases
from evals.gold_cases import GoldCase, scored_case
from evals.input import models_of
from evals.observation.cases import ObservationCase
from evals.options import JsonOption
from evals.reflection.cases import ReflectionCase
from evals.reports import CaseResult
from evals.scoring.matching import Judge, KeptRow
from evals.scoring.meaning import THRESHOLDS, Meaning
from evals.suites import report


class WrittenRow(StrictPart):
    """A row of an output."""

    text: CaseText
    id: Name | None = None
    sources: tuple[Name, ...] = ()
    by: Trust | None = None
    at: AwareDatetime | None = None


class Output(StrictPart):
    """The rows written for a case."""

    case: Name
    rows: Annotated[tuple[WrittenRow | CaseText, ...], Field(max_length=1_000)]

    @model_validator(mode="after")
    def _fits(self) -> "Output":
        ids = [row.id for row in self.left()]
        if len({*ids}) < len(ids):
            raise ValueError("two rows have the same id")
        return self

    def left(self) -> list[KeptRow]:
        """Return the rows in the form that is scored."""
        rows = [WrittenRow(text=row) if isinstance(row, str) else row for row in self.rows]
        return [
            KeptRow(row.id or f"o{number}", row.text, row.sources, row.by, row.at)
            for number, row in enumerate(rows, start=1)
        ]


def score_outputs(
    outputs: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="A file with a line of JSON for each case.")
    ],
    suite: Annotated[Literal["reflection", "observation"], typer.Option(help="The suite of the cases.")] = "reflection",
    cases: Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="A file of other cases.")] = None,
    json_file: JsonOption = None,
) -> None:
    """Score rows from a file; no server is started."""
    path = cases or OWN / f"{suite}.jsonl"
    known = _known(path, suite)
    meaning = Meaning()
    results: list[CaseResult] = []
    for output in _read(outputs):
        if output.case not in known:
            raise InvalidInput(f"{path.name} has no case {output.case!r}.", hint="--cases names another file of cases.")
        case = known[output.case]
        results.append(scored_case(case, output.left(), Judge(case.language, meaning)))
    run = {"outputs": outputs.name, "thresholds": THRESHOLDS}
    report(suite, f"{outputs.name}, {suite}", results, run, path, json_file)


def _known(path: Path, suite: str) -> dict[str, GoldCase]:
    model: type[GoldCase] = ReflectionCase if suite == "reflection" else ObservationCase
    return {case.case: case for case in read_cases(path, model)}


def _read(path: Path) -> list[Output]:
    outputs = [output for _, output in models_of(path, Output)]
    if twice := [case for case, count in Counter(output.case for output in outputs).items() if count > 1]:
        raise InvalidInput(f"{path.name} has the case {twice[0]!r} twice.", hint="Give every output a file of its own.")
    if not outputs:
        raise InvalidInput(f"{path.name} has no case.")
    return outputs
