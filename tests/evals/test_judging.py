"""A model's opinion beside the scores: optional, and without influence on them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from rich.progress import Progress

from esker.server.core.errors import InvalidInput
from esker.server.db.embedded import Cluster
from evals.case_files import OWN, read_cases
from evals.catching import mutations, noticed, planted
from evals.judging import Grades, Judgement, Submission, judge, spearman
from evals.mutations import MUTATIONS, faultless
from evals.reflection.cases import ReflectionCase
from evals.reflection.command import reflection
from evals.scoring.gold import LogRow
from evals.scoring.matching import KeptRow
from evals.scoring.meaning import Meaning
from evals.showing import show_case
from tests.support.model_server import ModelServer, ScriptedAnswer
from tests.support.suites import first_cases, serve_here

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)


def marks(retention: int, no_invention: int = 5, usefulness: int = 4) -> dict[str, Any]:
    """Return an answer of a judge."""
    scores = {"retention": retention, "no_invention": no_invention, "usefulness": usefulness}
    return {name: {"score": score, "reason": f"{name} is {score}."} for name, score in scores.items()}


def submission(name: str, *left: str) -> Submission:
    """Return a log of two lines with these rows left of it."""
    log = [LogRow(id="r1", at=AT, text="Deploys go to hel1-04."), LogRow(id="r2", at=AT, by="tool", text="It\nfailed.")]
    return Submission(name, log, [KeptRow(f"mem_{name}", text) for text in left])


def asked(model: ModelServer, *submissions: Submission) -> Judgement:
    """Have them judged by the scripted model."""
    return judge("a-judge", {"ESKER_LLM_BASE_URL": model.url}, submissions, Progress(disable=True))


def test_a_judge_sees_the_log_and_the_rows_but_no_gold(model: ModelServer) -> None:
    model.say(marks(4))
    judged = asked(model, submission("one", "Deploys go\nto hel1-04."))
    assert judged.marks["one"].scores() == {"retention": 4, "no_invention": 5, "usefulness": 4}
    assert model.prompt() == (
        "Log:\nr1 2026-03-04 09:00 user: Deploys go to hel1-04.\nr2 2026-03-04 09:00 tool: It failed.\n\n"
        "Rows that are left:\n1. Deploys go to hel1-04."
    )
    assert model.asked[0]["model"] == "a-judge"
    assert judged.tokens == 120


def test_marks_out_of_range_are_sent_back_and_a_failure_is_recorded(model: ModelServer) -> None:
    model.say(marks(9), marks(2), ScriptedAnswer("no", status=400), marks(3))
    judged = asked(model, submission("one", "x"), submission("two", "x"), submission("three", "x"))
    assert {name: its.retention.score for name, its in judged.marks.items()} == {"one": 2, "three": 3}
    assert judged.failed.keys() == {"two"}


def test_without_a_model_there_is_no_judge() -> None:
    with pytest.raises(InvalidInput, match="No model is configured to judge"):
        judge("a-judge", {}, [], Progress(disable=True))


@pytest.mark.parametrize(
    ("first", "second", "agreement"),
    [
        ([1, 2, 3], [10, 20, 400], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        # Ranks 1 2 3 4 5 against 2 1 4 3 5: 1 - 6 · 4 / (5 · 24).
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 0.8),
        # Ties share 1.5: the correlation of (1.5, 1.5, 3) with (1, 2, 3) is the root of 3/4.
        ([7, 7, 9], [1, 2, 3], 0.75**0.5),
        # Ranks 1.5 1.5 3 4 against 1 2 3 4: 4.5 over the root of 4.5 · 5.
        ([7, 7, 8, 9], [1, 2, 3, 4], 0.9**0.5),
        ([1, 2], [1, 2], None),
        ([1, 2, 3], [4, 4, 4], None),
    ],
)
def test_agreement_is_the_correlation_of_ranks(
    first: list[float], second: list[float], agreement: float | None
) -> None:
    assert spearman(first, second) == (None if agreement is None else pytest.approx(agreement))


def test_agreement_is_computed_over_the_common_cases_only() -> None:
    judged = Judgement(
        "a-judge", {name: Grades.model_validate(marks(score)) for name, score in zip("abc", (1, 3, 5), strict=True)}
    )
    told = judged.document({"a": 0.9, "b": 0.5, "c": 0.1, "d": 1.0})
    assert told["agreement"] == {"of": "retention", "spearman": pytest.approx(-1.0), "cases": 3}
    assert told["means"] == {"retention": 3.0, "no_invention": 5.0, "usefulness": 4.0}
    assert judged.document({})["agreement"]["spearman"] is None


def test_an_opinion_changes_no_figure(
    loop: BlockingPortal,
    model: ModelServer,
    cluster: Cluster,
    meaning: Meaning,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    serve_here(loop, cluster, meaning, monkeypatch)
    cases, tape = first_cases(tmp_path, "reflection", 2), tmp_path / "tape"
    reflection(cases, questions=False, json_file=tmp_path / "alone.json")
    assert "Opinion" not in capsys.readouterr().out
    monkeypatch.setenv("ESKER_LLM_BASE_URL", model.url)
    model.say(marks(1), marks(5))
    reflection(cases, questions=False, judge="a-judge", record=tape, json_file=tmp_path / "judged.json")
    assert "Opinion of a-judge on 2 cases. No figure above depends on it" in capsys.readouterr().out
    alone, judged = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("alone", "judged"))
    assert [case["figures"] for case in alone["cases"]] == [case["figures"] for case in judged["cases"]]
    assert alone["figures"].keys() == judged["figures"].keys()
    assert [its["retention"]["score"] for its in judged["judge"]["cases"].values()] == [1, 5]
    monkeypatch.delenv("ESKER_LLM_BASE_URL")
    reflection(cases, questions=False, judge="a-judge", replay=tape, json_file=tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["judge"]["cases"] == judged["judge"]["cases"]
    assert len(model.asked) == 2
    capsys.readouterr()
    show_case(tmp_path / "judged.json", judged["cases"][0]["id"])
    assert "  retention: 1 of 5: retention is 1." in capsys.readouterr().out.splitlines()


# Faults --------------------------------------------------------------------------------------------------------------


def test_a_judge_that_notices_one_fault_is_reported_for_that_fault_only(
    model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [case] = read_cases(cases := first_cases(tmp_path, "reflection", 1), ReflectionCase)
    there = len(faultless(case))

    def counting(body: dict[str, Any]) -> ScriptedAnswer:
        """Judge by the number of rows."""
        left = body["messages"][0]["content"][0]["text"].partition("Rows that are left:\n")[2].splitlines()
        return ScriptedAnswer(json.dumps(marks(5 if len(left) >= there else 2)))

    model.say(counting)
    monkeypatch.setenv("ESKER_LLM_BASE_URL", model.url)
    mutations(cases, judge="a-judge", json_file=tmp_path / "told.json")
    faults = json.loads((tmp_path / "told.json").read_text())["judge"]["faults"]
    assert {fault for fault, row in faults.items() if row["any"]} == {"a fact is dropped"}
    assert faults["a fact is dropped"] == {"cases": 1, "any": 1, "retention": 1, "no_invention": 0, "usefulness": 0}
    assert len(model.asked) == len(faults) + 1
    assert "No score above depends on it" in capsys.readouterr().out


def test_every_fault_is_judged_against_the_same_case_without_it() -> None:
    cases = read_cases(OWN / "reflection.jsonl", ReflectionCase)[:3]
    names = [each.name for each in planted(cases)]
    assert [f"{case.case}/" for case in cases] == [name for name in names if name.endswith("/")]
    assert {name.split("/")[1] for name in names} <= {"", *MUTATIONS}
    alone = Judgement("a-judge", {"x/a fact is dropped": Grades.model_validate(marks(1))})
    assert noticed(alone) == {}
