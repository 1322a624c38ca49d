"""`python -m evals mutations`: which score notices which planted fault, over all cases of reflection."""

import os
from collections.abc import Sequence
from typing import Any

import typer

from esker.server.core.errors import InvalidInput
from evals import judging
from evals.case_files import OWN
from evals.judging import NAMES, Judgement, Submission
from evals.mutations import MUTATIONS, faultless
from evals.options import CasesFile, SuiteOptions, takes
from evals.output import progress, table, write_json
from evals.recording import recorded
from evals.reflection.cases import ReflectionCase
from evals.scoring.matching import Judge, KeptRow
from evals.scoring.meaning import Meaning
from evals.scoring.scored import score
from evals.suites import chosen

PER_TOKENS = "facts/1k"


@takes("only", "judge", "record", "replay", "json_file")
def mutations(cases: CasesFile = OWN / "reflection.jsonl", *, options: SuiteOptions) -> None:
    """Plant faults in faultless reflections, one at a time, and count the cases in which each score falls.

    A judge is asked about each case without a fault and with each one.
    """
    judge = options.judge
    if (options.record or options.replay) and not judge:
        raise InvalidInput("Without a judge there is nothing to record or to replay.", hint="Add --judge MODEL.")
    read = chosen(cases, ReflectionCase, options.only)
    meaning = Meaning()
    with progress() as shown:
        counts = caught(list(shown.track(read, description="Planting faults")), meaning)
    names = list(dict.fromkeys(name for row in counts.values() for name in row["fell"]))
    rows = [
        (fault, str(row["cases"]), *(_cell(row["fell"].get(name, 0), row["cases"]) for name in names))
        for fault, row in counts.items()
    ]
    table("Percentage of cases in which a fault makes a score fall", ["", "cases", *names], rows)
    if judge:
        with recorded(options.record, options.replay, os.environ) as (_, endpoint), progress() as shown:
            judged = judging.judge(judge, {**os.environ, **endpoint}, planted(read), shown)
        _say(judge, seen := noticed(judged))
        counts |= {"judge": {"model": judge, "faults": seen, "failed": judged.failed}}
    if options.json_file:
        write_json(options.json_file, counts)


def planted(cases: Sequence[ReflectionCase]) -> list[Submission]:
    """Return every case without a fault, and with each fault that it can have."""
    made: list[Submission] = []
    for case in (case for case in cases if any(case.gold.lasting())):
        made.append(Submission(f"{case.case}/", case.rows, faultless(case)))
        for fault, mutate in MUTATIONS.items():
            if rows := mutate(case, faultless(case)):
                made.append(Submission(f"{case.case}/{fault}", case.rows, rows))
    return made


def noticed(judged: Judgement) -> dict[str, Any]:
    """Return, by fault, how many cases with it a model has judged, and in how many each mark, or any, fell."""
    counts: dict[str, Any] = {}
    for name, marks in judged.marks.items():
        case, fault = name.split("/")
        without = judged.marks.get(f"{case}/")
        if fault and without:
            row = counts.setdefault(fault, {"cases": 0, "any": 0, **dict.fromkeys(NAMES, 0)})
            fell = {mark: score < without.scores()[mark] for mark, score in marks.scores().items()}
            row["cases"] += 1
            row["any"] += any(fell.values())
            for mark, lower in fell.items():
                row[mark] += lower
    return counts


def _say(model: str, seen: dict[str, Any]) -> None:
    rows = [
        (fault, str(row["cases"]), *(_cell(row[name], row["cases"]) for name in ("any", *NAMES)))
        for fault, row in seen.items()
    ]
    typer.echo(
        f"\nOpinion of {model}: percentage of cases in which a fault makes a mark fall. No score above depends on it."
    )
    table("", ["", "cases", "any", *NAMES], rows)


def _cell(fell: int, of: int) -> str:
    return f"{100 * fell / of:.0f}" if fell else "·"


def caught(cases: Sequence[ReflectionCase], meaning: Meaning) -> dict[str, Any]:
    """Return, by fault, the number of cases that can have it, and in how many of them each score fell."""
    counts: dict[str, Any] = {fault: {"cases": 0, "fell": {}} for fault in MUTATIONS}
    for case in (case for case in cases if any(case.gold.lasting())):
        by = Judge(case.language, meaning)
        faulty = {fault: rows for fault, mutate in MUTATIONS.items() if (rows := mutate(case, faultless(case)))}
        by.read(case.gold, faultless(case), *faulty.values())
        before = shares(case, faultless(case), by)
        for fault, rows in faulty.items():
            after = shares(case, rows, by)
            counts[fault]["cases"] += 1
            fell = counts[fault]["fell"]
            for name in (name for name, share in before.items() if after.get(name, 0.0) < share):
                fell[name] = fell.get(name, 0) + 1
    return counts


def shares(case: ReflectionCase, rows: Sequence[KeptRow], by: Judge) -> dict[str, float]:
    """Return all scores of rows, by name."""
    scored = score(case.gold, case.rows, rows, by)
    return {name: figure.share for name, figure in scored.figures.items()} | {PER_TOKENS: scored.per_thousand_tokens}
