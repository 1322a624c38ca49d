"""`python -m evals reflection`: what reflecting keeps, replaces, lets go and makes up."""

from collections.abc import Sequence
from dataclasses import asdict

from evals import judging
from evals.asking import Use, use
from evals.case_files import OWN
from evals.judging import Judging, Submission
from evals.reflection.cases import ReflectionCase
from evals.reflection.running import ReflectionRun, reflect, stored_log
from evals.reports import CaseResult
from evals.runs import (
    CasesFile,
    JsonOption,
    KeyOption,
    Only,
    QuestionsOption,
    RecordOption,
    ReflectorOption,
    Replay,
    UnderTest,
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


def reflection(
    cases: CasesFile = OWN / "reflection.jsonl",
    only: Only = None,
    reflector: ReflectorOption = None,
    record: RecordOption = None,
    replay: Replay = None,
    judge: Judging = None,
    questions: QuestionsOption = True,
    url: Url = None,
    key: KeyOption = None,
    json_file: JsonOption = None,
) -> None:
    """Store logs of rows, have them reflected, and score what is left of them."""
    asked = chosen(cases, ReflectionCase, only)
    meaning = Meaning()
    with under_test(url, key, record, replay, judge, reflector=reflector) as at:
        results, reflected = _results(at, asked, meaning, questions=questions)
        told = [Submission(case.case, case.rows, one.left) for case, one in zip(asked, reflected, strict=True)]
        judged = judging.judge(judge, at.environ, told, at.shown) if judge else None
    run = {"reflector": at.reflector, "thresholds": THRESHOLDS}
    finish("reflection", results, run, cases, json_file, f"reflection by {at.reflector}: {len(asked)} cases", judged)


def _results(
    at: UnderTest, cases: Sequence[ReflectionCase], meaning: Meaning, *, questions: bool
) -> tuple[list[CaseResult], list[ReflectionRun]]:
    for case in at.shown.track(cases, description="Storing"):
        at.server.post_lines("/v1/import", stored_log(case).file())
    before = _uses(at, cases, meaning, "before") if questions else [None] * len(cases)
    reflected = [reflect(at.server, case) for case in at.shown.track(cases, description="Reflecting")]
    after = _uses(at, cases, meaning, "after") if questions else [None] * len(cases)
    scored = at.shown.track(list(zip(cases, reflected, before, after, strict=True)), description="Scoring")
    return [_result(*each, meaning) for each in scored], reflected


def _uses(at: UnderTest, cases: Sequence[ReflectionCase], meaning: Meaning, when: str) -> list[Use | None]:
    wait_for_vectors(at.server, at.shown, "Embedding")
    told = at.shown.track(cases, description=f"Asking {when}")
    return [use(at.server, case.case, case.gold.lasting(), Judge(case.language, meaning), when) for case in told]


def _result(
    case: ReflectionCase, reflected: ReflectionRun, before: Use | None, after: Use | None, meaning: Meaning
) -> CaseResult:
    scored = score(case.gold, case.rows, reflected.left, Judge(case.language, meaning))
    figures = dict(scored.figures)
    amounts = {"shorter": scored.shorter, "facts/1k": scored.per_thousand_tokens, "seconds": reflected.seconds}
    amounts |= {"model tokens": reflected.model_tokens} if reflected.model_tokens else {}
    why = [*scored.lines()]
    if before and after and before.asked:
        figures["found before"] = ScoreFigure("found before", before.found, before.asked, tuple(before.missed))
        figures["found after"] = ScoreFigure("found after", after.found, after.asked, tuple(after.missed))
        figures["in pack"] = ScoreFigure("in pack", after.in_pack, scored.facts)
        amounts["pack facts/1k"] = 1_000 * after.in_pack / after.pack_tokens if after.pack_tokens else 0.0
        why += [f"found after: not found: {missed}" for missed in after.missed]
    if reflected.rejected:
        why.insert(0, f"nothing was changed: {reflected.rejected}")
    return CaseResult(case, (case.domain,), figures, amounts, why, [asdict(row) for row in reflected.left])
