"""Ids, errors, times, ages."""

import inspect
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core import errors
from esker.server.core.clock import age, in_zone, zone
from esker.server.core.errors import EskerError, InvalidInput
from esker.server.core.ids import new_id, new_ids
from esker.server.rest.problems import STATUS
from tests.support.records import NOON


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2199, 1, 1)), st.integers(1, 10**6))
def test_ids_sort_by_the_time_at_which_they_were_made(moment: datetime, milliseconds: int) -> None:
    earlier = moment.replace(tzinfo=UTC)
    assert new_id("mem", earlier) < new_id("mem", earlier + timedelta(milliseconds=milliseconds))


def test_ids_made_together_sort_in_their_order() -> None:
    ids = new_ids("mem", NOON, 50)
    assert ids == sorted(ids)
    assert len(set(ids)) == 50
    assert all(len(memory_id) == 30 and memory_id.startswith("mem_") for memory_id in ids)


def test_every_error_has_a_status_and_its_own_class_is_matched_first() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, EskerError)]
    for kind in kinds:
        if kind in (EskerError, errors.TextRefused):  # the first is the root, the second never leaves the worker
            continue
        assert any(issubclass(kind, listed) for listed, _ in STATUS), kind
        first = next(listed for listed, _ in STATUS if issubclass(kind, listed))
        assert first is kind or kind not in [listed for listed, _ in STATUS]


def test_an_error_without_a_message_has_a_default_one() -> None:
    assert str(errors.LeaseLost()) == "The lease on this job was lost; nothing was written."


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "../../etc/passwd", "UTC\0", "x" * 300, "/etc/localtime"])
def test_an_invalid_time_zone_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        zone(name)


def test_a_time_without_an_offset_is_local_to_the_session() -> None:
    assert in_zone(datetime(2026, 1, 1, 12), "Asia/Tokyo").astimezone(UTC).hour == 3
    assert in_zone(datetime(2026, 1, 1, 12, tzinfo=UTC), "Asia/Tokyo").hour == 21


@pytest.mark.parametrize("moment", [datetime.min, datetime.max, datetime.max.replace(tzinfo=UTC), datetime(1969, 1, 1)])
def test_a_year_out_of_range_is_refused(moment: datetime) -> None:
    with pytest.raises(InvalidInput, match="year"):
        in_zone(moment, "UTC")


@pytest.mark.parametrize(
    ("since", "words"),
    [
        (timedelta(0), "just now"),
        (timedelta(minutes=59), "just now"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=30), "30 hours ago"),
        (timedelta(days=3), "3 days ago"),
        (timedelta(days=20), "2 weeks ago"),
        (timedelta(days=90), "3 months ago"),
        (timedelta(days=800), "2 years ago"),
        (timedelta(days=-3), "just now"),
    ],
)
def test_an_age_is_in_words(since: timedelta, words: str) -> None:
    assert age(since) == words
