"""The figures of retrieval, against results calculated by hand and properties that must hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.retrieval.metrics import (
    Abstention,
    abstention,
    all_found,
    first_ranks,
    found_in_turns,
    found_within,
    mean,
    ndcg,
    percentile,
    precision,
    recall,
    reciprocal_rank,
)

turns = st.sampled_from("abcdefgh")
hits = st.lists(st.frozensets(turns, max_size=3), max_size=12)
evidence_sets = st.frozensets(turns, min_size=1)
depths = st.integers(min_value=1, max_value=15)

# By hand: a is found at rank 2, b and c by one hit at rank 3, d never; the fourth hit has a again, which adds nothing.
COVERS = [{"x"}, {"a"}, {"b", "c"}, {"a"}]
EVIDENCE = ["a", "b", "c", "d"]


def test_a_turn_counts_at_the_first_hit_that_covers_it() -> None:
    assert first_ranks(COVERS, EVIDENCE) == {"a": 2, "b": 3, "c": 3}


@pytest.mark.parametrize(("k", "expected"), [(1, 0.0), (2, 0.25), (3, 0.75), (10, 0.75)])
def test_recall_is_the_share_of_the_evidence(k: int, expected: float) -> None:
    assert recall(COVERS, EVIDENCE, k) == expected


def test_all_found_needs_all_evidence_within_the_depth() -> None:
    assert all_found(COVERS, ["a", "b", "c"], 3) == 1
    assert all_found(COVERS, ["a", "b", "c"], 2) == 0
    assert all_found(COVERS, EVIDENCE, 10) == 0


def test_a_hit_with_two_turns_counts_as_two_places() -> None:
    # Places: x, a, b, c, nothing. Gains at 2, 3 and 4: 1/log2(3) + 1/log2(4) + 1/log2(5) = 0.63093 + 0.5 + 0.43068.
    # Ideally four turns are at places 1 to 4: 1 + 0.63093 + 0.5 + 0.43068 = 2.56161.
    assert ndcg(COVERS, EVIDENCE, 10) == pytest.approx(1.56161 / 2.56161, abs=1e-5)
    # At depth 3: 0.63093 + 0.5 of the 1 + 0.63093 + 0.5 that three turns can gain.
    assert ndcg(COVERS, EVIDENCE, 3) == pytest.approx(1.13093 / 2.13093, abs=1e-5)


def test_one_hit_that_covers_all_evidence_has_an_ndcg_of_1() -> None:
    assert ndcg([{"a", "b", "c", "x"}], ["a", "b", "c"], 10) == 1
    # Part of the evidence has less: 5 of 20 turns at the first five of ten places that can gain.
    part = sum(1 / math.log2(p + 1) for p in range(1, 6)) / sum(1 / math.log2(p + 1) for p in range(1, 11))
    many = [str(n) for n in range(20)]
    assert ndcg([set(many[:5])], many, 10) == pytest.approx(part)


def test_the_reciprocal_rank_is_that_of_the_first_hit_with_evidence() -> None:
    assert reciprocal_rank(COVERS, EVIDENCE) == 0.5
    assert reciprocal_rank(COVERS, ["c"]) == pytest.approx(1 / 3)
    assert reciprocal_rank(COVERS, ["d"]) == 0
    assert reciprocal_rank([], ["d"]) == 0


@pytest.mark.parametrize(("budget", "expected"), [(99, 0.0), (100, 0.0), (109, 0.0), (110, 0.25), (999, 0.75)])
def test_a_budget_pays_for_the_first_hits_that_fit_into_it_together(budget: int, expected: float) -> None:
    # The fourth hit does not fit, so the fifth, which would, is not read either.
    assert found_within([*COVERS, {"d"}], [100, 10, 20, 900, 1], EVIDENCE, budget) == expected


@pytest.mark.parametrize(("n", "expected"), [(1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75)])
def test_a_hit_counts_as_many_turns_as_it_is_the_first_to_cover(n: int, expected: float) -> None:
    assert found_in_turns(["x", "a", "b", "c"], EVIDENCE, n) == expected


def test_precision_is_the_share_of_the_hits_with_evidence() -> None:
    assert precision(COVERS, EVIDENCE) == 3 / 4
    assert precision([], EVIDENCE) == 0


def test_abstention_is_counted_as_by_hand() -> None:
    # Three abstentions, two of them right; three unanswerable questions and four answerable ones.
    answers = [(False, True), (False, True), (True, True), (False, False), (True, False), (True, False), (True, False)]
    assert abstention(answers) == Abstention(precision=2 / 3, recall=2 / 3, wrongly=1 / 4)


def test_abstention_without_cases_has_no_figure() -> None:
    assert abstention([(True, False)]) == Abstention(precision=None, recall=None, wrongly=0)
    assert abstention([(False, False)]) == Abstention(precision=None, recall=0, wrongly=None)


def test_percentiles_are_measured_values() -> None:
    assert percentile([10, 1, 2, 3, 4, 5, 6, 7, 8, 9], 0.5) == 5
    assert percentile([10, 1, 2, 3, 4, 5, 6, 7, 8, 9], 0.95) == 10
    assert percentile([7], 0.5) == 7
    assert percentile([], 0.5) is None
    assert mean([]) is None


@given(hits, evidence_sets, depths)
def test_every_figure_is_a_share_and_grows_with_the_depth(
    covers: list[frozenset[str]], evidence: frozenset[str], k: int
) -> None:
    for figure in (recall, all_found, ndcg):
        assert 0 <= figure(covers, evidence, k) <= 1 + 1e-9
    assert recall(covers, evidence, k) <= recall(covers, evidence, k + 1)
    assert all_found(covers, evidence, k) <= recall(covers, evidence, k)
    assert (reciprocal_rank(covers, evidence) > 0) == (recall(covers, evidence, len(covers) + 1) > 0)


@given(hits, evidence_sets, depths)
def test_covered_turns_that_are_not_evidence_are_ignored(
    covers: list[frozenset[str]], evidence: frozenset[str], k: int
) -> None:
    bare = [covered & evidence for covered in covers]
    for figure in (recall, all_found, ndcg):
        assert figure(covers, evidence, k) == figure(bare, evidence, k)


@given(hits, evidence_sets, depths)
def test_an_irrelevant_hit_in_front_never_raises_a_score(
    covers: list[frozenset[str]], evidence: frozenset[str], k: int
) -> None:
    for figure in (recall, all_found, ndcg):
        assert figure([frozenset(), *covers], evidence, k) <= figure(covers, evidence, k) + 1e-9
    assert reciprocal_rank([frozenset(), *covers], evidence) <= reciprocal_rank(covers, evidence)


@given(st.lists(turns, unique=True, max_size=8), evidence_sets, depths)
def test_with_one_turn_per_hit_it_is_the_usual_ndcg(ranking: list[str], evidence: frozenset[str], k: int) -> None:
    gained = sum(1 / math.log2(place + 2) for place, turn in enumerate(ranking[:k]) if turn in evidence)
    ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(evidence))))
    assert ndcg([{turn} for turn in ranking], evidence, k) == pytest.approx(gained / ideal)


@given(evidence_sets)
def test_evidence_in_front_of_all_else_scores_1(evidence: frozenset[str]) -> None:
    covers = [{turn} for turn in sorted(evidence)]
    assert ndcg(covers, evidence, 10) == pytest.approx(1)
    assert all_found(covers, evidence, len(evidence)) == 1
    assert reciprocal_rank(covers, evidence) == 1
