"""Hours and minutes in a question: "the last 24 hours", "an hour ago"; all other times are whole days."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from esker.server.core.dates.asked_expressions import AMOUNT, PAST, how_many
from esker.server.core.dates.calendar import alone
from esker.server.core.dates.window import Window
from esker.server.core.words.lists import any_of, keyed, words

_UNIT_OF = keyed("dates.clock_units")
_LENGTHS = {"hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_UNIT = rf"(?P<unit>{any_of(_UNIT_OF)})"
_LAST = (
    alone(rf"{PAST}(?:的|の)?\s?{AMOUNT}(?: of)?\s?{_UNIT}"),
    alone(rf"{AMOUNT} dernières {_UNIT}"),
    # Only the hour: "the last minute" is not a time.
    alone(rf"{PAST}\s?(?P<unit>{any_of(words('dates.single_hour'))})"),
)
_AGO = (
    alone(rf"{AMOUNT}\s?{_UNIT}(?: ago|\s?以?前| назад)"),
    alone(rf"{_UNIT} назад"),
    alone(rf"{any_of(words('dates.ago_before'))} {AMOUNT} {_UNIT}"),
)
# How far a window extends on each side of a time counted in hours: people are off by about one.
_AROUND = timedelta(hours=1)
_GRAIN = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Hours:
    """Hours in a question: their place in it, and the window that they mean."""

    start: int
    end: int
    window: Window


def hours_in(text: str, now: datetime) -> Hours | None:
    """Return the first hours or minutes that a question counts back from now; in UTC, which has no DST changes."""
    found = [(match, pattern) for pattern in (*_LAST, *_AGO) for match in pattern.finditer(text)]
    if not found:
        return None
    match, pattern = min(found, key=lambda one: (one[0].start(), -one[0].end()))
    now = now.astimezone(UTC)
    begins = now - how_many(match) * _LENGTHS[_UNIT_OF[match["unit"].casefold()]]
    if pattern in _LAST:
        return Hours(match.start(), match.end(), Window(begins, now, _GRAIN))
    return Hours(match.start(), match.end(), Window(begins - _AROUND, min(now, begins + _AROUND), _GRAIN))
