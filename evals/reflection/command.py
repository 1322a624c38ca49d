"""`python -m evals reflection`: what reflecting keeps, replaces, lets go and makes up."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.progress import Progress

from evals.case_files import OWN, read_cases
from evals.output import progress, remark, write_json
from evals.reflection.cases import Case
from evals.reflection.running import Reflected, Use, log_of, reflect, use
from evals.reports import Result, document, show
from evals.retrieval.storing import wait_for_vectors
from evals.scoring import meaning as meanings
from evals.scoring.meaning import Meaning
from evals.scoring.figures import Figure
from evals.scoring.matching import Judge
from evals.scoring.scored import score
from evals.serving import Server, connected
from server.core.errors import InvalidInput

By = Literal["extractive", "model"]


def reflection(
    cases: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="A file of cases.")] = OWN / "reflection.jsonl",
    only: Annotated[list[str] | None, typer.Option(help="Only cases whose names begin with this.")] = None,
    reflector: Annotated[By, typer.Option(help="Who reflects: rules, or the model of ESKER_…")] = "extractive",
    questions: Annotated[bool, typer.Option(help="Ask the questions before and after, and look at the pack.")] = True,
    url: Annotated[str | None, typer.Option(help="A server that runs; without it one is started for this.")] = None,
    key: Annotated[str | None, typer.Option(envvar="ESKER_KEY", help="The key of that server.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write everything to this file.")] = None,
) -> None:
    """Store logs of rows, have them reflected, and score what is left of them."""
    chosen = _chosen(read_cases(cases, Case), only)
    meaning = Meaning()
    with progress() as shown, connected(url, key, ESKER_REFLECTOR=reflector) as server:
        results = _results(server, chosen, meaning, shown, questions=questions)
    thresholds = {"cosine": meanings.ALONE, "cosine beside exact words": meanings.BESIDE}
    told = document("reflection", results, {"reflector": reflector, "thresholds": thresholds}, cases.name)
    show(told, f"reflection by {reflector}: {len(chosen)} cases")
    remark(f"{told['hardware']}. `python -m evals show RUN CASE` tells why.")
    if json_file:
        write_json(json_file, told)


def _chosen(cases: Sequence[Case], only: Sequence[str] | None) -> list[Case]:
    found = [case for case in cases if not only or case.case.startswith(tuple(only))]
    if not found:
        raise InvalidInput("No case has such a name.")
    return found


def _results(server: Server, cases: Sequence[Case], meaning: Meaning, shown: Progress, *, questions: bool) -> list[Result]:
    for case in shown.track(cases, description="Storing"):
        server.post_lines("/v1/import", log_of(case).file())
    before = _uses(server, cases, meaning, shown, "before") if questions else [None] * len(cases)
    reflected = [reflect(server, case) for case in shown.track(cases, description="Reflecting")]
    after = _uses(server, cases, meaning, shown, "after") if questions else [None] * len(cases)
    judged = shown.track(list(zip(cases, reflected, before, after, strict=True)), description="Scoring")
    return [_result(*each, meaning) for each in judged]


def _uses(server: Server, cases: Sequence[Case], meaning: Meaning, shown: Progress, when: str) -> list[Use | None]:
    wait_for_vectors(server, shown, "Embedding")
    return [use(server, case, Judge(case.language, meaning), when) for case in shown.track(cases, description=f"Asking {when}")]


def _result(case: Case, reflected: Reflected, before: Use | None, after: Use | None, meaning: Meaning) -> Result:
    scored = score(case.gold, case.rows, reflected.left, Judge(case.language, meaning))
    figures = dict(scored.figures)
    amounts = {"shorter": scored.shorter, "facts/1k": scored.per_thousand_tokens, "seconds": reflected.seconds}
    why = [*scored.lines()]
    if before and after and before.asked:
        figures["found before"] = Figure("found before", before.found, before.asked, tuple(before.missed))
        figures["found after"] = Figure("found after", after.found, after.asked, tuple(after.missed))
        figures["in pack"] = Figure("in pack", after.in_pack, scored.facts)
        why += [f"found after: not found: {missed}" for missed in after.missed]
    if reflected.rejected:
        why.insert(0, f"nothing was changed: {reflected.rejected}")
    left: list[dict[str, Any]] = [asdict(row) for row in reflected.left]
    return Result(case, case.domain, figures, amounts, why, left)
