"""The window of time that a question asks about, and the closeness of a row to it.

A window is evidence and not a filter: dates in questions and in rows are often slightly off. So closeness falls
smoothly, and a row far from the window is still found if no nearer one answers the question.
"""

import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from esker.server.core.clock import EARLIEST, LATEST, zone
from esker.server.core.dates.calendar import CalendarUnit, Days, shifted, span_of

# Distance from the window, in grains, at which closeness is halved; a higher value lets it fall more slowly.
_HALF_LIFE_GRAINS = 0.5


@dataclass(frozen=True, slots=True)
class Window:
    """A time from its first to its last second. `grain` is the length of the named unit.

    "Last week" is one grain long; "since Tuesday" lasts until now, and its grain is a day.
    """

    start: datetime
    end: datetime
    grain: timedelta


@dataclass(frozen=True, slots=True)
class Anchor:
    """A time that is counted from an event: "three days before the release".

    `words` name the event; the time is `count` units away, on its `side`. `within`: the whole time between is meant,
    as in "in the three days before the release".
    """

    words: str
    count: int
    unit: CalendarUnit
    side: Literal["before", "after"]
    within: bool


def window_of(days: Days, timezone: str) -> Window:
    """Return whole days as a window in a time zone."""
    span = span_of(days, timezone)
    return Window(span.start, span.end, grain_of(days))


def grain_of(days: Days) -> timedelta:
    """Return the length of whole days."""
    return days[1] - days[0] + timedelta(days=1)


def anchored_window(anchor: Anchor, start: datetime, end: datetime, timezone: str) -> Window | None:
    """Return the window that is counted from an event that lasted from `start` to `end`, which may be equal.

    None if it is outside the range of times that are stored.
    """
    try:
        days = _anchored_days(anchor, start, end, timezone)
    except (ValueError, OverflowError):
        return None
    kept = EARLIEST.year <= days[0].year and days[1].year < LATEST.year
    return window_of(days, timezone) if kept else None


def _anchored_days(anchor: Anchor, start: datetime, end: datetime, timezone: str) -> Days:
    first, last = (moment.astimezone(zone(timezone)).date() for moment in (start, end))
    if anchor.side == "before":
        far = moved(first, anchor.unit, -anchor.count)
        return (far, first - timedelta(days=1)) if anchor.within else about(far, anchor.unit)
    far = moved(last, anchor.unit, anchor.count)
    return (last + timedelta(days=1), far) if anchor.within else about(far, anchor.unit)


def moved(day: date, unit: CalendarUnit, count: int) -> date:
    """Return the day that is `count` units away; if its month is too short, the last day of that month."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = count * (12 if unit == "year" else 1)
    first, last = shifted("month", months, day)
    return min(last, first + timedelta(days=day.day - 1))


def about(day: date, unit: CalendarUnit) -> Days:
    """Return about one unit of days around `day`: a time counted in weeks is off by some days."""
    around = timedelta(days={"day": 0, "week": 3, "month": 15, "year": 182}[unit])
    return day - around, day + around


def closeness(said_at: datetime, refers_from: datetime | None, refers_to: datetime | None, window: Window) -> float:
    """Return the closeness of a row to a window, from 0 to 1: by when it was said or the time it refers to.

    The higher one counts. It is 1 inside the window, and halved with each half grain of distance outside. A row that
    refers to a long time gets the mean over it, so a row about a year is not close to one of its days.
    """
    said = _nearness(said_at, said_at, window)
    if refers_from is None:
        return said
    return max(said, _nearness(refers_from, refers_to or refers_from, window))


def _nearness(start: datetime, end: datetime, window: Window) -> float:
    # Use POSIX timestamps: subtracting two datetimes of one tzinfo ignores DST changes.
    first, last = start.timestamp(), max(start, end).timestamp()
    opens, closes = window.start.timestamp(), window.end.timestamp()
    rate = math.log(2) / (_HALF_LIFE_GRAINS * window.grain.total_seconds())
    if last - first < 1:
        return math.exp(-rate * max(0.0, opens - first, first - closes))
    inside = max(0.0, min(last, closes) - max(first, opens))
    before = _decayed(opens - first, opens - last, rate)
    after = _decayed(last - closes, first - closes, rate)
    return min(1.0, (inside + before + after) / (last - first))


def _decayed(farthest: float, nearest: float, rate: float) -> float:
    """Return the integral of the decay between two distances from the window."""
    if farthest <= 0:
        return 0.0
    return (math.exp(-rate * max(0.0, nearest)) - math.exp(-rate * farthest)) / rate
