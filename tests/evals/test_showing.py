"""The output of `show` explains a case and its scores."""

from pathlib import Path
from typing import Any

import pytest

from evals.case_files import OWN, AnyCase, read_cases
from evals.observation.cases import ObservationCase
from evals.output import write_json
from evals.pack.cases import PackCase
from evals.poison.cases import PoisonCase
from evals.reflection.cases import ReflectionCase
from evals.reports import CaseResult, document
from evals.scoring.figures import ScoreFigure
from evals.scoring.matching import KeptRow
from evals.showing import show_case

LISTS_OF_WORDS = ("never", "planted", "decoded", "must", "must_not")

CASE = {
    "case": "moved",
    "domain": "infrastructure",
    "language": "en",
    "about": "Deploys moved.",
    "rows": [
        {"id": "r1", "at": "2026-03-02T09:00:00Z", "text": "Deploys go to Fly.io.", "priority": "high"},
        {"id": "r2", "at": "2026-03-04T09:00:00Z", "text": "Deploys go to hel1-04.", "by": "assistant"},
    ],
    "gold": {
        "replaced": [
            {
                "old": [{"fact": "Deploys go to Fly.io.", "exact": ["Fly.io"], "rows": ["r1"]}],
                "new": {"fact": "Deploys go to hel1-04.", "exact": ["hel1-04"], "rows": ["r2"], "ask": "Where to?"},
            }
        ],
        "never": ["Kubernetes"],
    },
}


def shown(case: AnyCase, tmp_path: Path, capsys: pytest.CaptureFixture[str], **result: Any) -> list[str]:
    """Return the lines shown for a case of a run."""
    figures = {"retention": ScoreFigure("retention", 0, 1, ("lost",))}
    write_json(tmp_path / "run.json", document("suite", [CaseResult(case, ("group",), figures, **result)], {}, "cases"))
    show_case(tmp_path / "run.json", case.case)
    return capsys.readouterr().out.splitlines()


def test_a_case_is_shown_with_its_log_and_its_gold(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(
        ReflectionCase.model_validate(CASE),
        tmp_path,
        capsys,
        lines=["lost: it"],
        left=[KeptRow("o1", "Deploys go to hel1-04.", ("r2",))],
    )
    assert lines == [
        "moved (group, en)",
        "Deploys moved.",
        "",
        "Input:",
        "  r1 2026-03-02T09:00:00Z (priority high) Deploys go to Fly.io.",
        "  r2 2026-03-04T09:00:00Z (by assistant) Deploys go to hel1-04.",
        "",
        "Expected:",
        "  replaced: Deploys go to Fly.io. [r1]; verbatim 'Fly.io'",
        "    now: Deploys go to hel1-04. [r2]; verbatim 'hel1-04'; question 'Where to?'",
        "  never (must not be said): Kubernetes",
        "",
        "Figures:",
        "  retention: 0 of 1",
        "",
        "Facts and faults:",
        "  lost: it",
        "",
        "Rows left:",
        "  o1: Deploys go to hel1-04. [r2]",
    ]


@pytest.mark.parametrize(
    ("suite", "model"),
    [("reflection", ReflectionCase), ("observation", ObservationCase), ("pack", PackCase), ("poison", PoisonCase)],
)
def test_all_parts_of_a_case_are_shown(
    suite: str, model: type[AnyCase], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for case in read_cases(OWN / f"{suite}.jsonl", model)[:4]:
        lines = shown(case, tmp_path, capsys)
        for name, words in texts_of(case.model_dump(mode="json")):
            label = f"  {name} (" if name in LISTS_OF_WORDS else ""
            told = "\n".join(line for line in lines if line.startswith(label))
            assert " ".join(words.split())[:300] in told, (case.case, name, words)


def texts_of(value: object, name: str = "") -> list[tuple[str, str]]:
    """Return the texts, facts, questions and lists of words of a case, by their names."""
    match value:
        case dict():
            return [text for key, each in value.items() for text in texts_of(each, str(key))]
        case list():
            return [text for each in value for text in texts_of(each, name)]
        case str() if name in ("about", "text", "fact", "ask", *LISTS_OF_WORDS):
            return [(name, value)]
        case _:
            return []


def test_a_long_message_is_cut_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{**CASE["rows"][0], "text": "Fly.io " * 500}, CASE["rows"][1]]
    lines = shown(ReflectionCase.model_validate(CASE | {"rows": rows}), tmp_path, capsys)
    assert max(map(len, lines)) < 700
    assert any(line.endswith("… (2899 characters more)") for line in lines)
