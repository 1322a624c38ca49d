"""Relevance: more evidence is never less, chance is not evidence, and a score means something."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.recall.relevance import Scale, Signals, score, share_told, told_among
from esker.server.core.records import Calibration

CALIBRATIONS = st.builds(Calibration, mean=st.floats(-0.2, 0.8), deviation=st.floats(0.01, 0.3), weight=st.floats(0, 1))
SCALES = st.builds(Scale, calibration=CALIBRATIONS, texts=st.integers(1, 10**7))
KEYWORDS = st.floats(0, 3)
COSINES = st.floats(-1, 1)
TOLD = st.floats(0, 1)
WEIGHTS = st.floats(0.01, 1e3)
SIGNALS = st.builds(Signals, keyword=KEYWORDS, cosine=st.none() | COSINES)
ENGLISH = Calibration(0.038, 0.077, 1.0)


@given(SCALES, KEYWORDS, KEYWORDS, st.none() | COSINES)
def test_more_of_the_words_is_never_less(scale: Scale, one: float, other: float, cosine: float | None) -> None:
    less, more = sorted((one, other))
    assert scale.relevance(Signals(less, cosine)) <= scale.relevance(Signals(more, cosine))


@given(SCALES, KEYWORDS, COSINES, COSINES)
def test_nearer_is_never_less(scale: Scale, keyword: float, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert scale.relevance(Signals(keyword, less)) <= scale.relevance(Signals(keyword, more))


@given(SCALES, SIGNALS, st.floats(0, 5), st.floats(0, 5))
def test_more_around_a_text_is_never_less(scale: Scale, own: Signals, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert scale.relevance(own, less) <= scale.relevance(own, more)


@given(SCALES, SIGNALS, st.lists(SIGNALS, max_size=4), st.integers(0, 10_000))
def test_what_stands_around_a_text_counts_at_most_as_much_as_the_text(
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
def test_no_neighbour_makes_an_answer_of_what_says_nothing(scale: Scale, around: float) -> None:
    assert scale.relevance(Signals(0.0, None), around) == 0.0


@given(CALIBRATIONS, SIGNALS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_among_more_texts_the_same_evidence_is_worth_no_more(
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


def test_words_alone_are_enough_from_the_same_share_on_however_many_texts_there_are() -> None:
    for texts in (1, 10**6):
        scale = Scale(ENGLISH, texts, by_meaning=False)
        assert scale.relevance(Signals(0.071, None)) > 1.0
        assert scale.relevance(Signals(0.069, None)) < 1.0


def test_a_model_that_may_say_nothing_changes_nothing() -> None:
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
def test_scores_are_in_the_order_of_relevance(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert score(less) <= score(more)


def test_a_score_of_two_and_of_three_floors_is_what_the_documentation_says() -> None:
    assert [score(floors) for floors in (2.0, 3.0)] == pytest.approx([0.88, 0.98], abs=0.005)


@given(SCALES, SIGNALS)
def test_the_relevance_of_anything_can_be_scored(scale: Scale, signals: Signals) -> None:
    assert 0.0 <= score(scale.relevance(signals)) <= 1.0


def test_what_has_no_vector_yet_is_an_answer_but_none_that_pushes_others_aside() -> None:
    scale = Scale(ENGLISH, 100)
    assert scale.relevance(Signals(0.08, None)) == 1.0
    assert scale.relevance(Signals(0.04, None)) < 1.0
    with_vector = scale.relevance(Signals(0.4, 0.3))
    assert 1.0 < scale.relevance(Signals(0.4, None)) < with_vector


def test_what_holds_an_identifier_of_the_query_is_an_answer_and_stands_before_what_does_not() -> None:
    scale = Scale(Calibration(0.04, 0.08, 1.0), 20_000)
    assert scale.relevance(Signals(0.1, 0.04)) < 1.0
    assert scale.relevance(Signals(0.1, 0.04, named=True)) > 1.0
    assert scale.relevance(Signals(0.1, 0.2, named=True)) > scale.relevance(Signals(0.1, 0.2))


# Words that nobody has ever said -------------------------------------------------------------------------------------


@given(WEIGHTS, WEIGHTS)
def test_while_known_words_weigh_as_much_as_unheard_ones_they_count_in_full(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert share_told(more, less) == share_told(more, 0.0) == 1.0


@given(WEIGHTS, WEIGHTS, WEIGHTS)
def test_the_more_weight_unheard_words_have_the_less_known_ones_count(known: float, one: float, other: float) -> None:
    few, many = sorted((one, other))
    assert 0.0 < share_told(known, many) <= share_told(known, few) <= 1.0
    less, more = sorted((one, other))
    assert share_told(less, known) <= share_told(more, known)


@given(told=st.floats(0.01, 1.0), few=st.integers(1, 500), more=st.integers(1, 500))
def test_the_fewer_texts_a_pool_has_the_less_its_unheard_words_tell(told: float, few: int, more: int) -> None:
    few, more = sorted((few, more))
    assert told <= told_among(told, more) <= told_among(told, few) <= 1.0


def test_a_pool_of_one_row_answers_ordinary_questions_and_one_of_many_no_made_up_ones() -> None:
    told = share_told(3.7, 2 * 8.3)
    assert told_among(told, 1) > 0.95
    assert told_among(told, 1_000) == told


def test_one_common_word_is_no_answer_to_a_question_about_two_unheard_things_and_a_rare_one_is() -> None:
    # Among 2,000 parts of texts: what is unheard of, what stands in fifty parts, and what stands in one.
    unheard, common, rare = 8.3, 3.7, 7.2
    for known, is_answer in ((common, False), (rare, True)):
        share = known / (known + 2 * unheard)
        scale = Scale(ENGLISH, 2_000, by_meaning=False, told=share_told(known, 2 * unheard))
        assert (scale.relevance(Signals(share, None)) >= 1.0) == is_answer


@given(SCALES, SIGNALS, st.floats(0, 5), TOLD, TOLD)
def test_unheard_words_never_make_more_of_an_answer(
    scale: Scale, own: Signals, around: float, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    found = [replace(scale, told=told).relevance(own, around) for told in (less, more)]
    assert found[0] <= found[1] + 1e-9


@given(SCALES, COSINES, TOLD)
def test_what_is_found_by_meaning_counts_the_same_whatever_words_are_unheard(
    scale: Scale, cosine: float, told: float
) -> None:
    found = Signals(0.0, cosine)
    assert replace(scale, told=told).relevance(found) == scale.relevance(found)


@given(st.integers(1, 10**6), KEYWORDS, COSINES, TOLD)
def test_beside_a_model_that_knows_the_language_words_count_in_full(
    texts: int, keyword: float, cosine: float, told: float
) -> None:
    found = Signals(keyword, cosine)
    assert Scale(ENGLISH, texts, told=told).relevance(found) == Scale(ENGLISH, texts).relevance(found)


def test_the_less_a_model_knows_of_a_language_the_more_unheard_words_weigh() -> None:
    def left(weight: float, *, by_meaning: bool = True) -> float:
        scale = Scale(Calibration(0.3, 0.1, weight), 1_000, by_meaning=by_meaning)
        found = Signals(0.3, 0.3)
        return replace(scale, told=0.1).relevance(found) / scale.relevance(found)

    assert left(1.0) == 1.0 > left(0.5) > left(0.0) == pytest.approx(0.1)
    assert left(1.0, by_meaning=False) == pytest.approx(0.1)


def test_what_has_no_vector_yet_is_no_answer_by_one_common_word_beside_unheard_ones() -> None:
    found = Signals(0.18, None)
    assert Scale(ENGLISH, 1_000).relevance(found) == 1.0
    assert Scale(ENGLISH, 1_000, told=0.1).relevance(found) < 1.0
