"""The fit of the weights of evidence: it finds those by which answers were chosen, and tests on other questions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from esker.server.core.recall import evidence_weights as weights_file
from esker.server.core.recall.evidence_weights import EvidenceWeights
from evals.ranking import command
from evals.ranking.evidence import FEATURES, AskedQuestion
from evals.ranking.fitting import by_set, evidence_of, fitted, folds, held_out, quality

TRUE = np.array([1.0, 0.1, 0.4])


def asked(number: int, seed: int = 1) -> list[AskedQuestion]:
    """Return questions in two sets, of which the right candidate has most evidence by the true weights."""
    draw = np.random.default_rng(seed)
    found: list[AskedQuestion] = []
    for place in range(number):
        features = np.abs(draw.normal(size=(20, len(FEATURES)))) * [0.3, 2.0, 0.3]
        best = int(np.argmax(features @ TRUE + draw.normal(size=20) * 0.02))
        turns = tuple(f"t{turn}" for turn in range(20))
        name, right = f"set {place % 2}", np.arange(20) == best
        found.append(AskedQuestion(name, f"{name}/{place // 4}", (turns[best],), turns, right, features))
    return found


def test_the_fit_finds_the_weights_by_which_answers_were_chosen() -> None:
    assert fitted(asked(200)) == pytest.approx(TRUE, rel=0.2)


def test_evidence_that_speaks_against_an_answer_gets_no_weight() -> None:
    turned = [
        AskedQuestion(one.data, one.group, one.evidence, one.turns, one.right, one.features * [1, 1, -1])
        for one in asked(60)
    ]
    weights = fitted(turned)
    assert weights[2] == 0.0
    assert (weights[:2] > 0).all()


def test_neighbours_count_at_most_as_much_as_the_text_itself() -> None:
    features = np.array([[0.2, 0.0, 9.0], [0.0, -1.0, 9.0]])
    one = AskedQuestion("set", "group", ("a",), ("a", "b"), np.array([True, False]), features)
    assert evidence_of(one, TRUE) == pytest.approx([0.4, -0.1])


def test_questions_of_one_conversation_are_in_one_fold_and_each_set_is_spread() -> None:
    questions = asked(80)
    parts = folds(questions, 5, seed=0)
    assert parts == folds(questions, 5, seed=0)
    assert parts.keys() == {one.group for one in questions}
    for data in ("set 0", "set 1"):
        assert [sum(part == fold for group, part in parts.items() if group.startswith(data)) for fold in range(5)] == (
            [4] * 5
        )


def test_held_out_weights_do_not_depend_on_the_questions_of_their_part() -> None:
    questions = asked(40)
    sets = by_set(questions)
    other_weights = np.array([1.0, 0.5, 0.0])
    misleading = [
        replace(one, right=np.arange(20) == np.argmax(one.features @ other_weights)) if sets[one.group] == 1 else one
        for one in questions
    ]
    assert held_out(misleading, sets)[1] == pytest.approx(held_out(questions, sets)[1])
    assert held_out(misleading, sets)[0] != pytest.approx(held_out(questions, sets)[0])


def test_the_quality_is_that_of_the_order_by_the_weights() -> None:
    found = quality(asked(100), lambda _: TRUE)
    assert found.mrr > 0.8
    assert found.mrr > quality(asked(100), lambda _: np.array([0.0, 0.0, 1.0])).mrr
    assert found.recall >= found.ndcg


def test_writing_replaces_the_numbers_and_keeps_the_comments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = weights_file.FILE.read_text(encoding="utf-8")
    file = tmp_path / "weights.toml"
    file.write_text(before, encoding="utf-8")
    monkeypatch.setattr(command, "FILE", file)
    command.write_weights(EvidenceWeights(0.1234, 0.25))
    assert weights_file.read_weights(file) == EvidenceWeights(0.1234, 0.25)
    comments = [line for line in before.splitlines() if line.startswith("#")]
    assert [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")] == comments
