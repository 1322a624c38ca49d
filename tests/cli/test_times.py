"""Times as values of options."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.cli import times
from esker.server.cli.times import TypedTime, as_sent, typed_time
from esker.server.core.clock import EARLIEST, LATEST

BERLIN = ZoneInfo("Europe/Berlin")
# In Berlin it is already the 30th, and the clocks went forward the day before.
NOW = datetime(2026, 3, 29, 22, 30, tzinfo=UTC)


def read(text: str, timezone: str = "Europe/Berlin") -> TypedTime:
    """Return a typed time, read at NOW."""
    found = typed_time("--since", text, timezone)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is stopped at NOW."""
    monkeypatch.setattr(times, "system_clock", lambda: NOW)


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("today", 30),
        ("Yesterday", 29),
        ("1d", 29),
        ("7d", 23),
        ("2w", 16),
        ("2 W", 16),
        (" 2026-03-01 ", 1),
    ],
)
def test_a_day_is_whole_in_its_time_zone(text: str, day: int) -> None:
    found = read(text)
    assert found.start == datetime(2026, 3, day, tzinfo=BERLIN)
    assert found.end == datetime(2026, 3, day, 23, 59, 59, 999_999, tzinfo=BERLIN)
    assert read("today", "UTC").start.day == 29


def test_a_time_of_day_is_a_moment() -> None:
    assert read("2026-03-01T14:30") == TypedTime(*[datetime(2026, 3, 1, 14, 30, tzinfo=BERLIN)] * 2)
    assert read("2026-03-01 14:30Z").start == datetime(2026, 3, 1, 14, 30, tzinfo=UTC)
    assert read("24h").start == NOW - timedelta(hours=24)
    assert as_sent(read("2026-03-01T14:30").start) == "2026-03-01T13:30:00+00:00"
    assert typed_time("--since", None) is None


@given(
    st.dates(EARLIEST.date() + timedelta(days=1), LATEST.date() - timedelta(days=1)),
    st.sampled_from(["UTC", "Asia/Tokyo", "America/St_Johns"]),
)
def test_days_follow_each_other_without_a_gap(day: object, timezone: str) -> None:
    found = read(str(day), timezone)
    assert as_sent(found.start) < as_sent(found.end)
    assert (found.start.date(), found.end.date()) == (day, day)
