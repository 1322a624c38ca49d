"""`python -m evals pack`: whether a session's pack has the right rows, fits its budget, and stays the same bytes."""

from collections.abc import Iterator, Sequence

from evals.case_files import OWN
from evals.options import CasesFile, SuiteOptions, takes
from evals.pack.cases import PackCase
from evals.pack.running import PackRun, now, pack
from evals.reports import CaseResult
from evals.scoring.figures import ScoreFigure, figure
from evals.scoring.matching import KeptRow
from evals.suites import UnderTest, chosen, run_suite


@takes("only", "json_file")
def pack_suite(cases: CasesFile = OWN / "pack.jsonl", *, options: SuiteOptions) -> None:
    """Store pools, begin a session in each, and check its pack."""
    read = chosen(cases, PackCase, options.only)
    run_suite("pack", cases, options, lambda at: _measure(at, read))


def _measure(at: UnderTest, cases: Sequence[PackCase]) -> list[CaseResult]:
    moment = now()
    return [_result(case, pack(at.server, case, moment)) for case in at.shown.track(cases, description="Packing")]


def _result(case: PackCase, packed: PackRun) -> CaseResult:
    texts = {row.id: row.text for row in case.rows}
    shown = [KeptRow(name, texts[name]) for name in packed.shown]
    amounts = {"tokens": packed.tokens, "of budget": packed.tokens / case.budget}
    return CaseResult.of(case, ("pack",), _figures(case, packed, texts), amounts, shown)


def _figures(case: PackCase, packed: PackRun, texts: dict[str, str]) -> Iterator[ScoreFigure]:
    there = {*packed.shown}
    yield figure("there", (None if name in there else f"missing: {texts[name]}" for name in case.must))
    yield figure("kept out", (f"shown: {texts[name]}" if name in there else None for name in case.must_not))
    known = [name for name in packed.shown if name in {*case.must, *case.must_not}]
    yield figure("precision", (None if name in case.must else f"shown: {texts[name]}" for name in known))
    over = f"{packed.tokens} tokens of {case.budget}" if packed.tokens > case.budget else None
    yield figure("in budget", [over])
    yield figure("stays", [None if packed.stays else "a second request gave other bytes"])
