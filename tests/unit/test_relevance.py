"""Relevance: more evidence never lowers it, chance is not evidence, and a score has a fixed meaning."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.recall.evidence_weights import evidence_weights
from esker.server.core.recall.relevance import Scale, Signals, score, word_factor, word_factor_in
from esker.server.core.records import Calibration

CALIBRATIONS = st.builds(Calibration, mean=st.floats(-0.2, 0.8), deviation=st.floats(0.01, 0.3), weight=st.floats(0, 1))
SCALES = st.builds(Scale, calibration=CALIBRATIONS, texts=st.integers(1, 10**7))
KEYWORDS = st.floats(0, 3)
COSINES = st.floats(-1, 1)
WORD_FACTORS = st.floats(0, 1)
WEIGHTS = st.floats(0.01, 1e3)
SIGNALS = st.builds(Signals, keyword=KEYWORDS, cosine=st.none() | COSINES)
ENGLISH = Calibration(0.038, 0.077, 1.0)


@given(SCALES, KEYWORDS, KEYWORDS, st.none() | COSINES)
def test_more_keyword_evidence_never_lowers_relevance(
    scale: Scale, one: float, other: float, cosine: float | None
) -> None:
    less, more = sorted((one, other))
    assert scale.relevance(Signals(less, cosine)) <= scale.relevance(Signals(more, cosine))


@given(SCALES, KEYWORDS, COSINES, COSINES)
def test_a_higher_cosine_never_lowers_relevance(scale: Scale, keyword: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert scale.relevance(Signals(keyword, less)) <= scale.relevance(Signals(keyword, more))


@given(SCALES, SIGNALS, st.floats(0, 5), st.floats(0, 5))
def test_more_evidence_from_neighbours_never_lowers_relevance(
    scale: Scale, own: Signals, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert scale.relevance(own, less) <= scale.relevance(own, more)


@given(SCALES, SIGNALS, st.lists(SIGNALS, max_size=4), st.integers(0, 10_000))
def test_neighbours_count_at_most_as_much_as_the_text_itself(
    scale: Scale, own: Signals, neighbours: list[Signals], tokens: int
) -> None:
    around = scale.around(neighbours, tokens)
    assert around >= 0.0
    alone = scale.relevance(own)
    assert scale.relevance(own, around) <= max(alone, 2 * alone) + 1e-9


def test_the_longer_a_text_is_the_less_its_neighbours_count_for_it() -> None:
    scale = Scale(Calibration(0.04, 0.08, 1.0), 100)
    beside = [Signals(0.4, 0.5), Signals(0.0, 0.6)]
    counted = [scale.around(beside, tokens) for tokens in (5, 50, 100, 5_000)]
    assert counted[0] == counted[1] == pytest.approx(2 * counted[2])
    assert 0 < counted[3] == pytest.approx(counted[0] / 100)


@given(SCALES, st.floats(0, 100))
def test_neighbours_add_nothing_to_a_text_without_evidence(scale: Scale, around: float) -> None:
    assert scale.relevance(Signals(0.0, None), around) == 0.0


@given(CALIBRATIONS, SIGNALS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_same_evidence_is_never_worth_more_among_more_texts(
    calibration: Calibration, signals: Signals, one: int, other: int
) -> None:
    few, many = sorted((one, other))
    there = [Scale(calibration, texts).relevance(signals) for texts in (few, many)]
    assert abs(there[1]) <= abs(there[0]) + 1e-9


def test_the_floor_grows_with_the_number_of_texts_but_slowly() -> None:
    near = Signals(0.0, 0.038 + 0.077 * 4)
    found = [Scale(ENGLISH, texts).relevance(near) for texts in (10, 1_000, 100_000, 10_000_000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1.0 > found[-1]
    assert found[0] < 4 * found[-1]


def test_without_vectors_the_floor_of_keyword_evidence_is_the_same_for_any_number_of_texts() -> None:
    for texts in (1, 10**6):
        scale = Scale(ENGLISH, texts, by_meaning=False)
        assert scale.relevance(Signals(0.071, None)) > 1.0
        assert scale.relevance(Signals(0.069, None)) < 1.0


def test_a_model_with_weight_zero_changes_nothing() -> None:
    blind = Scale(Calibration(0.5, 0.08, 0.0), 1_000)
    assert (
        blind.relevance(Signals(0.1, 0.99)) == blind.relevance(Signals(0.1, None)) == blind.relevance(Signals(0.1, 0))
    )


@given(st.floats(-8, 17))
def test_a_score_is_between_0_and_1_and_a_half_at_the_floor(relevance: float) -> None:
    assert 0.0 < score(relevance) < 1.0
    assert score(1.0) == 0.5
    assert (score(relevance) > 0.5) == (relevance > 1.0)


@given(st.floats(-8, 8), st.floats(-8, 8))
def test_scores_never_fall_when_relevance_rises(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert score(less) <= score(more)


def test_scores_at_two_and_three_floors_are_as_documented() -> None:
    assert [score(floors) for floors in (2.0, 3.0)] == pytest.approx([0.88, 0.98], abs=0.005)


@given(SCALES, st.lists(KEYWORDS, min_size=1), KEYWORDS, WORD_FACTORS)
def test_without_any_vector_relevance_is_that_of_a_keyword_search(
    scale: Scale, others: list[float], keyword: float, factor: float
) -> None:
    scale = replace(scale, word_factor=factor)
    by_words = replace(scale, by_meaning=False)
    unknown = scale.knowing([Signals(0.1, None), *(Signals(other, None) for other in others)])
    assert unknown.relevance(Signals(keyword, None)) == pytest.approx(by_words.relevance(Signals(keyword, None)))


@given(st.integers(1, 9), st.integers(1, 9), st.floats(0.01, 1), st.floats(-0.2, 0.9))
def test_with_equal_words_a_text_without_a_vector_ranks_like_the_usual_one_with_it(
    with_vector: int, without: int, keyword: float, cosine: float
) -> None:
    found = [Signals(0.2, cosine)] * with_vector + [Signals(0.2, None)] * without
    scale = Scale(ENGLISH, 100).knowing(found)
    usual = max(cosine, ENGLISH.mean)
    missing, known = (scale.relevance(Signals(keyword, each)) for each in (None, usual))
    assert missing >= known or missing == pytest.approx(known)


def test_meaning_counts_by_the_share_of_texts_that_have_a_vector() -> None:
    found = [Signals(0.2, 0.3), Signals(0.2, 0.3), Signals(0.2, None), Signals(0.2, None), Signals(0.0, 0.4)]

    def worth(scale: Scale) -> float:
        """Return what a cosine counts for each unit of words."""
        return scale.relevance(Signals(0.0, 0.5)) / scale.relevance(Signals(0.3, ENGLISH.mean))

    full = Scale(ENGLISH, 100)
    assert worth(full.knowing(found)) == pytest.approx(worth(full) / 2)
    assert full.knowing(found[:2]) == full


@given(SCALES, SIGNALS)
def test_the_relevance_of_anything_can_be_scored(scale: Scale, signals: Signals) -> None:
    assert 0.0 <= score(scale.relevance(signals)) <= 1.0


def test_a_text_without_a_vector_can_be_an_answer_but_never_outranks_one_with_both() -> None:
    scale = Scale(ENGLISH, 100)
    assert scale.relevance(Signals(0.08, None)) == 1.0
    assert scale.relevance(Signals(0.04, None)) < 1.0
    with_vector = scale.relevance(Signals(0.4, 0.3))
    assert 1.0 < scale.relevance(Signals(0.4, None)) < with_vector


def test_a_text_with_a_rare_identifier_of_the_query_is_an_answer_and_ranks_higher() -> None:
    scale = Scale(Calibration(0.04, 0.08, 1.0), 20_000)
    assert scale.relevance(Signals(0.1, 0.04)) < 1.0
    assert scale.relevance(Signals(0.1, 0.04, named=True)) > 1.0
    assert scale.relevance(Signals(0.1, 0.2, named=True)) > scale.relevance(Signals(0.1, 0.2))


# Words that occur nowhere in the pool ------------------------------------------------------------------------------


@given(WEIGHTS, WEIGHTS)
def test_known_words_that_weigh_as_much_as_unknown_ones_count_in_full(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert word_factor(more, less) == word_factor(more, 0.0) == 1.0


@given(WEIGHTS, WEIGHTS, WEIGHTS)
def test_known_words_count_less_the_more_unknown_words_weigh(known: float, one: float, other: float) -> None:
    few, many = sorted((one, other))
    assert 0.0 < word_factor(known, many) <= word_factor(known, few) <= 1.0
    less, more = sorted((one, other))
    assert word_factor(less, known) <= word_factor(more, known)


@given(factor=st.floats(0.01, 1.0), few=st.integers(1, 500), more=st.integers(1, 500))
def test_unknown_words_count_less_in_a_smaller_pool(factor: float, few: int, more: int) -> None:
    few, more = sorted((few, more))
    assert factor <= word_factor_in(factor, more) <= word_factor_in(factor, few) <= 1.0


def test_a_pool_of_one_row_answers_ordinary_questions_and_a_large_one_rejects_made_up_ones() -> None:
    factor = word_factor(3.7, 2 * 8.3)
    assert word_factor_in(factor, 1) > 0.95
    assert word_factor_in(factor, 1_000) == factor


def test_beside_two_unknown_words_a_rare_word_is_enough_and_a_common_one_is_not() -> None:
    # Among 2,000 parts: a word in none of them, a word in fifty, and a word in one.
    unknown, common, rare = 8.3, 3.7, 7.2
    for known, is_answer in ((common, False), (rare, True)):
        share = known / (known + 2 * unknown)
        scale = Scale(ENGLISH, 2_000, by_meaning=False, word_factor=word_factor(known, 2 * unknown))
        assert (scale.relevance(Signals(share, None)) >= 1.0) == is_answer


@given(SCALES, SIGNALS, st.floats(0, 5), WORD_FACTORS, WORD_FACTORS)
def test_unknown_words_never_raise_relevance(
    scale: Scale, own: Signals, around: float, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    found = [replace(scale, word_factor=factor).relevance(own, around) for factor in (less, more)]
    assert found[0] <= found[1] + 1e-9


@given(SCALES, COSINES, WORD_FACTORS)
def test_unknown_words_do_not_change_vector_evidence(scale: Scale, cosine: float, factor: float) -> None:
    found = Signals(0.0, cosine)
    assert replace(scale, word_factor=factor).relevance(found) == scale.relevance(found)


@given(st.integers(1, 10**6), KEYWORDS, COSINES, WORD_FACTORS)
def test_words_count_in_full_beside_a_model_that_knows_the_language(
    texts: int, keyword: float, cosine: float, factor: float
) -> None:
    found = Signals(keyword, cosine)
    assert Scale(ENGLISH, texts, word_factor=factor).relevance(found) == Scale(ENGLISH, texts).relevance(found)


def test_unknown_words_matter_more_the_less_a_model_knows_the_language() -> None:
    def left(weight: float, *, by_meaning: bool = True) -> float:
        scale = Scale(Calibration(0.3, 0.1, weight), 1_000, by_meaning=by_meaning)
        found = Signals(0.3, 0.3)
        return replace(scale, word_factor=0.1).relevance(found) / scale.relevance(found)

    assert left(1.0) == 1.0 > left(0.5) > left(0.0) == pytest.approx(0.1)
    assert left(1.0, by_meaning=False) == pytest.approx(0.1)


def test_without_a_vector_one_common_word_beside_unknown_ones_is_not_an_answer() -> None:
    found = Signals(0.18, None)
    assert Scale(ENGLISH, 1_000).relevance(found) == 1.0
    assert Scale(ENGLISH, 1_000, word_factor=0.1).relevance(found) < 1.0


# Documented figures (docs/decisions/ranking.md, calibration.md) -------------------------------------------------------


def test_one_deviation_counts_as_much_as_8_percent_of_the_words() -> None:
    scale = Scale(ENGLISH, 1_000)
    by_meaning = Signals(0.0, ENGLISH.mean + 5 * ENGLISH.deviation)
    by_words = Signals(0.4, ENGLISH.mean)
    assert scale.relevance(by_meaning) == pytest.approx(scale.relevance(by_words))


@pytest.mark.parametrize(("texts", "z_score"), [(1, 2.6), (25, 2.6), (999, 1 + 0.46 * 6.907755), (99_999, 6.295946)])
def test_the_floor_is_the_documented_z_score(texts: int, z_score: float) -> None:
    at_the_floor = Signals(0.0, ENGLISH.mean + z_score * ENGLISH.deviation)
    assert Scale(ENGLISH, texts).relevance(at_the_floor) == pytest.approx(1.0, abs=1e-6)


def test_a_model_whose_right_answers_stand_out_less_has_a_lower_floor_among_few_texts() -> None:
    # Right answers have a z-score of 3 on average instead of 4 or more; 65 % of it is enough.
    weaker, least = Calibration(0.1, 0.07, 2 / 3), 0.65 * 3
    # It begins at 45 %. With two thirds of the weight, it rises by four ninths of what chance demands.
    base, chance = 0.45 * 3, 1 + 0.46 * math.log(10**6 + 1)
    for texts, z_score in ((1, least), (10**6, base + 4 / 9 * (chance - base))):
        at_the_floor = Signals(0.0, weaker.mean + z_score * weaker.deviation)
        assert Scale(weaker, texts).relevance(at_the_floor) == pytest.approx(1.0)


def test_with_a_model_that_knows_nothing_of_a_language_the_floor_is_that_of_words() -> None:
    assert Scale(Calibration(0.5, 0.1, 0.0), 1_000).relevance(Signals(0.07, 0.5)) == pytest.approx(1.0)


def test_a_neighbour_adds_the_share_of_its_words_that_the_file_of_weights_says_and_nothing_of_its_meaning() -> None:
    scale, share = Scale(ENGLISH, 1_000), evidence_weights().neighbour_words
    near = Signals(0.4, ENGLISH.mean + 3 * ENGLISH.deviation)
    assert scale.around([near, Signals(0.0, 0.9)], tokens=50) == pytest.approx(share * 0.4)
    assert scale.around([near], tokens=100) == pytest.approx(share * 0.2)


def test_repeating_the_words_of_a_query_counts_up_to_one_and_a_half_times_them() -> None:
    scale = Scale(ENGLISH, 1_000)
    assert scale.relevance(Signals(1.4, 0.3)) < scale.relevance(Signals(1.5, 0.3)) == scale.relevance(Signals(3.0, 0.3))
