"""Days in texts, in the notations of the languages of the cases."""

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

from esker.server.core.words.lists import any_of, keyed, words
from evals.case_files import LANGUAGES
from evals.scoring.text import normalised

_NUMBER = {
    name.casefold(): int(number)
    for path in ("dates.months", "dates.short_months", "scores.month_forms")
    for name, number in keyed(path, *LANGUAGES).items()
}
# `step 3 may fail` does not name a day.
_NAME = any_of(_NUMBER).replace("|may|", f"|may(?! {any_of(words('scores.may_verbs'))}\\b)|")
_LED_MAY = "|".join(rf"(?<=\b{lead} )may\b" for lead in words("scores.month_leads"))
_MONTH_NAME = re.compile(rf"(?<!\w)(?!may\b){_NAME}(?!\w)|{_LED_MAY}")
_UP_TO = any_of(("-", *words("scores.up_to")))
_FORMS = (
    # The first day of a span within a month.
    re.compile(
        rf"(?<![0-9])(?P<d>[0-9]{{1,2}})\.?\s?{_UP_TO}\s?[0-9]{{1,2}}\.?\s(?:of\s|de\s)?(?P<n>{_NAME})\b\.?(?:,?\s(?:de\s|del\s)?(?P<y>[0-9]{{4}}))?"
    ),
    re.compile(r"(?<![0-9])(?P<y>[0-9]{4})[-/.](?P<m>[0-9]{1,2})[-/.](?P<d>[0-9]{1,2})(?![0-9])"),
    re.compile(r"(?:(?P<y>[0-9]{4})\s?年\s?)?(?P<m>[0-9]{1,2})\s?月\s?(?P<d>[0-9]{1,2})\s?[日号號]?"),
    re.compile(
        rf"(?<![0-9])(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s|de\s)?(?P<n>{_NAME})\b\.?(?:,?\s(?:de\s|del\s)?(?P<y>[0-9]{{4}}))?"
    ),
    re.compile(rf"\b(?P<n>{_NAME})\b\.?\s(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?(?![0-9])(?:,?\s(?P<y>[0-9]{{4}}))?"),
    re.compile(r"(?<![0-9./])(?P<d>[0-9]{1,2})([./])(?P<m>[0-9]{1,2})\2(?P<y>[0-9]{4})(?![0-9])"),
)

DateRange = tuple[int, int, int | None, int, int]
"""Start and end of a date in its text; its year (None if not written), month and day."""


@lru_cache(maxsize=16_384)
def dates_in(text: str) -> tuple[DateRange, ...]:
    """Return the days in a normalised text."""
    return tuple(_dates_in(text))


def _dates_in(text: str) -> Iterator[DateRange]:
    for form in _FORMS:
        for match in form.finditer(text):
            told = match.groupdict()
            month = int(told["m"]) if told.get("m") else _NUMBER[told["n"]]
            if 1 <= month <= 12 and 1 <= int(told["d"]) <= 31:
                yield match.start(), match.end(), int(told["y"]) if told["y"] else None, month, int(told["d"])


def months(text: str) -> set[int]:
    """Return the numbers of the months that a normalised text names."""
    return {_NUMBER[name] for name in _MONTH_NAME.findall(text)}


def names_day(text: str, day: date) -> bool:
    """Whether a text names a day; a date without a year matches any year."""
    return any(
        (month, number) == (day.month, day.day) and year in (None, day.year)
        for _, _, year, month, number in dates_in(normalised(text))
    )
