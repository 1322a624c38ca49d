"""Nearness of a row to a window: 1 inside, less the farther away, and the same in every zone."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from esker.server.core.dates.window import Window, closeness

DAY = timedelta(days=1)
WEEK = Window(datetime(2023, 5, 15, tzinfo=UTC), datetime(2023, 5, 21, 23, 59, 59, tzinfo=UTC), 7 * DAY)
NOON = datetime(2023, 5, 17, 12, tzinfo=UTC)
MOMENTS = st.datetimes(min_value=datetime(1980, 1, 1), max_value=datetime(2150, 1, 1)).map(
    lambda moment: moment.replace(tzinfo=UTC)
)
WINDOWS = st.builds(lambda start, days: Window(start, start + days * DAY, days * DAY), MOMENTS, st.integers(1, 4_000))


def said(moment: datetime, window: Window = WEEK) -> float:
    """Return the nearness of a row that refers to no other time."""
    return closeness(moment, None, None, window)


def test_nearness_is_1_inside_and_one_half_at_half_a_grain_outside() -> None:
    assert said(WEEK.start) == said(NOON) == said(WEEK.end) == 1
    assert said(WEEK.end + 3.5 * DAY) == pytest.approx(0.5)
    assert said(WEEK.start - 7 * DAY) == pytest.approx(0.25)
    assert said(WEEK.end + 365 * DAY) < 1e-9


def test_a_later_row_that_refers_to_the_window_is_inside() -> None:
    later = WEEK.end + 100 * DAY
    assert closeness(later, NOON, NOON + DAY, WEEK) == 1
    assert closeness(later, NOON, None, WEEK) == 1
    assert closeness(NOON, later, later, WEEK) == 1


def test_a_row_about_a_whole_year_is_far_from_one_of_its_weeks() -> None:
    year = datetime(2023, 1, 1, tzinfo=UTC), datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC)
    later = WEEK.end + 1_000 * DAY
    assert 0.01 < closeness(later, *year, WEEK) < 0.1
    assert closeness(later, WEEK.start - DAY, WEEK.end + DAY, WEEK) > 0.9


def test_an_open_window_falls_by_the_named_unit() -> None:
    since = Window(datetime(2023, 1, 3, tzinfo=UTC), datetime(2023, 5, 24, tzinfo=UTC), DAY)
    assert said(since.start + 100 * DAY, since) == 1
    assert said(since.start - DAY, since) == pytest.approx(0.25)


@given(MOMENTS, st.none() | MOMENTS, st.none() | st.timedeltas(timedelta(0), 4_000 * DAY), WINDOWS)
def test_nearness_is_between_0_and_1_and_at_least_that_of_when_it_was_said(
    at: datetime, refers: datetime | None, length: timedelta | None, window: Window
) -> None:
    until = refers + length if refers and length is not None else None
    found = closeness(at, refers, until, window)
    assert said(at, window) <= found <= 1
    assert found >= 0


@given(WINDOWS, st.floats(0, 1_000), st.floats(0, 1_000))
def test_nearness_falls_continuously_with_distance(window: Window, one: float, other: float) -> None:
    nearer, farther = sorted((one, other))
    for away in (lambda days: window.end + days * DAY, lambda days: window.start - days * DAY):
        assert said(away(nearer), window) >= said(away(farther), window)
        rate = (farther - nearer) * DAY / max(window.grain, DAY)
        assert said(away(nearer), window) - said(away(farther), window) <= 1.4 * rate + 1e-9


@given(WINDOWS, st.floats(-1_000, 1_000), st.floats(0, 500))
def test_the_nearness_of_a_short_time_is_between_those_of_its_ends(window: Window, start: float, hours: float) -> None:
    began = window.start + start * DAY
    ended = began + timedelta(hours=hours)
    far = datetime(2199, 1, 1, tzinfo=UTC)
    ends = sorted((said(began, window), said(ended, window)))
    assume(not (began < window.start and ended > window.end))
    assert ends[0] - 1e-6 <= closeness(far, began, ended, window) <= ends[1] + 1e-6


@given(MOMENTS, st.sampled_from(["Pacific/Midway", "Pacific/Kiritimati", "Europe/Berlin", "America/New_York"]))
def test_nearness_is_the_same_in_every_zone(at: datetime, zone: str) -> None:
    local = ZoneInfo(zone)
    there = Window(WEEK.start.astimezone(local), WEEK.end.astimezone(local), WEEK.grain)
    assert closeness(at.astimezone(local), at.astimezone(local), None, there) == closeness(at, at, None, WEEK)
