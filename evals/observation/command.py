"""`python -m evals observation`: which facts an observer finds in transcripts, and what that costs."""

from dataclasses import asdict

from evals import judging
from evals.asking import Use, use
from evals.case_files import OWN
from evals.judging import Judging, Submission
from evals.observation.cases import ObservationCase
from evals.observation.running import ObservationRun, log_of, observe
from evals.reports import CaseResult
from evals.runs import (
    CasesFile,
    JsonOption,
    KeyOption,
    ObserverOption,
    Only,
    QuestionsOption,
    RecordOption,
    Replay,
    Url,
    chosen,
    finish,
    under_test,
)
from evals.scoring.figures import ScoreFigure
from evals.scoring.matching import Judge
from evals.scoring.meaning import THRESHOLDS, Meaning
from evals.scoring.scored import score
from evals.serving import wait_for_vectors


def observation(
    cases: CasesFile = OWN / "observation.jsonl",
    only: Only = None,
    observer: ObserverOption = None,
    record: RecordOption = None,
    replay: Replay = None,
    judge: Judging = None,
    questions: QuestionsOption = True,
    url: Url = None,
    key: KeyOption = None,
    json_file: JsonOption = None,
) -> None:
    """Send transcripts, have them observed, and score the rows that come of them."""
    asked = chosen(cases, ObservationCase, only)
    meaning = Meaning()
    with under_test(url, key, record, replay, judge, observer=observer) as at:
        observed = [
            observe(at.server, case.case, case.messages) for case in at.shown.track(asked, description="Observing")
        ]
        uses: list[Use | None] = [None] * len(asked)
        if questions:
            wait_for_vectors(at.server, at.shown, "Embedding")
            told = at.shown.track(asked, description="Asking")
            uses = [
                use(at.server, each.case, each.gold.lasting(), Judge(each.language, meaning), "after") for each in told
            ]
        together = list(zip(asked, observed, uses, strict=True))
        results = [_result(*each, meaning) for each in at.shown.track(together, description="Scoring")]
        told = [Submission(case.case, log_of(case), one.left) for case, one in zip(asked, observed, strict=True)]
        judged = judging.judge(judge, at.environ, told, at.shown) if judge else None
    run = {"observer": at.observer, "reflector": at.reflector, "thresholds": THRESHOLDS}
    finish("observation", results, run, cases, json_file, f"observation by {at.observer}: {len(asked)} cases", judged)


def _result(case: ObservationCase, observed: ObservationRun, after: Use | None, meaning: Meaning) -> CaseResult:
    scored = score(case.gold, log_of(case), observed.left, Judge(case.language, meaning))
    figures = dict(scored.figures)
    amounts = {
        "coverage": observed.coverage,
        "shorter": scored.shorter,
        "facts/1k": scored.per_thousand_tokens,
        "calls": observed.calls,
        "model tokens": observed.model_tokens,
        "seconds": observed.seconds,
    }
    why = [*scored.lines()]
    if after and after.asked:
        figures["found"] = ScoreFigure("found", after.found, after.asked, tuple(after.missed))
        figures["in pack"] = ScoreFigure("in pack", after.in_pack, scored.facts)
        why += [f"found: not found: {missed}" for missed in after.missed]
    return CaseResult(case, (case.domain,), figures, amounts, why, [asdict(row) for row in observed.left])
