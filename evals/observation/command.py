"""`python -m evals observation`: the facts that an observer finds in transcripts, and their cost."""

from collections.abc import Sequence

from evals.asking import Use, uses
from evals.case_files import OWN
from evals.gold_cases import scored_case
from evals.observation.cases import ObservationCase
from evals.observation.running import ObservationRun, observe
from evals.options import CasesFile, SuiteOptions, takes
from evals.reports import CaseResult
from evals.suites import MODEL, UnderTest, chosen, run_suite


@takes("only", "observer", "judge", "questions", *MODEL)
def observation(cases: CasesFile = OWN / "observation.jsonl", *, options: SuiteOptions) -> None:
    """Send transcripts, have them observed, and score the new rows."""
    read = chosen(cases, ObservationCase, options.only)
    run_suite("observation", cases, options, lambda at: _measure(at, read))


def _measure(at: UnderTest, cases: Sequence[ObservationCase]) -> list[CaseResult]:
    observed = [observe(at.server, case.case, case.messages) for case in at.shown.track(cases, description="Observing")]
    together = list(zip(cases, observed, uses(at, cases, "after"), strict=True))
    return [_result(at, *each) for each in at.shown.track(together, description="Scoring")]


def _result(at: UnderTest, case: ObservationCase, observed: ObservationRun, after: Use) -> CaseResult:
    amounts = {
        "coverage": observed.coverage,
        "calls": observed.calls,
        "model tokens": observed.model_tokens,
        "seconds": observed.seconds,
    }
    return scored_case(case, observed.left, at.by(case), after.figures("found", "in pack"), amounts)
