"""Time is injected: everything that needs "now" is handed a Clock. Servers and workers share that of the database."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from esker.server.core.errors import InvalidInput

Clock = Callable[[], datetime]

# Dates outside these years come from broken clocks, and some cannot be converted between time zones.
EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2200, 1, 1, tzinfo=UTC)

# A clock that goes back by more was set, and what was scheduled by it before may be far away.
_SET_BACK = timedelta(minutes=1)


def system_clock() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


class SharedClock:
    """The clock of the database, which all its servers and workers share, whatever the clocks of their machines say.

    Between two readings it advances with the monotonic time of the machine; before the first it is the machine's clock.
    """

    def __init__(self) -> None:
        self._reading: tuple[datetime, float] | None = None
        self.times_set_back = 0
        """How often the clock of the database was set back by more than a minute."""

    def __call__(self) -> datetime:
        """Return the present time in UTC."""
        return self._at(time.monotonic()) or system_clock()

    def read(self, said: datetime, asked: float, answered: float) -> None:
        """Note the database's time, and when it was asked and answered, in monotonic seconds."""
        between = (asked + answered) / 2
        known = self._at(between)
        if known is not None and known - said > _SET_BACK:
            self.times_set_back += 1
        # A reading is uncertain by the duration of its query, so a smaller difference does not correct the clock.
        if known is None or abs(known - said) > timedelta(seconds=(answered - asked) / 2):
            self._reading = (said, between)

    def _at(self, moment: float) -> datetime | None:
        if self._reading is None:
            return None
        said, then = self._reading
        return said + timedelta(seconds=moment - then)


def zone(name: str) -> ZoneInfo:
    """Return the IANA time zone `name`, or raise InvalidInput."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidInput(
            f"{name[:80]!r} is not a time zone.", hint="Use an IANA name such as 'Europe/Berlin' or 'UTC'."
        ) from error


def as_utc(moment: datetime | None) -> datetime | None:
    """Return an optional moment in UTC. Raises InvalidInput when the year is out of range."""
    return None if moment is None else in_zone(moment, "UTC")


def in_zone(moment: datetime, timezone: str) -> datetime:
    """Return `moment` in `timezone`: a naive time is taken as local there, an aware one is converted.

    Raises InvalidInput when the year is not between 1970 and 2199.
    """
    local = zone(timezone)
    year = moment.year
    if not EARLIEST.year <= year < LATEST.year:
        raise InvalidInput(f"The year must be between 1970 and 2199, not {year}.")
    return moment.replace(tzinfo=local) if moment.tzinfo is None else moment.astimezone(local)


def tomorrow(now: datetime) -> datetime:
    """Return when the next day (UTC) begins."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def age(elapsed: timedelta) -> str:
    """Return an age in words, in the largest unit that fits twice: 18 months, not one year."""
    hours = elapsed / timedelta(hours=1)
    for unit, length in (
        ("years", 24 * 365),
        ("months", 24 * 30),
        ("weeks", 24 * 7),
        ("days", 24),
        ("hours", 1),
    ):
        if hours >= 2 * length:
            return f"{int(hours // length)} {unit} ago"
    return "just now" if hours < 1 else "1 hour ago"
