"""The time that a text refers to: "yesterday", "next week", "vor 3 Tagen", "上周", counted from when it was said.

Days, weeks and months are whole spans in the speaker's time zone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from esker.server.core.clock import zone
from esker.server.core.dates.calendar import (
    AGO,
    AHEAD,
    ALSO_WORDS,
    DATES,
    DAY_WORDS,
    HAN_MONTH,
    HAN_YEAR,
    MONTH,
    RELATIVE,
    UNIT_OF,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Days,
    Expression,
    Span,
    alone,
    counted,
    found_in,
    month_number,
    number_of,
    one_day,
    shifted,
    span_of,
    weekday,
    whole_month,
    year_of,
)
from esker.server.core.dates.calendar_parts import parts
from esker.server.core.dates.months import MONTHS
from esker.server.core.words.lists import any_of, starting, words


@dataclass(frozen=True, slots=True)
class MentionedTime:
    """The time that a text refers to, and the time until which it holds."""

    refers: Span | None
    valid_until: datetime | None


def mentioned_time(text: str, said_at: datetime, timezone: str) -> MentionedTime:
    """Return the time that a text refers to, counted from `said_at` in `timezone`; of several the first.

    A weekday alone may be past or future, so it counts only as a limit: "until Friday", "by Friday".
    """
    if not _HINT.search(text):
        return MentionedTime(None, None)
    today = said_at.astimezone(zone(timezone)).date()
    refers: Span | None = None
    until: datetime | None = None
    for found in found_in(text, today, _EXPRESSIONS):
        span = span_of(found.days, timezone)
        if until is None and _ends(found.match):
            until = span.end
        elif refers is None:
            refers = span
    return MentionedTime(refers, until)


# A text without any of these refers to no time. Most texts contain none, and this test takes a tenth of the time.
_HINT_WORDS = any_of((*MONTHS, *WEEKDAYS, *(UNIT_OF.keys() - {"an"}), *DAY_WORDS, *words("dates.hints"), "[kc]w"))
_HINT = re.compile(
    rf"\d{{4}}|[\u3040-\u30ff\u4e00-\u9fff]|(?-i:(?<![A-Za-zÀ-ÿ])){_HINT_WORDS}(?-i:(?![A-Za-zÀ-ÿ]))",
    re.IGNORECASE,
)

_UNTIL = re.compile(rf"{starting(words('dates.until'))}\s?(?:the\s|on\s)?$", re.IGNORECASE)
_UNTIL_BEHIND = re.compile(rf"\s?{any_of(words('dates.until_behind'))}")
# A due date is not the end of validity.
_BY = re.compile(rf"\b{any_of(words('dates.due'))}\s(?:on\s)?$", re.IGNORECASE)
# Characters before a time that are searched for the words of a limit: the length of the longest.
_LONGEST_LEAD = 13


def _ends(match: re.Match[str]) -> bool:
    """Whether an expression is the time until which something holds."""
    return _led(match, _UNTIL) or _UNTIL_BEHIND.match(match.string, match.end()) is not None


def _led(match: re.Match[str], lead: re.Pattern[str]) -> bool:
    start = match.start()
    return lead.search(match.string, max(0, start - _LONGEST_LEAD), start) is not None


def _ago(match: re.Match[str], today: date, sign: int) -> Days:
    """Return the day that is some days or weeks away, or the whole month or year."""
    count, unit = counted(match)
    if unit == "week":
        return one_day(today, 7 * sign * count)
    return shifted(unit, sign * count, today)


def _bare_weekday(match: re.Match[str], today: date) -> Days | None:
    """Return the next such day, today included, if something holds until it or is due by it."""
    return weekday(match, today - timedelta(days=1), 1) if _ends(match) or _led(match, _BY) else None


def _date(match: re.Match[str], today: date) -> Days | None:
    if match["month"] in ALSO_WORDS:
        return None
    return one_day(date(year_of(match, today) or today.year, month_number(match), number_of(match["day"])))


def _named_month(match: re.Match[str], today: date) -> Days | None:
    if match["month"] in ALSO_WORDS:
        return None
    return whole_month(year_of(match, today) or today.year, month_number(match))


def _expressions() -> Iterator[Expression]:
    for pattern in DATES:
        yield pattern, _date
    yield alone(rf"(?:in|im|en|since|during) {MONTH}{YEAR}"), _named_month
    yield re.compile(rf"{HAN_YEAR}{HAN_MONTH}"), _named_month
    yield from parts(lambda make, today: make(today.year))
    yield from RELATIVE
    yield alone(WEEKDAY), _bare_weekday
    for patterns, sign in ((AGO, -1), (AHEAD, 1)):
        for pattern in patterns:
            yield pattern, lambda match, today, sign=sign: _ago(match, today, sign)


_EXPRESSIONS = tuple(_expressions())
