"""Holidays that have the same date in every year."""

from datetime import date, timedelta

from esker.server.core.dates.calendar import Days
from esker.server.core.words.lists import any_of, keyed, words

# Month, day, and length in days.
_DAYS = {
    "christmas_eve": (12, 24, 1),
    "christmas_day": (12, 25, 1),
    "christmas": (12, 24, 3),
    "new_years_eve": (12, 31, 1),
    "new_year": (1, 1, 1),
    "halloween": (10, 31, 1),
    "valentine": (2, 14, 1),
}
_KEYS = keyed("dates.holidays")
# English names that describe a noun after them, and are then not a date: "the Christmas party".
BEFORE_NOUNS = words("dates.holidays_before_nouns")
HOLIDAY = rf"(?P<holiday>{any_of(_KEYS)})"


def holiday(name: str, year: int) -> Days:
    """Return the first and the last day of a holiday in a year."""
    month, day, length = _DAYS[_KEYS[name.casefold()]]
    first = date(year, month, day)
    return first, first + timedelta(days=length - 1)
