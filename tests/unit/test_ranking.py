"""The order of a pack, and what breaks ties."""

import math
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.ranking import HALF_LIFE, KIND_BIAS, last_use, pack_score, prior
from esker.server.core.records import KINDS, PRIORITIES, Kind, Priority
from tests.support.records import NOON

ranked_kinds = st.sampled_from(sorted(KIND_BIAS))
priorities = st.sampled_from(PRIORITIES)


def test_the_score_is_the_formula_of_the_design() -> None:
    moment = NOON
    days = (moment.timestamp()) / 86_400
    expected = math.log(3) + math.log(1.3) + math.log(2) * days / 7
    assert pack_score("reflection", "high", moment) == pytest.approx(expected, abs=1e-9)


@given(ranked_kinds, priorities, st.integers(min_value=0, max_value=10**8))
def test_a_half_life_halves_the_weight(kind: Kind, priority: Priority, seconds: int) -> None:
    moment = NOON + timedelta(seconds=seconds)
    older = moment - HALF_LIFE
    ratio = math.exp(pack_score(kind, priority, moment) - pack_score(kind, priority, older))
    assert ratio == pytest.approx(2, rel=1e-6)


@given(ranked_kinds, priorities, st.integers(min_value=1, max_value=10**8))
def test_equal_weights_are_ordered_by_last_use(kind: Kind, priority: Priority, seconds: int) -> None:
    assert pack_score(kind, priority, NOON + timedelta(seconds=seconds)) > pack_score(kind, priority, NOON)


@given(ranked_kinds, priorities, st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2040, 1, 1)))
def test_a_score_and_a_class_say_when_a_row_was_used(kind: Kind, priority: Priority, moment: datetime) -> None:
    used = moment.replace(tzinfo=UTC)
    assert abs(last_use(kind, priority, pack_score(kind, priority, used)) - used) < timedelta(milliseconds=1)


def test_priors_order_by_priority_first() -> None:
    by_prior = sorted(product(KINDS, PRIORITIES), key=lambda pair: prior(*pair))
    assert [priority for _, priority in by_prior] == ["low"] * 4 + ["medium"] * 4 + ["high"] * 4
    assert all(0 <= prior(kind, priority) <= 1 for kind, priority in by_prior)
