"""Words around an expression that make it a time: "in March" is one, the name in "Who is April?" is not."""

import re

from esker.server.core.dates.calendar import WEEKDAYS
from esker.server.core.dates.months import MONTHS
from esker.server.core.words.late_pattern import LatePattern
from esker.server.core.words.lists import any_of, spaced, words

_LONGEST_LEAD = 32
_BEFORE_MONTH = words("dates.before_month")
_BOUNDS = words("dates.bounds")
_IN_RANGE = (
    rf"{any_of(spaced(words('dates.between')))}\s[^,.;?!]{{1,24}}\s"
    rf"{any_of(spaced((*words('dates.and'), *words('dates.to'))))}"
)
_BESIDE = (
    rf"(?:on|in|since|before|after|am|im|seit|en|le|el)\s(?:{any_of((*MONTHS, *WEEKDAYS))}|\d{{4}})\s"
    rf"{any_of(spaced(words('dates.beside')))}"
)


def _leads(*before: str) -> LatePattern:
    return LatePattern(rf"(?:\b{any_of(before)}|{_IN_RANGE}|\b{_BESIDE})\s(?:the\s|le\s|el\s|dem\s)?$", re.IGNORECASE)


def _right_before(path: str) -> LatePattern:
    return LatePattern(rf"\b{any_of(words(path))}\s$", re.IGNORECASE)


LED = _leads(*_BEFORE_MONTH, *_BOUNDS, *words("dates.before_day"))
# Without "of" and "for": April and June are also people.
LED_MONTH = _leads(*_BEFORE_MONTH, *_BOUNDS)
LED_YEAR = _leads(*_BEFORE_MONTH, *_BOUNDS, "of")
# After these, "may" and "march" are months even in lower case.
SURELY_LED = _right_before("dates.surely_month")
LED_IN_GERMAN = _right_before("dates.before_dotted_date")
# "The April 7 call", "Ann's July 8 workshop".
OF_A_NAME = re.compile(r"(?:\bthe|['’]s)\s$", re.IGNORECASE)
BY = _right_before("dates.due")
# Text that may follow a year or a day; after a quantity other text follows.
_ALONE_BEHIND = re.compile(
    # "2001 A Space Odyssey" is a title.
    r"(?!\s(?-i:A|The|Der|Die|Das|Le|La|El)\s(?-i:[A-ZÀ-Ý]))"
    r"\s*(?:$|['’]s\b|[?.!,;:)\]–—-]|[^\x00-\x7fÀ-ÿ]"
    rf"|{any_of(words('dates.goes_on'))}\b)",
    re.IGNORECASE,
)

# Days of a month by their number alone: "on the 5th", "am 5.", "jusqu'au 5", "desde el 5".
LED_NUMBER = _leads(*words("dates.before_numbered_day"), *WEEKDAYS)
LED_ROMANCE_NUMBER = _right_before("dates.before_bare_day")
LED_GERMAN_NUMBER = _right_before("dates.before_dotted_day")
LED_HOLIDAY = LatePattern(rf"\b{any_of((*_BOUNDS, *words('dates.before_holiday')))}\s$", re.IGNORECASE)


def led(match: re.Match[str], *leads: re.Pattern[str] | LatePattern) -> bool:
    """Whether one of the leads directly precedes an expression."""
    start = match.start()
    return any(lead.search(match.string, max(0, start - _LONGEST_LEAD), start) for lead in leads)


def stands_alone(match: re.Match[str]) -> bool:
    """Whether a number can be a year or a day, by the text after it."""
    return _ALONE_BEHIND.match(match.string, match.end()) is not None
