"""`python -m evals reflection`: the facts that reflecting keeps, replaces, drops and invents."""

from collections.abc import Sequence

from evals.asking import Use, uses
from evals.case_files import OWN
from evals.gold_cases import scored_case
from evals.options import CasesFile, SuiteOptions, takes
from evals.reflection.cases import ReflectionCase
from evals.reflection.running import ReflectionRun, reflect, stored_log
from evals.reports import CaseResult
from evals.suites import MODEL, UnderTest, chosen, run_suite


@takes("only", "reflector", "judge", "questions", *MODEL)
def reflection(cases: CasesFile = OWN / "reflection.jsonl", *, options: SuiteOptions) -> None:
    """Store logs of rows, have them reflected, and score the rows that are left."""
    read = chosen(cases, ReflectionCase, options.only)
    run_suite("reflection", cases, options, lambda at: _measure(at, read))


def _measure(at: UnderTest, cases: Sequence[ReflectionCase]) -> list[CaseResult]:
    for case in at.shown.track(cases, description="Storing"):
        at.server.post_lines("/v1/import", stored_log(case).file())
    before = uses(at, cases, "before")
    reflected = [reflect(at.server, case) for case in at.shown.track(cases, description="Reflecting")]
    together = list(zip(cases, reflected, before, uses(at, cases, "after"), strict=True))
    return [_result(at, *each) for each in at.shown.track(together, description="Scoring")]


def _result(at: UnderTest, case: ReflectionCase, reflected: ReflectionRun, before: Use, after: Use) -> CaseResult:
    amounts: dict[str, float] = {"seconds": reflected.seconds}
    if reflected.model_tokens:
        amounts["model tokens"] = reflected.model_tokens
    if after.pack_tokens:
        amounts["pack facts/1k"] = 1_000 * after.in_pack / after.pack_tokens
    why = [f"nothing was changed: {reflected.rejected}"] if reflected.rejected else []
    figures = before.figures("found before") | after.figures("found after", "in pack")
    return scored_case(case, reflected.left, at.by(case), figures, amounts, why)
