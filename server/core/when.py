"""The time that a text speaks of: "yesterday", "next week", "vor 3 Tagen", "上周", counted from when it was said.

Days, weeks and months are whole spans in the speaker's time zone. A general date parser gives a moment where a span is
meant, and takes "may" and "on" for dates, so the few expressions that matter are spelled out here, in English, German,
French, Spanish, Chinese and Japanese.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from server.core.clock import zone
from server.core.months import MONTHS


@dataclass(frozen=True, slots=True)
class Span:
    """A time from its first to its last second, in the zone in which it was said."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Told:
    """What a text says about time: what it speaks of, and from when on it no longer holds."""

    refers: Span | None
    valid_until: datetime | None


# First and last day.
_Days = tuple[date, date]
_Reader = Callable[[re.Match[str], date], _Days | None]


def told_time(text: str, said_at: datetime, timezone: str) -> Told:
    """Return the time that a text speaks of, counted from `said_at` in `timezone`; of several the first.

    A weekday alone may be past or to come, so it says something only where it is a limit: "until Friday", "by Friday".
    """
    today = said_at.astimezone(zone(timezone)).date()
    refers: Span | None = None
    until: datetime | None = None
    for match, days in _found(text, today):
        span = _span(days, timezone)
        if until is None and _ends(match):
            until = span.end
        elif refers is None:
            refers = span
    return Told(refers, until)


def _span(days: _Days, timezone: str) -> Span:
    local = zone(timezone)
    first, last = days
    return Span(datetime.combine(first, time(0), local), datetime.combine(last, time(23, 59, 59), local))


def _found(text: str, today: date) -> Iterator[tuple[re.Match[str], _Days]]:
    """Yield the expressions of a text in order, none inside another."""
    found = [
        (match, days)
        for pattern, read in _EXPRESSIONS
        for match in pattern.finditer(text)
        if (days := _read(read, match, today))
    ]
    end = 0
    for match, days in sorted(found, key=lambda item: (item[0].start(), -item[0].end())):
        if match.start() >= end:
            end = match.end()
            yield match, days


def _read(read: _Reader, match: re.Match[str], today: date) -> _Days | None:
    try:
        days = read(match, today)
    except (ValueError, OverflowError):
        return None  # there is no such day
    return days if days and days[0].year >= 1970 and days[1].year < 2200 else None


_UNTIL = re.compile(
    r"(?:\b(?:until|till|through|bis(?: zum| zur)?|jusqu'(?:à|au|en)|hasta(?: el| la)?)|(?:直到|截至))"
    r"\s?(?:the\s|on\s)?$",
    re.IGNORECASE,
)
_UNTIL_BEHIND = re.compile(r"\s?(?:为止|まで)")
# What is due by a day does not cease to hold then.
_BY = re.compile(r"\bby\s(?:on\s)?$", re.IGNORECASE)
# No words before a limit are longer.
_LONGEST_LEAD = 24


def _ends(match: re.Match[str]) -> bool:
    """Tell whether something holds until the time of an expression."""
    return _led(match, _UNTIL) or _UNTIL_BEHIND.match(match.string, match.end()) is not None


def _led(match: re.Match[str], lead: re.Pattern[str]) -> bool:
    start = match.start()
    return lead.search(match.string, max(0, start - _LONGEST_LEAD), start) is not None


_NUMBER_WORDS = {
    word: number
    for number, words in enumerate(
        (
            "", "a an one ein eine einem einer un une una uno 一", "two zwei deux dos 二 两",
            "three drei trois tres 三", "four vier quatre cuatro 四", "five fünf cinq cinco 五",
            "six sechs seis 六", "seven sieben sept siete 七", "eight acht huit ocho 八",
            "nine neun neuf nueve 九", "ten zehn dix diez 十",
        )
    )
    for word in words.split()
}  # fmt: skip
_COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})"
_UNITS = {
    "day": "days day tagen tage tag jours jour días día dias dia 天 日",
    "week": "weeks week wochen woche semaines semaine semanas semana 周 週 个星期 星期 週間",
    "month": "months month monaten monate monat mois meses mes 个月 ヶ月 か月",
    "year": "years year jahren jahre jahr années année ans an años año 年",
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words.split()}
_UNIT = rf"(?P<unit>{'|'.join(sorted(_UNIT_OF, key=len, reverse=True))})"
_WEEKDAYS = {
    word: number
    for number, words in enumerate(
        (
            "monday montag lundi lunes 周一 星期一 月曜日",
            "tuesday dienstag mardi martes 周二 星期二 火曜日",
            "wednesday mittwoch mercredi miércoles 周三 星期三 水曜日",
            "thursday donnerstag jeudi jueves 周四 星期四 木曜日",
            "friday freitag vendredi viernes 周五 星期五 金曜日",
            "saturday samstag samedi sábado 周六 星期六 土曜日",
            "sunday sonntag dimanche domingo 周日 周天 星期日 星期天 日曜日",
        )
    )
    for word in words.split()
}  # fmt: skip
# Months only with a capital.
_ALSO_WORDS = ("may", "march", "mar")
_MONTH = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
_LAST = (
    r"last|letzten|letzte[rs]?|vergangenen?|dernier|dernière|passée?|pasad[oa]|previous|上个|上|先|去",
    -1,
)
_NEXT = (r"next|nächsten|nächste[rs]?|kommenden?|prochaine?|próxim[oa]|que viene|下个|下|来|明", 1)
_THIS = (r"this|diesen|diese[rs]?|current|cette|ce|est[ea]|本|这个|这|今", 0)
_SHIFTS = (_LAST, _THIS, _NEXT)
# How many days from today.
_DAYS = {
    -2: "the day before yesterday|vorgestern|avant-hier|anteayer|前天|一昨日|おととい",
    -1: "yesterday|last night|gestern|hier|ayer|昨天|昨晚|昨日|きのう",
    0: "today|tonight|this (?:morning|afternoon|evening)|heute|aujourd'hui|hoy|今天|今日|きょう",
    1: "tomorrow|(?<!guten )(?<!am )morgen|demain|(?<!la )mañana|明天|明日|あした",
    2: "the day after tomorrow|übermorgen|après-demain|pasado mañana|后天|明後日|あさって",
}


def _words(pattern: str) -> re.Pattern[str]:
    """Return a pattern that stands alone, as far as its script has words."""
    return re.compile(rf"(?<![A-Za-zÀ-ÿ0-9])(?:{pattern})(?![A-Za-zÀ-ÿ0-9])", re.IGNORECASE)


def _day(today: date, ahead: int = 0) -> _Days:
    day = today + timedelta(days=ahead)
    return day, day


def _shifted(unit: str, count: int, today: date) -> _Days:
    """Return the whole day, week (from Monday), month or year that lies `count` away."""
    if unit == "day":
        return _day(today, count)
    if unit == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=count)
        return monday, monday + timedelta(days=6)
    if unit == "year":
        return date(today.year + count, 1, 1), date(today.year + count, 12, 31)
    months = today.year * 12 + today.month - 1 + count
    return _month(months // 12, months % 12 + 1)


def _month(year: int, month: int) -> _Days:
    following = date(year + month // 12, month % 12 + 1, 1)
    return date(year, month, 1), following - timedelta(days=1)


def _ago(match: re.Match[str], today: date, sign: int) -> _Days:
    """Return the day that lies some days away; of weeks, months and years the whole one."""
    given = match["count"].casefold()
    count = int(given) if given.isdecimal() else _NUMBER_WORDS[given]
    unit = _UNIT_OF[match["unit"].casefold()]
    if unit == "week":
        return _day(today, 7 * sign * count)
    return _shifted(unit, sign * count, today)


def _weekday(match: re.Match[str], today: date, shift: int) -> _Days:
    """Return the latest such day before today, that of the present week (from Monday), or the first one after today."""
    ahead = _WEEKDAYS[match["weekday"].casefold()] - today.weekday()
    if shift == 0:
        return _day(today, ahead)
    return _day(today, ahead % 7 - 7 if shift < 0 else ahead % 7 or 7)


def _bare_weekday(match: re.Match[str], today: date) -> _Days | None:
    """Return the nearest such day to come, today included, where something holds until it or is due by it."""
    ahead = (_WEEKDAYS[match["weekday"].casefold()] - today.weekday()) % 7
    return _day(today, ahead) if _ends(match) or _led(match, _BY) else None


def _date(match: re.Match[str], today: date) -> _Days | None:
    month = match["month"].casefold()
    if match["month"] in _ALSO_WORDS:
        return None
    number = int(month) if month.isdecimal() else MONTHS[month]
    return _day(date(int(match["year"] or today.year), number, int(match["day"])))


def _named_month(match: re.Match[str], today: date) -> _Days | None:
    if match["month"] in _ALSO_WORDS:
        return None
    return _month(int(match["year"] or today.year), MONTHS[match["month"].casefold()])


def _expressions() -> Iterator[tuple[re.Pattern[str], _Reader]]:
    yield re.compile(r"(?<!\d)(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?!\d)"), _date
    yield re.compile(r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]"), _date
    year = r"(?:,? (?:de |del )?(?P<year>\d{4}))?"
    yield _words(rf"{_MONTH} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?{year}"), _date
    yield _words(rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of |de )?{_MONTH}{year}"), _date
    yield _words(rf"(?:in|im|en|since|during) {_MONTH}{year}"), _named_month
    for offset, words in _DAYS.items():
        yield _words(words), lambda _, today, offset=offset: _day(today, offset)
    units = r"(?P<unit>week|month|year|woche|monat|jahr|semaine|mois|année|semana|mes|año|周|週|星期|个?月|年)"
    weekdays = rf"(?P<weekday>{'|'.join(sorted(_WEEKDAYS, key=len, reverse=True))})"
    for words, shift in _SHIFTS:
        for order in (rf"(?:{words})\s?{units}", rf"(?:la |le |el |l')?{units} (?:{words})"):
            yield _words(order), lambda match, today, shift=shift: _shifted(_unit(match), shift, today)
        yield _words(rf"(?:{words})\s?{weekdays}"), lambda match, today, shift=shift: _weekday(match, today, shift)
    yield _words(weekdays), _bare_weekday
    for before, behind, sign in (
        ("", r" ago|\s?前", -1), ("vor |il y a |hace ", "", -1), ("in |dans |en ", "", 1),
        ("", r" from now|\s?(?:后|後)", 1),
    ):  # fmt: skip
        lead = rf"(?:{before})" if before else ""
        tail = rf"(?:{behind})" if behind else ""
        yield _words(rf"{lead}{_COUNT}\s?{_UNIT}{tail}"), lambda match, today, sign=sign: _ago(match, today, sign)


def _unit(match: re.Match[str]) -> str:
    word = match["unit"].casefold()
    return "month" if word.endswith("月") else _UNIT_OF[word]


_EXPRESSIONS = tuple(_expressions())
