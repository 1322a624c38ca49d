"""Relevance: more evidence is never less, chance is not evidence, and a score means something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.core.calibration import Calibration
from server.core.relevance import Scale, Signals, score

CALIBRATIONS = st.builds(Calibration, mean=st.floats(-0.2, 0.8), deviation=st.floats(0.01, 0.3), weight=st.floats(0, 1))
SCALES = st.builds(Scale, calibration=CALIBRATIONS, texts=st.integers(1, 10**7))
KEYWORDS = st.floats(0, 3)
COSINES = st.floats(-1, 1)
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
