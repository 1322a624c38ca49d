"""Calendar expressions and the days that they mean; the words are in `server/core/words`.

A general date parser returns a moment where a span is meant, and takes "may" and "on" for dates, so the few expressions
that matter are spelled out here. Days are in the speaker's time zone: `today` is the day on which the text was said.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal, cast

from esker.server.core.clock import EARLIEST, LATEST, zone
from esker.server.core.dates.months import MONTHS
from esker.server.core.words.late_pattern import LatePattern
from esker.server.core.words.lists import any_of, keyed, spaced, starting, unspaced, whole, words


@dataclass(frozen=True, slots=True)
class Span:
    """A time from its first to its last second, in the zone in which it was said."""

    start: datetime
    end: datetime


CalendarUnit = Literal["day", "week", "month", "year"]
Days = tuple[date, date]
"""The first and the last day of a span."""
DateReader = Callable[[re.Match[str], date], Days | None]
"""Returns the days that a match means if said on a day, or None if none. Raises ValueError for an impossible date."""
Expression = tuple[re.Pattern[str] | LatePattern, DateReader]


@dataclass(frozen=True, slots=True)
class DateExpression:
    """An expression in a text: its match, the days that it means, and the function that reads it."""

    match: re.Match[str]
    days: Days
    read: DateReader


def span_of(days: Days, timezone: str) -> Span:
    """Return whole days as a span in a time zone."""
    local = zone(timezone)
    first, last = days
    return Span(datetime.combine(first, time(0), local), datetime.combine(last, time(23, 59, 59), local))


def found_in(text: str, today: date, expressions: Sequence[Expression]) -> Iterator[DateExpression]:
    """Yield the expressions of a text in order, without overlaps; of two at one place, the longer."""
    found = [
        DateExpression(match, days, read)
        for pattern, read in expressions
        for match in pattern.finditer(text)
        if not _is_id(match) and (days := read_days(read, match, today))
    ]
    end = 0
    for one in sorted(found, key=lambda one: (one.match.start(), -one.match.end())):
        if one.match.start() >= end:
            end = one.match.end()
            yield one


# A number after one of these is an id and not a date: "ticket 2024-01", "version 2024-01-05".
_OF_AN_ID = re.compile(
    rf"{starting(words('dates.numbered_things'))}\s?(?:(?:no\.?|nr\.?|n°|number|nummer|id)\s?)?[:#]?\s?$",
    re.IGNORECASE,
)

# Characters before a number that are searched for such words: the length of the longest.
_LONGEST_ID_WORDS = 24


def _is_id(match: re.Match[str]) -> bool:
    """Whether a match that looks like a date is an id."""
    start = match.start()
    of_an_id = _OF_AN_ID.search(match.string, max(0, start - _LONGEST_ID_WORDS), start)
    return bool(of_an_id and re.fullmatch(r"[\d./-]+", match[0]))


def read_days(read: DateReader, match: re.Match[str], today: date) -> Days | None:
    """Return the days that an expression means; None if they do not exist or are outside the range that is stored."""
    try:
        days = read(match, today)
    except (ValueError, OverflowError):
        return None
    return days if days and EARLIEST.year <= days[0].year and days[1].year < LATEST.year else None


# Larger counts are read only in digits.
_LARGEST_WORD = 15
NUMBER_WORDS = {
    word: int(number) for word, number in keyed("numbers.cardinals").items() if 1 <= int(number) <= _LARGEST_WORD
} | dict.fromkeys(words("dates.one"), 1)
COUNT = rf"(?P<count>\d{{1,4}}|{any_of(NUMBER_WORDS)})"
UNIT_OF = cast(dict[str, CalendarUnit], keyed("dates.units"))
UNIT = rf"(?P<unit>{any_of(UNIT_OF)})"
_SHIFTED_UNIT_OF = cast(dict[str, CalendarUnit], keyed("dates.shifted_units"))
WEEKDAYS = {word: int(number) - 1 for word, number in keyed("dates.weekdays").items()}
"""The number of each weekday, from 0 for Monday."""
WEEKDAY = rf"(?P<weekday>{any_of(WEEKDAYS)})"
# Names of months that mean something else in lower case.
ALSO_WORDS = words("dates.also_words")
MONTH = rf"(?P<month>{any_of(MONTHS)})\.?"
LAST = any_of(words("dates.last"))
NEXT = any_of(words("dates.next"))
SHIFTS = ((LAST, -1), (any_of(words("dates.this")), 0), (NEXT, 1))
"""Patterns of words before a unit, each with its distance in units from the present one."""
_DAYS = keyed("dates.days")
DAY_WORDS = tuple(_DAYS)
# "Hier" is yesterday in French and "here" in German.
_NOT_DAYS = frozenset(words("dates.not_days"))
_GERMAN = re.compile(whole(words("dates.small_words")), re.IGNORECASE)


def alone(pattern: str) -> LatePattern:
    """Return a pattern that matches whole words only, in scripts that separate words."""
    letter = "[A-Za-zÀ-ÿА-яЁё0-9]"
    return LatePattern(rf"(?-i:(?<!{letter}))(?:{pattern})(?-i:(?!{letter}))", re.IGNORECASE)


def behind(path: str) -> str:
    """Return a pattern for the words of a list after a unit, with a space before them if the script has spaces."""
    entries = words(path)
    return rf"(?: {any_of(spaced(entries))}|\s?{any_of(unspaced(entries))})"


def one_day(today: date, ahead: int = 0) -> Days:
    """Return the day that is `ahead` days away."""
    day = today + timedelta(days=ahead)
    return day, day


def shifted(unit: CalendarUnit, count: int, today: date) -> Days:
    """Return the whole day, week (from Monday), month or year that is `count` away."""
    if unit == "day":
        return one_day(today, count)
    if unit == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=count)
        return monday, monday + timedelta(days=6)
    if unit == "year":
        return date(today.year + count, 1, 1), date(today.year + count, 12, 31)
    months = today.year * 12 + today.month - 1 + count
    return whole_month(months // 12, months % 12 + 1)


def whole_month(year: int, month: int) -> Days:
    """Return a month by its number, 1 to 12."""
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1)


def counted(match: re.Match[str]) -> tuple[int, CalendarUnit]:
    """Return the number and the unit that an expression counts; without a number it is one."""
    word = match["unit"].casefold()
    return count_of(match) * times(word), UNIT_OF[word]


def times(word: str) -> int:
    """Return how many units a word means: a fortnight is two weeks."""
    return 2 if word.startswith("fortnight") else 1


def count_of(match: re.Match[str]) -> int:
    """Return the count in an expression; one if there is none."""
    given = (match.groupdict().get("count") or "1").casefold()
    return int(given) if given.isdecimal() else NUMBER_WORDS[given]


def weekday(match: re.Match[str], today: date, shift: int) -> Days:
    """Return the latest such weekday before today, that of this week (from Monday), or the first one after today."""
    ahead = WEEKDAYS[match["weekday"].casefold()] - today.weekday()
    if shift == 0:
        return one_day(today, ahead)
    return one_day(today, ahead % 7 - 7 if shift < 0 else ahead % 7 or 7)


def weekend(_: re.Match[str], today: date, shift: int) -> Days:
    """Return the latest weekend that has begun before today, that of the present week, or the next one to begin."""
    saturday = today + timedelta(days=5 - today.weekday())
    if shift < 0 and today <= saturday:
        saturday -= timedelta(weeks=1)
    elif shift > 0 and today >= saturday:
        saturday += timedelta(weeks=1)
    return saturday, saturday + timedelta(days=1)


def _not_in_german(match: re.Match[str], today: date) -> Days | None:
    """Return yesterday for "hier", unless the text is German, where it means "here"."""
    return None if _GERMAN.search(match.string) else one_day(today, -1)


def _unit(match: re.Match[str]) -> CalendarUnit:
    return _SHIFTED_UNIT_OF[match["unit"].casefold()]


def _relative() -> Iterator[Expression]:
    for offset in sorted({int(each) for each in _DAYS.values()}):
        names = any_of(word for word, away in _DAYS.items() if int(away) == offset and word not in _NOT_DAYS)
        yield alone(names), lambda _, today, offset=offset: one_day(today, offset)
    yield alone(any_of(_NOT_DAYS)), _not_in_german
    units = rf"(?P<unit>{any_of(_SHIFTED_UNIT_OF)})"
    for shift_word, shift in SHIFTS:
        for order in (rf"{shift_word}\s?{units}", rf"(?:la |le |el |l')?{units} {shift_word}"):
            yield alone(order), lambda match, today, shift=shift: shifted(_unit(match), shift, today)
        yield (
            alone(rf"{shift_word}\s?{WEEKDAY}"),
            lambda match, today, shift=shift: _shifted_weekday(match, today, shift),
        )
        for order in _weekdays_of_week(shift_word):
            yield alone(order), lambda match, today, shift=shift: _of_week(match, today, shift)
    for path, shift in (("dates.last_behind", -1), ("dates.next_behind", 1)):
        yield alone(rf"{WEEKDAY} {any_of(words(path))}"), lambda match, today, shift=shift: weekday(match, today, shift)


def _weekdays_of_week(shift_word: str) -> Iterator[str]:
    """Yield patterns for a weekday of a week that is shifted: "Monday of next week", "nächste Woche Montag"."""
    week = any_of(word for word, unit in _SHIFTED_UNIT_OF.items() if unit == "week")
    for shifted_week in (rf"{shift_word}\s?{week}", rf"{week} {shift_word}"):
        yield rf"{WEEKDAY},?\s?(?:(?:of|in|in der|der|de)\s)?(?:(?:the|la)\s)?{shifted_week}"
        yield rf"{shifted_week}(?:的|の)?,?\s?(?:(?:on|am|le|el)\s)?{WEEKDAY}"


def _of_week(match: re.Match[str], today: date, shift: int) -> Days:
    return weekday(match, shifted("week", shift, today)[0], 0)


def _shifted_weekday(match: re.Match[str], today: date, shift: int) -> Days:
    """Return a weekday after "last" or "next"; in Chinese these words refer to its week."""
    in_chinese = match["weekday"][0] in "周星"
    return _of_week(match, today, shift) if in_chinese else weekday(match, today, shift)


RELATIVE = tuple(_relative())
"""Yesterday, last week, next Monday: expressions that are counted from the day on which they are said."""
AGO = (
    alone(rf"{COUNT}\s?{UNIT}{behind('dates.ago_behind')}"),
    alone(rf"{any_of(words('dates.ago_before'))} {COUNT}\s?{UNIT}"),
)
"""Three days ago; `counted` reads it."""
AHEAD = (
    alone(rf"{any_of(words('dates.ahead_before'))} {COUNT}\s?{UNIT}"),
    alone(rf"{COUNT}\s?{UNIT}{behind('dates.ahead_behind')}"),
)
"""In three days; `counted` reads it."""
_YEARS_AWAY = {word: int(away) for word, away in keyed("dates.years").items()}
AWAY = rf"(?P<away>{any_of(_YEARS_AWAY)})"
"""A year that is counted from today."""
YEAR = rf"(?:,? (?:de |del |el |of |in )?(?:(?P<year>\d{{4}})|{AWAY}))?"
"""A year after a month or a day."""
HAN_YEAR = rf"(?:(?:(?P<year>\d{{4}})年|{AWAY})[的の]?)"
"""A year before a month, in Chinese or Japanese."""
HAN_MONTH = r"(?P<month>\d{1,2}|十[一二]?|[一二三四五六七八九])月"
HAN_DAY = r"(?P<day>\d{1,2}|[二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
DATES = (
    re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?!\d)"),
    re.compile(rf"{HAN_YEAR}?{HAN_MONTH}{HAN_DAY}[日号]"),
    alone(rf"{MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{YEAR}"),
    alone(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of |de )?{MONTH}{YEAR}"),
)
"""A day by its date, with or without a year."""


def month_number(match: re.Match[str]) -> int:
    """Return the number of the month in an expression, written in words or in digits."""
    word = match["month"].casefold()
    return MONTHS.get(word) or number_of(word)


def number_of(written: str) -> int:
    """Return a number below a hundred that is written in digits or in Chinese characters."""
    if written.isdecimal():
        return int(written)
    tens, ten, ones = written.rpartition("十")
    digits = "〇一二三四五六七八九"
    return (10 * (digits.index(tens) or 1) if ten else 0) + digits.index(ones)


def year_of(match: re.Match[str], today: date) -> int | None:
    """Return the year in an expression, by its number or counted from today; None if there is none."""
    named = match.groupdict()
    if given := named.get("year"):
        return int(given)
    away = named.get("away")
    return today.year + _YEARS_AWAY[away.casefold()] if away else None
