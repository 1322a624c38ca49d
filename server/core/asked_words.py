"""Expressions of time in a question: what `calendar_words` has, and what only somebody who asks says.

Somebody who asks looks back: "in March" is the latest March, "on Tuesday" the latest Tuesday, unless the question is
about what is to come. What is said in passing is no time: months and weekdays need a word before them or a year behind
them, and a year a word that it can belong to, so that neither "May I?" nor "2023 files" is one.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial

from server.core.calendar_words import (
    AHEAD,
    ALSO_WORDS,
    COUNT,
    DATES,
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
    Days,
    Expression,
    Unit,
    alone,
    counted,
    month_number,
    one_day,
    shifted,
    weekday,
    whole_month,
)
from server.core.window import about, moved

_FIRST_YEAR = 1990
# Farther ahead, a number behind "in" is a quantity.
_YEARS_AHEAD = 10
_LONGEST_LEAD = 32
_FEW = {"few": 3, "couple of": 2, "several": 4, "paar": 3, "quelques": 3, "pocos": 3, "pocas": 3, "几": 3, "数": 3}
_SOME = "|".join(_FEW)

_BEFORE_MONTH = r"in|im|en|during|on|au mois de|au mois d'|en el mes de|the month of|early|late|mid|year|jahr|année|año"
_LIMITS = (
    r"since|until|till|through|before|after|from|seit|bis|vor|nach|ab|von|zwischen|between|depuis|jusqu'(?:à|en|au)"
    r"|avant|après|entre|dès|desde|hasta|antes de|después de|a partir de|à partir de|prior to|around|about|um"
    r"|vers|hacia"
)
_BEFORE_DAY = r"on|for|für|pour|para|am|vom|zum|le|du|au|el|del|al|of|at|over|à|dem|den|der"
_IN_RANGE = (
    r"(?:between|from|zwischen|von|vom|entre|de|du|del|desde)\s[^,.;?!]{1,24}\s"
    r"(?:and|to|until|till|through|und|bis(?: zum)?|et|à|au|y|a|al|hasta)"
)


def _leads(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:\b(?:{words})|{_IN_RANGE})\s(?:the\s|le\s|el\s|dem\s)?$", re.IGNORECASE)


_LED = _leads(f"{_BEFORE_MONTH}|{_LIMITS}|{_BEFORE_DAY}")
# Not "of" and "for": April and June are also people.
_LED_MONTH = _leads(f"{_BEFORE_MONTH}|{_LIMITS}")
_LED_YEAR = _leads(f"{_BEFORE_MONTH}|{_LIMITS}|of")
# Before these, "may" and "march" are months even in small letters.
_SURELY_LED = re.compile(r"\b(?:in|during|last|this|next)\s$", re.IGNORECASE)
_LED_IN_GERMAN = re.compile(r"\b(?:am|ab|bis|dem|der|nach|seit|vom|vor|zum)\s$", re.IGNORECASE)
# "The April 7 call", "Ann's July 8 workshop".
_OF_A_NAME = re.compile(r"(?:\bthe|['’]s)\s$", re.IGNORECASE)
_BY = re.compile(r"\bby\s$", re.IGNORECASE)
# What may follow a number that is a year or a day, and no quantity.
_ALONE_BEHIND = re.compile(
    r"\s*(?:$|['’]s\b|[?.!,;:)\]–—-]|[^\x00-\x7fÀ-ÿ]"
    r"|(?:and|or|we|i|you|they|he|she|it|the|our|my|your|did|do|does|was|were|is|are|had|have|has|what|who|when|where|how"
    r"|why|which|that|with|for|on|in|by|to|at|about|until|till|through|und|oder|bis|haben|hat|war|wir|ich|wer|wie|die|der"
    r"|das|mit|für|et|ou|au|à|nous|on|avec|pour|avons|a|y|o|al|hasta|que|qué|con|para)\b)",
    re.IGNORECASE,
)


def _led(match: re.Match[str], *leads: re.Pattern[str]) -> bool:
    start = match.start()
    return any(lead.search(match.string, max(0, start - _LONGEST_LEAD), start) for lead in leads)


def _stands_alone(match: re.Match[str]) -> bool:
    return _ALONE_BEHIND.match(match.string, match.end()) is not None


def _is_month(match: re.Match[str]) -> bool:
    """Tell whether the name of a month is one, and no word that is spelt like it."""
    return match["month"] not in ALSO_WORDS or bool(_year_of(match)) or _led(match, _SURELY_LED)


def _year_of(match: re.Match[str]) -> int | None:
    given = match.groupdict().get("year")
    return int(given) if given else None


def _recent(make: Callable[[int], Days], today: date, *, ahead: bool) -> Days | None:
    """Return the days of the latest year that have begun; `ahead`: of the first year that are not over.

    `make` gives those of a year, and raises ValueError when the year has none. None: no year near has any.
    """
    for years in range(10):  # two 29ths of February are eight years apart at most
        try:
            days = make(today.year + (years - 1 if ahead else 1 - years))
        except ValueError:
            continue
        if (days[1] >= today) if ahead else (days[0] <= today):
            return days
    return None


def _date(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    month, day = month_number(match), int(match["day"])
    if given := _year_of(match):
        return one_day(date(given, month, day))
    if not _is_month(match) or not (_led(match, _LED, _OF_A_NAME) or _stands_alone(match)):
        return None
    return _recent(lambda year: one_day(date(year, month, day)), today, ahead=ahead)


def _german_date(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return a day that is written without a year; without a German word before it, it is a version or a number."""
    return _date(match, today, ahead=ahead) if _led(match, _LED_IN_GERMAN) else None


def _days_of_month(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    """Return the days from `day` to `last` of a month."""
    month, day, last = month_number(match), int(match["day"]), int(match["last"])
    if not _is_month(match) or day > last:
        return None
    if given := _year_of(match):
        return date(given, month, day), date(given, month, last)
    return _recent(lambda year: (date(year, month, day), date(year, month, last)), today, ahead=ahead)


def _month(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    number = month_number(match)
    if given := _year_of(match):
        return whole_month(given, number)
    if not _is_month(match) or not (match["month"].isdecimal() or _led(match, _LED_MONTH)):
        return None
    return _recent(lambda year: whole_month(year, number), today, ahead=ahead)


def _last_month(match: re.Match[str], today: date) -> Days | None:
    """Return the latest month of a name that is over."""
    number = month_number(match)
    return _recent(lambda year: whole_month(year, number), today.replace(day=1) - timedelta(days=1), ahead=False)


def _next_month(match: re.Match[str], today: date) -> Days | None:
    """Return the first month of a name that has not begun."""
    number = month_number(match)
    return _recent(lambda year: whole_month(year, number), shifted("month", 1, today)[0], ahead=True)


def _before_last(match: re.Match[str], today: date) -> Days:
    return shifted(UNIT_OF[match["unit"].casefold()], -2, today)


def _month_of_year(match: re.Match[str], today: date, years: int) -> Days | None:
    return whole_month(today.year + years, month_number(match))


def _year(match: re.Match[str], today: date) -> Days | None:
    year = int(match["year"])
    if not _FIRST_YEAR <= year <= today.year + _YEARS_AHEAD:
        return None
    if not match[0].endswith("年") and not (_led(match, _LED_YEAR) and _stands_alone(match)):
        return None
    return date(year, 1, 1), date(year, 12, 31)


def _quarter(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    number, given = int(match["quarter"]), _year_of(match)
    if not given and not _led(match, _LED_MONTH):
        return None

    def days(year: int) -> Days:
        return date(year, 3 * number - 2, 1), whole_month(year, 3 * number)[1]

    return days(given) if given else _recent(days, today, ahead=ahead)


def _bare_weekday(match: re.Match[str], today: date, *, ahead: bool) -> Days | None:
    latin = match["weekday"][0].isascii()
    if latin and not (_led(match, _LED, _BY) or match["part"]):
        return None
    return weekday(match, today, 1 if ahead else -1)


def _weekend(match: re.Match[str], today: date, shift: int) -> Days:
    """Return the latest weekend that has begun before today, that of the present week, or the next one to begin."""
    saturday = today + timedelta(days=5 - today.weekday())
    if shift < 0 and today <= saturday:
        saturday -= timedelta(weeks=1)
    elif shift > 0 and today >= saturday:
        saturday += timedelta(weeks=1)
    return saturday, saturday + timedelta(days=1)


def _past(match: re.Match[str], today: date) -> Days:
    """Return the days from so many units ago until today."""
    count, unit = _amount(match)
    return moved(today, unit, -count), today


def _amount(match: re.Match[str]) -> tuple[int, Unit]:
    named = match.groupdict()
    if named.get("count"):
        return counted(match)
    some = named.get("some")
    return _FEW[some.casefold()] if some else 1, UNIT_OF[match["unit"].casefold()]


def _ago(match: re.Match[str], today: date, sign: int) -> Days:
    count, unit = _amount(match)
    return about(moved(today, unit, sign * count), unit)


def _expressions(*, ahead: bool) -> Iterator[Expression]:
    yield from _dates(ahead=ahead)
    yield from RELATIVE
    part = r"(?P<part>['’]s\b| (?:morning|noon|afternoon|evening|night))?"
    yield alone(rf"{WEEKDAY}{part}"), partial(_bare_weekday, ahead=ahead)
    weekend = r"(?:weekend|wochenende|week-end|fin de semana|周末|週末)"
    for words, shift in SHIFTS:
        for order in (rf"(?:{words})\s?{weekend}", rf"(?:le |el )?{weekend} (?:{words})"):
            yield alone(order), partial(_weekend, shift=shift)
    yield alone(rf"(?:on|at|over|am|ce|le|el) (?:the )?{weekend}"), partial(_weekend, shift=1 if ahead else -1)
    another = rf"(?! (?:{'|'.join((*WEEKDAYS, 'week', 'month', 'year'))})\b)"
    for pattern in (rf"(?:the )?{UNIT} before last{another}", rf"vorletzte[nrs]? {UNIT}", rf"(?:上上个?|先々){UNIT}"):
        yield alone(pattern), _before_last
    amount = rf"(?:{COUNT}|(?:an? |ein )?(?P<some>{_SOME}))"
    past = rf"{LAST[0]}|past|letzte|vergangene|últimos|últimas|pasados|pasadas|最近|过去|過去|近|この|ここ"
    yield alone(rf"(?:{past})(?:的|の)?\s?{amount}(?: of)?\s?{UNIT}(?:間)?"), _past
    yield alone(rf"{amount} (?:derniers|dernières) {UNIT}"), _past
    yield alone(rf"(?:past|过去一个?|過去一?)\s?{UNIT}"), _past
    yield alone(rf"{amount}\s?{UNIT}(?: ago|\s?前)"), partial(_ago, sign=-1)
    yield alone(rf"(?:vor |il y a |hace ){amount} {UNIT}"), partial(_ago, sign=-1)
    # "The token expires in 3 days" is about the token, unless the question is about what is to come.
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
    month = r"(?:(?P<year>\d{4})年)?(?P<month>\d{1,2})月"
    yield re.compile(rf"{month}{one}[日号]?(?:到|至|から|-|~|〜|–){other}[日号]"), partial(_days_of_month, ahead=ahead)
    yield re.compile(rf"(?<!\d){month}(?!\d)份?"), partial(_month, ahead=ahead)
    yield re.compile(r"(?<![\w-])(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])(?![\w-])"), partial(_month, ahead=ahead)
    yield alone(rf"{MONTH}{YEAR}(?! \d)"), partial(_month, ahead=ahead)
    yield alone(rf"(?:{LAST[0]}) {MONTH}"), _last_month
    yield alone(rf"(?:{NEXT[0]}) {MONTH}"), _next_month
    for words, years in (
        (r"last year|letzten jahres|de l'année dernière|del año pasado", -1),
        (r"this year|dieses jahres", 0),
    ):
        yield alone(rf"{MONTH} (?:of )?(?:{words})"), partial(_month_of_year, years=years)
    for words, years in ((r"去年|昨年", -1), (r"今年", 0), (r"明年|来年", 1)):
        yield re.compile(rf"(?:{words})(?:の)?(?P<month>\d{{1,2}})月(?!\d)"), partial(_month_of_year, years=years)
    yield re.compile(r"(?<![\w.,-])(?P<year>(?:19|20)\d{2})(?:年(?!\d{1,2}月)|(?![\w年]|[.,]\d|-\d))"), _year
    yield alone(r"Q(?P<quarter>[1-4])(?:[ /-]?(?:of )?(?P<year>(?:19|20)\d{2}))?"), partial(_quarter, ahead=ahead)


LOOKING_BACK = tuple(_expressions(ahead=False))
"""What times mean in a question about what was."""
LOOKING_AHEAD = tuple(_expressions(ahead=True))
"""What they mean in one about what is to come."""
