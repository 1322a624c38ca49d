"""`python -m evals sessions`: what is kept of real coding sessions, against the labels of people who read them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import JsonObject
from evals.options import SuiteOptions, takes
from evals.output import table
from evals.reports import CaseResult
from evals.sessions.labels import LABELS, read_labels
from evals.sessions.running import run_session
from evals.sessions.scores import (
    ALONE,
    IN_PACK,
    KEPT,
    MEDIUM_USEFUL,
    NO_JUNK,
    NO_MEDIUM_JUNK,
    NOT_WRONG,
    ONLY_ASKED,
    PACK_USEFUL,
    TOKENS,
    UNLABELLED,
    UNMATCHED,
    USEFUL,
    scored_session,
)
from evals.sessions.transcripts import LabelledSession, labelled_sessions
from evals.suites import MODEL, UnderTest, run_suite

_FAULTS = {
    "junk rows": NO_JUNK,
    "rows of no use": USEFUL,
    "wrong rows": NOT_WRONG,
    "rows not understood alone": ALONE,
    "medium rows that are junk": NO_MEDIUM_JUNK,
    "medium rows of no use": MEDIUM_USEFUL,
}
"""The figures of which the table has the faults, by their names there."""


@takes("only", "observer", "reflector", *MODEL)
def sessions(
    path: Annotated[Path, typer.Argument(help="A folder of transcripts, or one transcript.")],
    labels: Annotated[Path, typer.Option(exists=True, file_okay=False, help="A folder of label files.")] = LABELS,
    reflect: Annotated[bool, typer.Option("--reflect", help="Reflect the session before its rows are judged.")] = False,
    *,
    options: SuiteOptions,
) -> None:
    """Send real sessions, have them observed, and judge the rows and the next session's pack by their labels."""
    found = [each for each in labelled_sessions(path, read_labels(labels)) if _is_wanted(each, options.only)]
    if not found:
        raise InvalidInput("No label file has a name that begins with the value of --only.")
    chosen = replace(options, reflecting=reflect)
    run_suite("sessions", path, chosen, lambda at: _measure(at, found), shown_by=_show_sessions)


def _is_wanted(session: LabelledSession, only: Sequence[str] | None) -> bool:
    return not only or session.labels.case.startswith(tuple(only))


def _measure(at: UnderTest, found: Sequence[LabelledSession]) -> list[CaseResult]:
    return [
        scored_session(each, run_session(at.server, each, reflecting=at.options.reflecting))
        for each in at.shown.track(found, description="Observing")
    ]


def _show_sessions(run: JsonObject, title: str) -> None:
    """Print a table of a run: the measures of each session, and of all of them."""
    cases = run["cases"]
    columns = {case["id"]: (case["counts"], case["amounts"]) for case in cases}
    if len(cases) > 1:
        columns["all"] = _total(run["figures"], len(cases))
    cells = [dict(_cells(*of)) for of in columns.values()]
    table(title, ["", *columns], [(name, *(its.get(name, "–") for its in cells)) for name in cells[0]])


def _total(figures: JsonObject, cases: int) -> tuple[JsonObject, JsonObject]:
    """Return the counts and amounts of all cases together, from their sums and means."""
    counts = {name: (its["good"], its["of"]) for name, its in figures.items() if "good" in its}
    return counts, {name: its["mean"] * cases for name, its in figures.items() if "mean" in its}


def _cells(counts: JsonObject, amounts: JsonObject) -> Iterator[tuple[str, str]]:
    kept, facts = counts[KEPT]
    asked = round(amounts[ONLY_ASKED])
    yield "facts kept", f"{kept} of {facts}"
    yield "facts only in a request", f"{asked}"
    yield "facts missed", f"{facts - kept - asked}"
    yield "facts in the next pack", f"{counts[IN_PACK][0]} of {facts}"
    for name, figure in _FAULTS.items():
        if figure in counts:
            good, of = counts[figure]
            yield name, f"{of - good} of {of} ({(of - good) / of:.0%})"
    yield "rows without a labelled fact", f"{amounts[UNMATCHED]:.0f}"
    yield "rows of unlabelled messages", f"{amounts[UNLABELLED]:.0f}"
    yield "tokens of all rows", f"{amounts[TOKENS]:,.0f}"
    if PACK_USEFUL in counts:
        useful, tokens = counts[PACK_USEFUL]
        yield "useful tokens of the pack", f"{useful:,} of {tokens:,} ({useful / tokens:.0%})"
