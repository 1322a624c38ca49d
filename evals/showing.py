"""`python -m evals show RUN CASE`: one case of a run in words, so that a reader can check its scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import JsonObject
from evals.case_text import case_lines
from evals.input import expected
from evals.output import say
from evals.reports import read_run


def show_case(
    run: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The JSON file that a suite has written.")],
    case: Annotated[
        str | None, typer.Argument(help="The name of a case; without it all cases with faults are listed.")
    ] = None,
) -> None:
    """Show the results of one case of a run, fact by fact; or list the cases with faults, the worst first."""
    document = read_run(run)
    with expected("run over cases", run, "A suite writes one with --json."):
        lines = [*_lines(document, case, run)]
    for line in lines:
        say(line)


def _lines(document: JsonObject, name: str | None, run: Path) -> Iterator[str]:
    if name is None:
        return _worst(document)
    found = next((each for each in document["cases"] if each["id"] == name), None)
    if found is None:
        raise InvalidInput(f"{run} has no case {name!r}.", hint=f"`python -m evals show {run}` lists them.")
    return _case(found, document.get("judge"))


def _worst(document: JsonObject) -> Iterator[str]:
    cases = document["cases"]
    if not any(share < 1 for case in cases for share in case["figures"].values()):
        yield f"None of the {len(cases)} cases has a fault: {', '.join(case['id'] for case in cases)}."
    by_mean = sorted(cases, key=lambda case: _mean(case["figures"]))
    for case in by_mean:
        low = [f"{name} {100 * share:.0f}" for name, share in case["figures"].items() if share < 1]
        if low:
            yield f"{case['id']}: {', '.join(low)}"


def _mean(figures: JsonObject) -> float:
    return sum(figures.values()) / len(figures) if figures else 1.0


def _case(case: JsonObject, judge: JsonObject | None) -> Iterator[str]:
    yield f"{case['id']} ({', '.join((*case['groups'], case['language']))})"
    yield case["about"]
    yield ""
    if "case" in case:
        yield from (*case_lines(case["case"]), "")
    yield "Figures:"
    for name, (good, of) in case["counts"].items():
        yield f"  {name}: {good} of {of}"
    for name, amount in case["amounts"].items():
        yield f"  {name}: {amount:.2f}"
    yield from ("", "Facts and faults:")
    yield from (f"  {line}" for line in case["lines"] or ("none",))
    yield from ("", "Rows left:")
    for row in case["left"]:
        cited = f" [{', '.join(row['sources'])}]" if row.get("sources") else ""
        yield f"  {row['id']}: {row.get('text', '')}{cited}"
    if judge and case["id"] in judge["cases"]:
        yield from ("", f"Opinion of {judge['model']}, on which no figure depends:")
        yield from (
            f"  {name}: {its['score']} of 5: {its['reason']}" for name, its in judge["cases"][case["id"]].items()
        )
