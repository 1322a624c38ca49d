"""`python -m evals pack`: what a session begins with, within its scope and budget, and that it stays to the byte."""

from collections.abc import Iterator

from evals.case_files import OWN
from evals.pack.cases import PackCase
from evals.pack.running import Packed, now, pack
from evals.reports import CaseResult
from evals.runs import CasesFile, JsonOption, Only, chosen, finish, under_test
from evals.scoring.figures import ScoreFigure, figure


def pack_suite(cases: CasesFile = OWN / "pack.jsonl", only: Only = None, json_file: JsonOption = None) -> None:
    """Store pools, begin a session in each, and look at its pack."""
    asked = chosen(cases, PackCase, only)
    with under_test(None, None) as at:
        moment = now()
        results = [
            _result(case, pack(at.server, case, moment)) for case in at.shown.track(asked, description="Packing")
        ]
    finish("pack", results, {}, cases, json_file, f"pack: {len(asked)} cases")


def _result(case: PackCase, packed: Packed) -> CaseResult:
    figures = [*_figures(case, packed)]
    why = [f"{each.name}: {fault}" for each in figures for fault in each.faults]
    shown = [{"id": name} for name in packed.shown]
    amounts = {"tokens": packed.tokens, "of budget": packed.tokens / case.budget}
    return CaseResult(case, ("pack",), {each.name: each for each in figures}, amounts, why, shown)


def _figures(case: PackCase, packed: Packed) -> Iterator[ScoreFigure]:
    texts = {row.id: row.text for row in case.rows}
    there = {*packed.shown}
    yield figure("there", (None if name in there else f"missing: {texts[name]}" for name in case.must))
    yield figure("kept out", (f"shown: {texts[name]}" if name in there else None for name in case.must_not))
    known = [name for name in packed.shown if name in {*case.must, *case.must_not}]
    yield figure("precision", (None if name in case.must else f"shown: {texts[name]}" for name in known))
    over = f"{packed.tokens} tokens of {case.budget}" if packed.tokens > case.budget else None
    yield figure("in budget", [over])
    yield figure("stays", [None if packed.stays else "asked again it had other bytes"])
