"""Limits: who has to wait, for how long, and who does not."""

import pytest

from esker.server.core.errors import TooManyRequests
from esker.server.rest import limits
from esker.server.rest.limits import Places, Rate


class Stopwatch:
    """A clock of seconds that moves when told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the seconds."""
        return self.now


@pytest.fixture
def watch() -> Stopwatch:
    """A clock of a rate."""
    return Stopwatch()


def refused(rate: Rate, caller: str = "a") -> float:
    """Return the seconds that a refusal names; 0 if the request is allowed."""
    try:
        rate.take(caller, "No.")
    except TooManyRequests as error:
        return error.seconds
    return 0.0


def test_a_minutes_requests_may_come_at_once_and_then_one_at_a_time(watch: Stopwatch) -> None:
    rate = Rate(60, watch)
    assert [refused(rate) for _ in range(60)] == [0.0] * 60
    assert refused(rate) == pytest.approx(1.0)
    watch.now += 1.0
    assert refused(rate) == 0.0
    assert refused(rate) == pytest.approx(1.0)


def test_who_waits_as_long_as_it_is_told_is_allowed(watch: Stopwatch) -> None:
    rate = Rate(7, watch)
    for _ in range(50):
        watch.now += refused(rate) + 1e-6
    assert refused(rate) in (0.0, pytest.approx(60 / 7, rel=0.01))


def test_refused_requests_do_not_count(watch: Stopwatch) -> None:
    rate = Rate(2, watch)
    for _ in range(100):
        refused(rate)
    watch.now += 30.0
    assert refused(rate) == 0.0


def test_callers_have_a_rate_each_and_zero_is_no_limit(watch: Stopwatch) -> None:
    rate = Rate(1, watch)
    assert [refused(rate, "a"), refused(rate, "b")] == [0.0, 0.0]
    assert refused(rate, "a") > 0
    free = Rate(0, watch)
    assert not any(refused(free) for _ in range(1_000))


def test_memory_for_callers_is_bounded(watch: Stopwatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_CALLERS", 3)
    rate = Rate(1, watch)
    assert not any(refused(rate, caller) for caller in "abcd")
    assert refused(rate, "d") > 0
    assert refused(rate, "a") == 0.0


def test_places_are_limited_for_each_caller_and_for_all_and_are_given_back() -> None:
    places = Places(every=3, each=2)
    with places.take("a", "No.", seconds=7), places.take("a", "No.", seconds=7):
        with pytest.raises(TooManyRequests, match="No") as refusal, places.take("a", "No.", seconds=7):
            pass
        assert refusal.value.seconds == 7
        with places.take("b", "No.", seconds=7), pytest.raises(TooManyRequests), places.take("c", "No.", seconds=7):
            pass
    assert places.taken == 0
    with places.take("c", "No.", seconds=7):
        assert places.taken == 1
