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
    COUNT,
    DATES,
    DAY_WORDS,
    HAN_MONTH,
    HAN_YEAR,
    MONTH,
    RELATIVE,
    SHIFTS,
    UNIT_OF,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Days,
    Expression,
    Span,
    alone,
    behind,
    count_of,
    counted,
    found_in,
    month_number,
    number_of,
    one_day,
    shifted,
    span_of,
    weekday,
    weekend,
    whole_month,
    year_of,
)
from esker.server.core.dates.calendar_parts import parts
from esker.server.core.dates.months import MONTHS
from esker.server.core.words.late_pattern import LatePattern
from esker.server.core.words.lists import any_of, any_word_of, starting, words


@dataclass(frozen=True, slots=True)
class MentionedTime:
    """The time that a text refers to, and the time until which it holds."""

    refers: Span | None
    valid_until: datetime | None


def mentioned_time(text: str, said_at: datetime, timezone: str) -> MentionedTime:
    """Return the time that a text refers to, counted from `said_at` in `timezone`; of several the first.

    A weekday alone may be past or future, so it counts only as a limit: "until Friday", "by Friday".
    """
    if not _may_mention_time(text):
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


def _may_mention_time(text: str) -> bool:
    if text.isascii():
        return bool(_PLAIN_HINT.search(text.lower()) or _YEAR_NUMBER.search(text))
    return bool(_HINT.search(text))


def loose_span(text: str, said_at: datetime, timezone: str, *, is_past: bool) -> Span | None:
    """Return the year or weekday that a text names: the last such weekday if it `is_past`, otherwise the next."""
    if year := _IN_YEAR.search(text):
        return span_of((date(int(year[1]), 1, 1), date(int(year[1]), 12, 31)), timezone)
    found = _WEEKDAY.search(text)
    today = said_at.astimezone(zone(timezone)).date()
    return span_of(weekday(found, today, -1 if is_past else 1), timezone) if found and found[0].isascii() else None


# A text without any of these refers to no time. Most texts contain none, and this test takes a tenth of the time.
_HINT_WORDS = any_word_of(
    (
        *MONTHS,
        *WEEKDAYS,
        *(UNIT_OF.keys() - {"an"}),
        *DAY_WORDS,
        *words("dates.hints"),
        *(f"{word}s?" for word in words("dates.weekend")),
        "[kc]w",
    )
)
_HINT_WORD = rf"(?<![A-Za-zÀ-ÿ])(?i:{_HINT_WORDS})(?![A-Za-zÀ-ÿ])"
_HINT = LatePattern(rf"\d{{4}}|[\u3040-\u30ff\u4e00-\u9fff]|{_HINT_WORD}")
# For texts in ASCII in small letters, in half of the time.
_PLAIN_HINT = LatePattern(rf"(?<![a-z]){_HINT_WORDS}(?![a-z])")
_YEAR_NUMBER = re.compile(r"\d{4}")

_UNTIL = re.compile(rf"{starting(words('dates.until'))}\s?(?:the\s|on\s)?$", re.IGNORECASE)
_UNTIL_BEHIND = re.compile(rf"\s?{any_of(words('dates.until_behind'))}")
# A due date is not the end of validity.
_BY = re.compile(rf"\b{any_of(words('dates.due'))}\s(?:on\s)?$", re.IGNORECASE)
# If a day without a year is at least this many days from today, another year is meant: "January" in December.
_FAR = 240
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
    day = date(year_of(match, today) or today.year, month_number(match), number_of(match["day"]))
    return one_day(day if year_of(match, today) else _nearest(day, today))


def _named_month(match: re.Match[str], today: date) -> Days | None:
    if match["month"] in ALSO_WORDS:
        return None
    year = year_of(match, today) or _nearest(date(today.year, month_number(match), 1), today).year
    return whole_month(year, month_number(match))


def _nearest(day: date, today: date) -> date:
    """Return a day without a year in the next or the last year if it is far from today in this one."""
    away = (day - today).days
    return day.replace(year=day.year + (away < -_FAR) - (away > _FAR))


def _weekends_ago(match: re.Match[str], today: date) -> Days:
    saturday = weekend(match, today, -1)[0] - timedelta(weeks=count_of(match) - 1)
    return saturday, saturday + timedelta(days=1)


_WEEKENDS = rf"{any_of(words('dates.weekend'))}s?"
_WEEKDAY = alone(WEEKDAY)
_IN_YEAR = alone(r"(?:in|im|en|since|during|seit) ((?:19|20)\d{2})")


def _expressions() -> Iterator[Expression]:
    for pattern in DATES:
        yield pattern, _date
    yield alone(rf"(?:in|im|en|since|during) {MONTH}{YEAR}"), _named_month
    yield re.compile(rf"{HAN_YEAR}{HAN_MONTH}"), _named_month
    yield from parts(lambda make, today: make(today.year))
    yield from RELATIVE
    yield alone(WEEKDAY), _bare_weekday
    yield alone(rf"{COUNT}\s?{_WEEKENDS}{behind('dates.ago_behind')}"), _weekends_ago
    for shift_word, shift in SHIFTS:
        yield alone(rf"{shift_word}\s?{_WEEKENDS}"), lambda match, today, shift=shift: weekend(match, today, shift)
    for patterns, sign in ((AGO, -1), (AHEAD, 1)):
        for pattern in patterns:
            yield pattern, lambda match, today, sign=sign: _ago(match, today, sign)


_EXPRESSIONS = tuple(_expressions())
