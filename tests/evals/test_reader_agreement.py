"""The scores agree with a reader of handwritten reflections."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evals.__main__ import app
from evals.case_files import OWN, read_cases
from evals.input import models_of
from evals.reader_agreement import READ, UNSEEN, Agreement, Labelled, agreed
from evals.reflection.cases import ReflectionCase
from evals.scoring.meaning import Meaning


def shares(found: Agreement) -> tuple[float, float]:
    """Return the share of right facts that the scores find right, and of wrong ones that they find wrong."""
    right, wrong = found.right.total(), found.wrong.total()
    return (right - found.alarms.total()) / right, found.noticed.total() / wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "least"),
    [
        (READ, (0.96, 0.88)),  # the scores were developed with these
        (UNSEEN, (0.93, 0.79)),  # and without seeing these
    ],
    ids=["read", "unseen"],
)
def test_the_scores_agree_with_readers(path: Path, least: tuple[float, float], meaning: Meaning) -> None:
    cases = {case.case: case for case in read_cases(OWN / "reflection.jsonl", ReflectionCase)}
    labelled = [one for _, one in models_of(path, Labelled)]
    found = agreed(labelled, cases, meaning)
    assert all(share >= bound for share, bound in zip(shares(found), least, strict=True)), found.differences


def test_a_difference_is_reported_with_its_place_and_a_label_of_an_unknown_fact_is_refused(tmp_path: Path) -> None:
    one = {"case": "deploy-target-moved", "kind": "bad", "rows": ["Nothing was said."], "labels": []}
    file = tmp_path / "made.jsonl"
    file.write_text(json.dumps(one), encoding="utf-8")
    told = CliRunner().invoke(app, ["agreement", str(file), "--differences", "--json", str(tmp_path / "out.json")])
    assert "deploy-target-moved, bad, keep" in told.output
    assert json.loads((tmp_path / "out.json").read_text())["made.jsonl"]["right"]["keep"] == {"of": 2, "same": 0}
    label = {"fact": "Whales sing.", "fault": "dropped", "why": "It is not there."}
    file.write_text(json.dumps(one | {"labels": [label]}), encoding="utf-8")
    refused = CliRunner().invoke(app, ["agreement", str(file)])
    assert "the gold has no fact 'Whales sing.'" in str(refused.exception)
