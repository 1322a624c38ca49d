"""Setbacks: work that failed is tried again, but later each time."""

from datetime import UTC, datetime, timedelta

from esker.server.usecases.setbacks import Setbacks

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_the_pause_doubles_with_each_failure_up_to_a_day() -> None:
    setbacks = Setbacks()
    minutes = [setbacks.note("a", NOW) // timedelta(minutes=1) for _ in range(13)]
    assert minutes == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440]


def test_only_the_subject_that_failed_waits_and_only_until_its_pause_is_over() -> None:
    setbacks = Setbacks()
    setbacks.note("a", NOW)
    assert setbacks.may_try("b", NOW)
    later = [setbacks.may_try("a", NOW + timedelta(seconds=seconds)) for seconds in (0, 59, 60)]
    assert later == [False, False, True]


def test_a_success_ends_the_pauses() -> None:
    setbacks = Setbacks()
    setbacks.note("a", NOW)
    setbacks.clear("a")
    assert setbacks.may_try("a", NOW)
    assert setbacks.note("a", NOW) == timedelta(minutes=1)
