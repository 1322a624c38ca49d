"""Words of the calendar, in English, German, French, Spanish, Chinese and Japanese, and the days that they mean.

Of Russian, what is counted from today.

A general date parser gives a moment where a span is meant, and takes "may" and "on" for dates, so the few expressions
that matter are spelled out here. Days are those of whoever speaks: `today` is the day on which it is said.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Literal

from esker.server.core.clock import EARLIEST, LATEST, zone
from esker.server.core.dates.months import MONTHS


@dataclass(frozen=True, slots=True)
class Span:
    """A time from its first to its last second, in the zone in which it was said."""

    start: datetime
    end: datetime


CalendarUnit = Literal["day", "week", "month", "year"]
Days = tuple[date, date]
"""The first and the last day of a span."""
DateReader = Callable[[re.Match[str], date], Days | None]
"""Returns the days that an expression means on a day, None when it means none; ValueError: there is no such day."""
Expression = tuple[re.Pattern[str], DateReader]


@dataclass(frozen=True, slots=True)
class DateExpression:
    """An expression in a text: where it stands, the days that it means, and who reads it."""

    match: re.Match[str]
    days: Days
    read: DateReader


def span_of(days: Days, timezone: str) -> Span:
    """Return whole days as a span in a time zone."""
    local = zone(timezone)
    first, last = days
    return Span(datetime.combine(first, time(0), local), datetime.combine(last, time(23, 59, 59), local))


def found_in(text: str, today: date, expressions: Sequence[Expression]) -> Iterator[DateExpression]:
    """Yield the expressions of a text in order, none inside another."""
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


# What is a number behind one of these is its name: "ticket 2024-01", "version 2024-01-05".
_OF_AN_ID = re.compile(
    r"(?:\b(?:tickets?|issues?|bugs?|cases?|tasks?|stor(?:y|ies)|PRs?|MRs?|pull requests?|merge requests?|CVE|RFC|ADR"
    r"|versions?|v|releases?|builds?|tags?|orders?|invoices?|vorgang|rechnung|bestellung|auftrag|facture|commande|incidencia"
    r"|factura|pedido|versión)|工单|版本|订单|编号|チケット|バージョン|注文|番号)"
    r"\s?(?:(?:no\.?|nr\.?|n°|number|nummer|id)\s?)?[:#]?\s?$",
    re.IGNORECASE,
)
_LONGEST_ID_WORDS = 32


def _is_id(match: re.Match[str]) -> bool:
    """Tell whether what is written like a date is the number of a thing."""
    start = match.start()
    of_an_id = _OF_AN_ID.search(match.string, max(0, start - _LONGEST_ID_WORDS), start)
    return bool(of_an_id and re.fullmatch(r"[\d./-]+", match[0]))


def read_days(read: DateReader, match: re.Match[str], today: date) -> Days | None:
    """Return the days that an expression means, None when no calendar that we can keep has them."""
    try:
        days = read(match, today)
    except (ValueError, OverflowError):
        return None
    return days if days and EARLIEST.year <= days[0].year and days[1].year < LATEST.year else None


NUMBER_WORDS = {
    word: number
    for number, words in enumerate(
        (
            "", "a an one ein eine einem einer un une una uno 一 один одну", "two zwei deux dos 二 两 два две",
            "three drei trois tres 三 три", "four vier quatre cuatro 四 четыре", "five fünf cinq cinco 五 пять",
            "six sechs seis 六 шесть", "seven sieben sept siete 七 семь", "eight acht huit ocho 八 восемь",
            "nine neun neuf nueve 九 девять", "ten zehn dix diez 十 десять", "eleven elf onze once",
            "twelve zwölf douze doce", "thirteen dreizehn treize trece", "fourteen vierzehn quatorze catorce",
            "fifteen fünfzehn quinze quince",
        )
    )
    for word in words.split()
}  # fmt: skip
COUNT = rf"(?P<count>\d{{1,4}}|{'|'.join(sorted(NUMBER_WORDS, key=len, reverse=True))})"
_UNITS: dict[CalendarUnit, str] = {
    "day": "days day tagen tage tag jours jour días día dias dia 天 日 дней дня день",
    "week": "weeks week fortnights fortnight wochen woche semaines semaine semanas semana 周 週 个星期 星期 週間"
    " недель недели неделю неделе",
    "month": "months month monaten monate monats monat mois meses mes 个月 ヶ月 か月 месяцев месяца месяце месяц",
    "year": "years year jahren jahres jahre jahr années année ans an años año 年 года году год лет",
}
UNIT_OF: dict[str, CalendarUnit] = {word: unit for unit, words in _UNITS.items() for word in words.split()}
UNIT = rf"(?P<unit>{'|'.join(sorted(UNIT_OF, key=len, reverse=True))})"
WEEKDAYS = {
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
WEEKDAY = rf"(?P<weekday>{'|'.join(sorted(WEEKDAYS, key=len, reverse=True))})"
# Months only with a capital.
ALSO_WORDS = ("may", "march", "mar")
MONTH = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\.?"
LAST = (
    (
        r"last|letzten|letzte[rs]?|vergangene[nr]?|dernier|dernière|passée?|pasad[oa]|previous|上个|上|先|去|昨"
        r"|прошл(?:ой|ом|ую|ый)"
    ),
    -1,
)
NEXT = (
    (
        r"next|upcoming|coming|nächsten|nächste[rs]?|kommende[nr]?|prochaine?|próxim[oa]|que viene|下个|下|来|明"
        r"|следующ(?:ей|ем|ую|ий)"
    ),
    1,
)
_THIS = (r"this|diesen|diese[rs]?|current|cette|ce|est[ea]|本|这个|这|今|эт(?:ой|ом|у|от)", 0)
SHIFTS = (LAST, _THIS, NEXT)
# How many days from today.
_DAYS = {
    -2: "the day before yesterday|vorgestern|avant-hier|anteayer|前天|一昨日|おととい|позавчера",
    -1: "yesterday|last night|gestern|ayer|昨天|昨晚|昨日|きのう|вчера",
    0: "today|tonight|this (?:morning|afternoon|evening)|heute|aujourd'hui|hoy|今天|今日|きょう|сегодня",
    1: "tomorrow|(?<!guten )(?<!am )morgen|demain|(?<!la )mañana|明天|明日|あした|завтра",
    2: "the day after tomorrow|übermorgen|après-demain|pasado mañana|后天|明後日|あさって|послезавтра",
}
DAY_WORDS = tuple(_DAYS.values())
# In such a text "hier" is no yesterday.
_GERMAN = re.compile(
    r"\b(?:der|das|dem|den|ist|sind|wir|ich|nicht|kein|keine|und|ein|eine|was|wie|wo|wer|wird|mit|auf|für|haben|hat|war)\b",
    re.IGNORECASE,
)


def alone(pattern: str) -> re.Pattern[str]:
    """Return a pattern that stands alone, as far as its script has words."""
    letter = "[A-Za-zÀ-ÿА-яЁё0-9]"
    return re.compile(rf"(?-i:(?<!{letter}))(?:{pattern})(?-i:(?!{letter}))", re.IGNORECASE)


def one_day(today: date, ahead: int = 0) -> Days:
    """Return the day that lies `ahead` days away."""
    day = today + timedelta(days=ahead)
    return day, day


def shifted(unit: CalendarUnit, count: int, today: date) -> Days:
    """Return the whole day, week (from Monday), month or year that lies `count` away."""
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
    """Return how many of which unit an expression counts; without a number it is one."""
    word = match["unit"].casefold()
    return count_of(match) * times(word), UNIT_OF[word]


def times(word: str) -> int:
    """Return how many of its unit a word is: a fortnight is two weeks."""
    return 2 if word.startswith("fortnight") else 1


def count_of(match: re.Match[str]) -> int:
    """Return the number that an expression counts with; one where there is none."""
    given = (match.groupdict().get("count") or "1").casefold()
    return int(given) if given.isdecimal() else NUMBER_WORDS[given]


def weekday(match: re.Match[str], today: date, shift: int) -> Days:
    """Return the latest such day before today, that of the present week (from Monday), or the first one after today."""
    ahead = WEEKDAYS[match["weekday"].casefold()] - today.weekday()
    if shift == 0:
        return one_day(today, ahead)
    return one_day(today, ahead % 7 - 7 if shift < 0 else ahead % 7 or 7)


def _hier(match: re.Match[str], today: date) -> Days | None:
    """Return yesterday, unless the text is German, where the word means "here"."""
    return None if _GERMAN.search(match.string) else one_day(today, -1)


def _unit(match: re.Match[str]) -> CalendarUnit:
    word = match["unit"].casefold()
    return "month" if word.endswith("月") else UNIT_OF[word]


def _relative() -> Iterator[Expression]:
    for offset, words in _DAYS.items():
        yield alone(words), lambda _, today, offset=offset: one_day(today, offset)
    yield alone("hier"), _hier
    units = (
        r"(?P<unit>week|month|year|woche|monat|jahr|semaine|mois|année|semana|mes|año|周|週|星期|个?月|年|недел[еюи]"
        r"|месяце?|году?)"
    )
    for words, shift in SHIFTS:
        for order in (rf"(?:{words})\s?{units}", rf"(?:la |le |el |l')?{units} (?:{words})"):
            yield alone(order), lambda match, today, shift=shift: shifted(_unit(match), shift, today)
        yield (
            alone(rf"(?:{words})\s?{WEEKDAY}"),
            lambda match, today, shift=shift: _shifted_weekday(match, today, shift),
        )
        for order in _weekdays_of_week(words):
            yield alone(order), lambda match, today, shift=shift: _of_week(match, today, shift)
    for words, shift in (("dernier|passé|pasado", -1), ("prochain|próximo|que viene", 1)):
        yield alone(rf"{WEEKDAY} (?:{words})"), lambda match, today, shift=shift: weekday(match, today, shift)


def _weekdays_of_week(words: str) -> Iterator[str]:
    """Yield patterns for a weekday of a week that `words` tell: "Monday of next week", "nächste Woche Montag"."""
    week = r"(?P<week>week|woche|semaine|semana|周|週|星期)"
    for told in (rf"(?:{words})\s?{week}", rf"{week} (?:{words})"):
        yield rf"{WEEKDAY},?\s?(?:(?:of|in|in der|der|de)\s)?(?:(?:the|la)\s)?{told}"
        yield rf"{told}(?:的|の)?,?\s?(?:(?:on|am|le|el)\s)?{WEEKDAY}"


def _of_week(match: re.Match[str], today: date, shift: int) -> Days:
    return weekday(match, shifted("week", shift, today)[0], 0)


def _shifted_weekday(match: re.Match[str], today: date, shift: int) -> Days:
    """Return a weekday that is told by "last" or "next"; in Chinese those speak of its week."""
    in_chinese = match["weekday"][0] in "周星"
    return _of_week(match, today, shift) if in_chinese else weekday(match, today, shift)


RELATIVE = tuple(_relative())
"""Yesterday, last week, next Monday: what is counted from the day on which it is said."""
AGO = tuple(
    alone(rf"{lead}{COUNT}\s?{UNIT}{tail}")
    for lead, tail in (("", r"(?: ago|\s?前| назад)"), ("(?:vor |il y a |hace )", ""))
)
"""Three days ago; `counted` reads it."""
AHEAD = tuple(
    alone(rf"{lead}{COUNT}\s?{UNIT}{tail}")
    for lead, tail in (("(?:in |dans |en )", ""), ("", r"(?: from now|\s?(?:后|後))"))
)
"""In three days; `counted` reads it."""
_YEARS_AWAY = {
    word: away
    for away, words in (
        (
            -1,
            (
                "last year|letzten jahres|letztes jahr|vergangenen jahres|l'année dernière|l'an dernier|año pasado"
                "|去年|昨年"
            ),
        ),
        (0, "this year|dieses jahres|dieses jahr|cette année|este año|今年"),
        (
            1,
            (
                "next year|nächsten jahres|nächstes jahr|kommenden jahres|l'année prochaine|l'an prochain|próximo año"
                "|año que viene|明年|来年"
            ),
        ),
    )
    for word in words.split("|")
}
AWAY = rf"(?P<away>{'|'.join(_YEARS_AWAY)})"
"""A year that is counted from today."""
YEAR = rf"(?:,? (?:de |del |el |of |in )?(?:(?P<year>\d{{4}})|{AWAY}))?"
"""A year behind a month or a day."""
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
    """Return the number of the month that an expression names, in words or in digits."""
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
    """Return the year that an expression names, by its number or as it is counted from today."""
    named = match.groupdict()
    if given := named.get("year"):
        return int(given)
    away = named.get("away")
    return today.year + _YEARS_AWAY[away.casefold()] if away else None
