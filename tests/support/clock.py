"""A clock for tests."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class FakeClock:
    """Tells the time that it was set to; with a `tick`, a little later each time it is asked."""

    def __init__(self, now: datetime = START, tick: timedelta = timedelta(0)) -> None:
        self.now = now
        self.tick = tick

    def __call__(self) -> datetime:
        self.now += self.tick
        return self.now

    def advance(self, **duration: float) -> datetime:
        """Move by a duration, given as for `timedelta`, and return the new time."""
        self.now += timedelta(**duration)
        return self.now
