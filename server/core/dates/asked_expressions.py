"""Expressions of time in a question: those of `calendar`, and those that occur only in questions.

Questions look back: "in March" is the latest March, "on Tuesday" the latest Tuesday, unless the question is about the
future. A month or a weekday needs a preposition before it or a year after it, and a year needs a suitable word before
it, so that neither "May I?" nor "2023 files" contains a time.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial

from esker.server.core.dates.asked_leads import (
    BY,
    LED,
    LED_GERMAN_NUMBER,
    LED_HOLIDAY,
    LED_IN_GERMAN,
    LED_MONTH,
    LED_NUMBER,
    LED_ROMANCE_NUMBER,
    LED_YEAR,
    OF_A_NAME,
    SURELY_LED,
    led,
    stands_alone,
)
from esker.server.core.dates.calendar import (
    AHEAD,
    ALSO_WORDS,
    AWAY,
    COUNT,
    DATES,
    HAN_DAY,
    HAN_MONTH,
    HAN_YEAR,
    LAST,
    MONTH,
    NEXT,
    RELATIVE,
    SHIFTS,
    UNIT,
    UNIT_OF,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    CalendarUnit,
    Days,
    Expression,
    alone,
    behind,
    count_of,
    month_number,
    number_of,
    one_day,
    shifted,
    times,
    weekday,
    weekend,
    whole_month,
    year_of,
)
from esker.server.core.dates.calendar_parts import parts
from esker.server.core.dates.holidays import BEFORE_NOUNS, HOLIDAY, holiday
from esker.server.core.dates.months import MONTHS
from esker.server.core.dates.window import about, moved
from esker.server.core.words.lists import any_of, keyed, words

_FIRST_YEAR = 1990
# A number after "in" that is more years ahead than this is a quantity.
_YEARS_AHEAD = 10
_FEW = {word: int(number) for word, number in keyed("dates.few").items()}
PAST = any_of((*words("dates.last"), *words("dates.past")))
"""A pattern for words before a span that lasts until now."""
AMOUNT = rf"(?:{COUNT}|(?:an? |ein )?(?P<some>{any_of(_FEW)}))"
"""A pattern for a number of units: a count, or "a few"."""


def _is_month(match: re.Match[str]) -> bool:
    """Whether a month's name means the month, and not another word with the same spelling."""
    named = match.groupdict()
    return match["month"] not in ALSO_WORDS or bool(named.get("year") or named.get("away")) or led(match, SURELY_LED)


def _recent(make: Callable[[int], Days], today: date, *, ahead: bool) -> Days | None:
    """Return the latest of some yearly days that have begun; with `ahead`, the first that are not over.

    `make` returns the days of a year, or raises ValueError if that year has none. None: no year nearby has them.
    """
    for years in range(10):  # two 29ths of February are at most eight years apart
        try:
            days = make(today.year + (years - 1 if ahead else 1 - years))
        except ValueError:
            continue
        if (days[1] >= today) if ahead else (days[0] <= today):
            return days
    return None


def _date(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    month, day = month_number(match), number_of(match["day"])
    if given := year_of(match, today):
        return one_day(date(given, month, day))
    if not _is_month(match) or not (led(match, LED, OF_A_NAME) or stands_alone(match)):
        return None
    return _recent(lambda year: one_day(date(year, month, day)), today, ahead=ahead)


def _german_date(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return a dotted date without a year; without a German word before it, it is a version or a number."""
    return _date(match, today, ahead=ahead) if led(match, LED_IN_GERMAN) else None


def _days_of_month(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return the days from `day` to `last` of a month."""
    month, day, last = month_number(match), number_of(match["day"]), number_of(match["last"])
    if not _is_month(match) or day > last:
        return None
    if given := year_of(match, today):
        return date(given, month, day), date(given, month, last)
    return _recent(lambda year: (date(year, month, day), date(year, month, last)), today, ahead=ahead)


def _month(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    number = month_number(match)
    if given := year_of(match, today):
        return whole_month(given, number)
    if not _is_month(match) or (match["month"].casefold() in MONTHS and not led(match, LED_MONTH)):
        return None
    return _recent(lambda year: whole_month(year, number), today, ahead=ahead)


def _last_month(match: re.Match[str], today: date) -> Days | None:
    """Return the latest month with a name that is over."""
    number = month_number(match)
    return _recent(lambda year: whole_month(year, number), today.replace(day=1) - timedelta(days=1), ahead=False)


def _next_month(match: re.Match[str], today: date) -> Days | None:
    """Return the first month with a name that has not begun."""
    number = month_number(match)
    return _recent(lambda year: whole_month(year, number), shifted("month", 1, today)[0], ahead=True)


def _before_last(match: re.Match[str], today: date) -> Days:
    return shifted(UNIT_OF[match["unit"].casefold()], -2, today)


def _day_of_month(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return the latest day with this number in its month, or the next one; too short months are skipped."""
    for months in range(12):
        first, last = shifted("month", months if ahead else -months, today)
        day = first + timedelta(days=number_of(match["day"]) - 1)
        if first <= day <= last and ((day >= today) if ahead else (day <= today)):
            return one_day(day)
    return None


def _numbered_day(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return the day of "the 5th", but not of "the 5th floor"."""
    return _day_of_month(match, today, ahead=ahead) if led(match, LED_NUMBER) and stands_alone(match) else None


def _german_day(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    return _day_of_month(match, today, ahead=ahead) if led(match, LED_GERMAN_NUMBER) else None


def _romance_day(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    is_day = stands_alone(match) and (match[0].casefold().startswith("día") or led(match, LED_ROMANCE_NUMBER))
    return _day_of_month(match, today, ahead=ahead) if is_day else None


def _holiday(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return the latest such day that has begun, or the next one; "the Christmas party" does not count."""
    if given := year_of(match, today):
        return holiday(match["holiday"], given)
    name = match["holiday"].casefold()
    in_words = name[0] < "ァ"  # Chinese and Japanese have no words before it
    if (in_words and not led(match, LED_HOLIDAY)) or (name.startswith(BEFORE_NOUNS) and not stands_alone(match)):
        return None
    return _recent(partial(holiday, match["holiday"]), today, ahead=ahead)


def _shifted_holiday(match: re.Match[str], today: date, shift: int) -> Days | None:
    """Return the latest such day that is over, that of this year, or the next one."""
    if shift == 0:
        return holiday(match["holiday"], today.year)
    return _recent(partial(holiday, match["holiday"]), today + timedelta(days=shift), ahead=shift > 0)


def _year(match: re.Match[str], today: date) -> Days | None:
    year = int(match["year"])
    if not _FIRST_YEAR <= year <= today.year + _YEARS_AHEAD:
        return None
    if not match[0].endswith("年") and not (led(match, LED_YEAR) and stands_alone(match)):
        return None
    return date(year, 1, 1), date(year, 12, 31)


def _quarter(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    number, given = int(match["quarter"]), year_of(match, today)
    if not given and not led(match, LED_MONTH):
        return None

    def days(year: int) -> Days:
        return date(year, 3 * number - 2, 1), whole_month(year, 3 * number)[1]

    return days(given) if given else _recent(days, today, ahead=ahead)


def _bare_weekday(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    latin = match["weekday"][0].isascii()
    if latin and not (led(match, LED, BY) or match["part"]):
        return None
    return weekday(match, today, 1 if ahead else -1)


def _past(match: re.Match[str], today: date) -> Days:
    """Return the days from a number of units ago until today."""
    count, unit = _amount(match)
    return moved(today, unit, -count), today


def how_many(match: re.Match[str]) -> int:
    """Return the number that `AMOUNT` matched."""
    some = match.groupdict().get("some")
    return _FEW[some.casefold()] if some else count_of(match)


def _amount(match: re.Match[str]) -> tuple[int, CalendarUnit]:
    word = match["unit"].casefold()
    return how_many(match) * times(word), UNIT_OF[word]


def _ago(match: re.Match[str], today: date, sign: int) -> Days:
    count, unit = _amount(match)
    return about(moved(today, unit, sign * count), unit)


def _expressions(*, ahead: bool) -> Iterator[Expression]:
    yield from _dates(ahead=ahead)
    yield from RELATIVE
    yield from parts(partial(_recent, ahead=ahead))
    part = r"(?P<part>['’]s\b| (?:morning|noon|afternoon|evening|night))?"
    yield alone(rf"{WEEKDAY}{part}"), partial(_bare_weekday, ahead=ahead)
    weekends = any_of(words("dates.weekend"))
    for shift_word, shift in SHIFTS:
        for order in (rf"{shift_word}\s?{weekends}", rf"(?:le |el )?{weekends} {shift_word}"):
            yield alone(order), partial(weekend, shift=shift)
    yield alone(rf"(?:on|at|over|am|ce|le|el) (?:the )?{weekends}"), partial(weekend, shift=1 if ahead else -1)
    another = rf"(?! (?:{any_of((*WEEKDAYS, *words('dates.shifted_units', 'en')))})\b)"
    for pattern in (rf"(?:the )?{UNIT} before last{another}", rf"vorletzte[nrs]? {UNIT}", rf"(?:上上个?|先々){UNIT}"):
        yield alone(pattern), _before_last
    yield alone(rf"{PAST}(?:的|の)?\s?{AMOUNT}(?: of)?\s?{UNIT}(?:間)?"), _past
    yield alone(rf"{AMOUNT} (?:derniers|dernières) {UNIT}"), _past
    yield alone(rf"(?:past|last (?=fortnight)|过去一个?|過去一?)\s?{UNIT}"), _past
    yield alone(rf"{AMOUNT}\s?{UNIT}{behind('dates.ago_behind')}"), partial(_ago, sign=-1)
    yield alone(rf"{UNIT} назад"), partial(_ago, sign=-1)
    yield alone(rf"{any_of(words('dates.ago_before'))} {AMOUNT} {UNIT}"), partial(_ago, sign=-1)
    # "The token expires in 3 days" is about the token, unless the question is about the future.
    for pattern in AHEAD if ahead else ():
        yield pattern, partial(_ago, sign=1)


def _dates(*, ahead: bool) -> Iterator[Expression]:
    for pattern in DATES:
        yield pattern, partial(_date, ahead=ahead)
    dotted = r"(?<![\w.])(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?"
    yield re.compile(rf"{dotted}(?P<year>\d{{4}})(?![\w.]*\w)"), partial(_date, ahead=ahead)
    yield re.compile(rf"{dotted}(?!\d)"), partial(_german_date, ahead=ahead)
    slashed = r"(?<![\w/-])(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})(?![\w/-])"
    yield re.compile(slashed), partial(_date, ahead=ahead)
    to = r"\s?(?:-|–|—|to|and|through|bis(?: zum)?|und|au|et|al|y|a)\s?"
    ends = r"(?:st|nd|rd|th|\.)?"
    one, other = rf"(?P<day>\d{{1,2}}){ends}", rf"(?:le |el )?(?P<last>\d{{1,2}}){ends}"
    yield alone(rf"{one}{to}{other} (?:of |de )?{MONTH}{YEAR}"), partial(_days_of_month, ahead=ahead)
    yield alone(rf"{MONTH} {one}{to}{other}{YEAR}"), partial(_days_of_month, ahead=ahead)
    month = rf"{HAN_YEAR}?{HAN_MONTH}"
    other = HAN_DAY.replace("<day>", "<last>")
    yield (
        re.compile(rf"{month}{HAN_DAY}[日号]?(?:到|至|から|-|~|〜|–){other}[日号]"),
        partial(_days_of_month, ahead=ahead),
    )
    yield re.compile(rf"(?<![\d一二三四五六七八九十]){month}(?![\d天])份?"), partial(_month, ahead=ahead)
    yield re.compile(r"(?<![\w-])(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])(?![\w-])"), partial(_month, ahead=ahead)
    yield alone(rf"{MONTH}{YEAR}(?! \d)"), partial(_month, ahead=ahead)
    yield alone(rf"{LAST} {MONTH}"), _last_month
    yield alone(rf"{NEXT} {MONTH}"), _next_month
    yield alone(rf"{AWAY}(?:['’]s|,? (?:in|im|en)) {MONTH}"), partial(_month, ahead=ahead)
    yield re.compile(r"(?<![\w.,-])(?P<year>(?:19|20)\d{2})(?:年(?!\d{1,2}月)|(?![\w年]|[.,]\d|-\d))"), _year
    yield (
        alone(rf"Q(?P<quarter>[1-4])(?:[ /-]?(?:of )?(?:(?P<year>(?:19|20)\d{{2}})|{AWAY}))?"),
        partial(_quarter, ahead=ahead),
    )
    yield alone(rf"{HOLIDAY}{YEAR}"), partial(_holiday, ahead=ahead)
    for shift_word, shift in SHIFTS:
        for order in (rf"{shift_word} {HOLIDAY}", rf"{HOLIDAY} {shift_word}"):
            yield alone(order), partial(_shifted_holiday, shift=shift)
    yield from _numbered_days(ahead=ahead)


def _numbered_days(*, ahead: bool) -> Iterator[Expression]:
    yield alone(r"(?<=the )(?P<day>\d{1,2})(?:st|nd|rd|th)"), partial(_numbered_day, ahead=ahead)
    # Not if a noun follows, which is then counted: "am 5. Tag".
    yield alone(r"(?P<day>\d{1,2})\.(?!\s?(?-i:[A-ZÄÖÜ\d]))"), partial(_german_day, ahead=ahead)
    yield alone(r"(?:día )?(?P<day>\d{1,2})"), partial(_romance_day, ahead=ahead)
    yield (
        re.compile(
            rf"(?<![\d月一二三四五六七八九十]){HAN_DAY}(?:号(?![线線楼])|日(?=に|の(?!間)|から|まで|以[前後降]))"
        ),
        partial(_day_of_month, ahead=ahead),
    )


LOOKING_BACK = tuple(_expressions(ahead=False))
"""Expressions in a question about the past."""
LOOKING_AHEAD = tuple(_expressions(ahead=True))
"""Expressions in a question about the future."""
