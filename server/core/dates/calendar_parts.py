"""Parts of a month or a year: the last Monday in May, the second half of 2025, calendar week 12."""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial

from esker.server.core.dates.calendar import (
    HAN_MONTH,
    HAN_YEAR,
    MONTH,
    SHIFTS,
    UNIT_OF,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Days,
    Expression,
    alone,
    month_number,
    number_of,
    one_day,
    shifted,
    whole_month,
    year_of,
)
from esker.server.core.words.lists import any_of, keyed

Choose = Callable[[Callable[[int], Days], date], Days | None]
"""Chooses a year for a date without one: takes its days in any year, and today; returns its days in that year."""

_HALVES = {"上半年": 1, "上半期": 1, "前半": 1, "下半年": 2, "下半期": 2, "後半": 2}
_ORDINALS = {word: int(number) for word, number in keyed("dates.ordinals").items()}
_SHARES = keyed("dates.shares")
_ORDINAL = rf"(?P<ordinal>{any_of(_ORDINALS)})"
_PART = rf"{_ORDINAL} (?:{WEEKDAY}|(?P<share>{any_of(_SHARES)}))"
_HALF = rf"{_ORDINAL} (?P<share>{any_of(word for word, share in _SHARES.items() if share in ('half', 'quarter'))})"
_OF = r"(?:of|in|im|des|von|vom|de|du|del|d'|der)\s?(?:the |l'|la )?"
_FULL_YEAR = r"(?P<year>(?:19|20)\d\d)"
_SURELY_WEEK = r"(?:calendar week|iso week|kalenderwoche|[kc]w)"
_WEEK_NUMBER = r"(?P<week_number>\d{1,2})"


def parts(choose: Choose) -> Iterator[Expression]:
    """Yield the expressions for parts of a month or a year; `choose` chooses the year if none is named."""
    of_month, of_year = partial(_of_month, choose=choose), partial(_of_year, choose=choose)
    yield alone(rf"{_PART} {_OF}{MONTH}{YEAR}"), of_month
    yield alone(rf"{_PART} {_OF}(?:year |jahres? |année |año )?{_FULL_YEAR}"), of_year
    yield alone(rf"{_HALF} {_FULL_YEAR}"), of_year
    unit = rf"(?P<unit>{any_of(word for word, unit in UNIT_OF.items() if unit in ('month', 'year'))})"
    yield alone(rf"{_PART} (?:of the |du |del |des |de l'){unit}"), partial(_of_shifted, shift=0)
    for shift_word, shift in SHIFTS:
        for order in (rf"{shift_word}\s?{unit}", rf"{unit} {shift_word}"):
            yield alone(rf"{_PART} {_OF}{order}"), partial(_of_shifted, shift=shift)
    yield re.compile(rf"{HAN_YEAR}?(?P<ordinal>[上下]半[年期])"), of_year
    yield re.compile(rf"{HAN_YEAR}(?P<ordinal>前半|後半)"), of_year
    yield re.compile(rf"{HAN_YEAR}?第?(?P<quarter>[1-4一二三四])(?:季度|四半期)"), of_year
    nth = r"(?:第(?P<nth>[1-5一二三四五])个?|最后一?个?|最後の?)"
    yield re.compile(rf"{HAN_YEAR}?{HAN_MONTH}[的の]?{nth}{WEEKDAY}"), of_month
    yield alone(rf"H(?P<half>[12])(?:[ /-]?(?:of )?{_FULL_YEAR})"), of_year
    yield alone(rf"{_FULL_YEAR}[ /-]?(?:H(?P<half>[12])|Q(?P<quarter>[1-4]))"), of_year
    yield from _calendar_weeks(partial(_calendar_week, choose=choose))


def _calendar_weeks(read: Callable[[re.Match[str], date], Days | None]) -> Iterator[Expression]:
    in_year = rf"(?:\s?/\s?|,? (?:(?:of|in|de|del|im jahr|von) )?(?:the year )?){_FULL_YEAR}"
    yield alone(rf"(?:{_SURELY_WEEK}|week|semaine|semana)\s?{_WEEK_NUMBER}{in_year}"), read
    yield alone(rf"{_SURELY_WEEK}\s?{_WEEK_NUMBER}"), read
    yield alone(rf"{_WEEK_NUMBER}\. ?(?:kw|kalenderwoche)(?:{in_year})?"), read
    yield alone(rf"{_FULL_YEAR}-?W{_WEEK_NUMBER}"), read
    yield re.compile(rf"(?P<year>\d{{4}})年第{_WEEK_NUMBER}[周週]"), read


def _calendar_week(match: re.Match[str], today: date, choose: Choose) -> Days | None:
    """Return a week by its number in ISO 8601."""
    number = int(match["week_number"])

    def days(year: int) -> Days:
        monday = date.fromisocalendar(year, number, 1)
        return monday, monday + timedelta(days=6)

    given = year_of(match, today)
    return days(given) if given else choose(days, today)


def _of_month(match: re.Match[str], today: date, choose: Choose) -> Days | None:
    month, given = month_number(match), year_of(match, today)

    def days(year: int) -> Days:
        return _part(match, whole_month(year, month))

    return days(given) if given else choose(days, today)


def _of_year(match: re.Match[str], today: date, choose: Choose) -> Days | None:
    given = year_of(match, today)

    def days(year: int) -> Days:
        return _part(match, (date(year, 1, 1), date(year, 12, 31)))

    return days(given) if given else choose(days, today)


def _of_shifted(match: re.Match[str], today: date, shift: int) -> Days:
    return _part(match, shifted(UNIT_OF[match["unit"].casefold()], shift, today))


def _part(match: re.Match[str], whole: Days) -> Days:
    """Return the part of a month or a year that an expression names. Raises ValueError if it does not exist."""
    named = match.groupdict()
    number = _number(named)
    if day := named.get("weekday"):
        return _nth(_weekdays(whole, WEEKDAYS[day.casefold()]), number)
    share = _SHARES[word.casefold()] if (word := named.get("share")) else "quarter" if named.get("quarter") else "half"
    if share == "week" and number < 0:
        return whole[1] - timedelta(days=6), whole[1]
    return _nth(_pieces(whole, share), number)


def _number(named: dict[str, str | None]) -> int:
    if word := named.get("ordinal"):
        return _HALVES.get(word) or _ORDINALS[word.casefold()]
    written = named.get("half") or named.get("quarter") or named.get("nth")
    return number_of(written) if written else -1


def _nth(pieces: list[Days], number: int) -> Days:
    if number > len(pieces) or not pieces:
        raise ValueError("the month or year has fewer")
    return pieces[number - 1 if number > 0 else -1]


def _weekdays(whole: Days, weekday: int) -> list[Days]:
    first, last = whole
    nearest = first + timedelta(days=(weekday - first.weekday()) % 7)
    return [one_day(nearest, ahead) for ahead in range(0, (last - nearest).days + 1, 7)]


def _pieces(whole: Days, share: str) -> list[Days]:
    """Return the halves, quarters, months, weeks, weekends or days of a month or a year, in order."""
    first, last = whole
    if share == "weekend":
        return [(day, day + timedelta(days=1)) for day, _ in _weekdays(whole, 5)]
    if share in ("day", "week"):
        length = 7 if share == "week" else 1
        starts = (first + timedelta(days=ahead) for ahead in range(0, (last - first).days + 1, length))
        return [(start, min(last, start + timedelta(days=length - 1))) for start in starts]
    if first.month == last.month:
        middle = first.replace(day=15)
        return [(first, middle), (middle + timedelta(days=1), last)] if share == "half" else []
    months = {"half": 6, "quarter": 3, "month": 1}[share]
    return [
        (date(first.year, month, 1), whole_month(first.year, month + months - 1)[1]) for month in range(1, 13, months)
    ]
