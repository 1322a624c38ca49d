"""Days in texts, in the ways in which five languages write them."""

import re
from collections.abc import Iterator
from datetime import date
from functools import lru_cache

from evals.scoring.text import normalised

_MONTHS = (
    ("jan", "january", "januar", "jänner", "enero", "ene"),
    ("feb", "february", "februar", "febrero"),
    ("mar", "march", "märz", "mär", "marzo"),
    ("apr", "april", "abril", "abr"),
    ("may", "mai", "mayo"),
    ("jun", "june", "juni", "junio"),
    ("jul", "july", "juli", "julio"),
    ("aug", "august", "agosto", "ago"),
    ("sep", "sept", "september", "septiembre", "setiembre"),
    ("oct", "october", "oktober", "okt", "octubre"),
    ("nov", "november", "noviembre"),
    ("dec", "december", "dezember", "dez", "diciembre", "dic"),
)
_NUMBER = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names}
_VERBS = (
    "not|well|be|have|fail|need|change|take|get|go|come|use|also|still|only|never|require|cause|contain|differ|slip"
)
# `step 3 may fail` names no day.
_NAME = "|".join(sorted(_NUMBER, key=len, reverse=True)).replace("|may|", f"|may(?! (?:{_VERBS})\\b)|")
_MONTH_NAME = re.compile(rf"(?<!\w)(?!may\b)(?:{_NAME})(?!\w)|(?<=\b(?:in|by|of) )may\b|(?<=\b(?:until|since) )may\b")
_UP_TO = r"(?:-|to|and|bis|und|al|a|y)"
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
"""Where a day stands, from start to end; its year (None where it is not said), month and day."""


@lru_cache(maxsize=16_384)
def found(text: str) -> tuple[DateRange, ...]:
    """Return the days in a normalised text."""
    return tuple(_found(text))


def _found(text: str) -> Iterator[DateRange]:
    for form in _FORMS:
        for match in form.finditer(text):
            told = match.groupdict()
            month = int(told["m"]) if told.get("m") else _NUMBER[told["n"]]
            if 1 <= month <= 12 and 1 <= int(told["d"]) <= 31:
                yield match.start(), match.end(), int(told["y"]) if told["y"] else None, month, int(told["d"])


def months(text: str) -> set[str]:
    """Return the months that a normalised text names, each by its English name."""
    return {_MONTHS[_NUMBER[name] - 1][1 if _NUMBER[name] != 5 else 0] for name in _MONTH_NAME.findall(text)}


def names_day(text: str, day: date) -> bool:
    """Tell whether a text names a day; one that is written without its year is of any year."""
    return any(
        (month, number) == (day.month, day.day) and year in (None, day.year)
        for _, _, year, month, number in found(normalised(text))
    )
