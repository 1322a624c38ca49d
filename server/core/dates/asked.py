"""The time that a question asks about: "last week", "since Tuesday", "between 3 and 5 May", "a day before the move".

A time in a question is never a filter; only a caller's `since` and `until` are. A decision of last week may have been
stored a day earlier, and a misread question must not hide its answer. A time is `firm` if the question means it
exactly: a limit or a calendar date is firm, "two weeks ago" is not.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Literal, get_args

from esker.server.core.clock import EARLIEST, zone
from esker.server.core.dates.asked_anchors import anchor_in
from esker.server.core.dates.asked_expressions import LOOKING_AHEAD, LOOKING_BACK
from esker.server.core.dates.asked_hours import hours_in
from esker.server.core.dates.calendar import (
    DAY_WORDS,
    UNIT_OF,
    WEEKDAYS,
    DateExpression,
    found_in,
    read_days,
    span_of,
)
from esker.server.core.dates.months import MONTHS
from esker.server.core.dates.window import Anchor, Window, anchored_window, window_of
from esker.server.core.words.late_pattern import LatePattern
from esker.server.core.words.lists import any_of, any_word_of, keyed, spaced, unspaced, whole, words

TimeBound = Literal["since", "until", "before", "after"]


@dataclass(frozen=True, slots=True)
class AskedTime:
    """The time that a question asks about: a `window`, or an `anchor`, an event whose date must be found first.

    `words` are the question's words for the time, and `rest` is the question without them; the name of an anchor
    stays in the rest.
    """

    words: str
    rest: str
    firm: bool
    window: Window | None = None
    anchor: Anchor | None = None


_AHEAD = re.compile(whole(words("dates.ahead")), re.IGNORECASE)
_PAST = re.compile(whole(words("dates.behind")), re.IGNORECASE)
# A token. Code, paths, options and ids contain no times, unless they are dates in digits.
_TOKEN = re.compile(r"`[^`]*`|[\w./\\:=(){}<>#@$+-]+", re.ASCII)
_CODE = re.compile(r"`|(?:\A|(?<=[(<{]))--?[A-Za-z]|\w\(|[\w)][_/\\:=(){}<>#@$.][\w(]", re.ASCII)
_DATE = re.compile(r"(?:[kc]w|[hq])?[\d./-]+|\d{4}-\d\d-\d\dT[\d:.Z+-]*", re.IGNORECASE)

_BOUNDS: tuple[TimeBound, ...] = get_args(TimeBound)
_LIMITS = {
    bound: re.compile(
        rf"{whole(words(f'dates.bounds_before.{bound}'))}\s?(?:(?:the|on|in|dem|den|der|el|la|le|du)\s)?$",
        re.IGNORECASE,
    )
    for bound in _BOUNDS
}
_BEHIND = {
    bound: re.compile(rf"\s?{any_of(words(f'dates.bounds_behind.{bound}'))}", re.IGNORECASE) for bound in _BOUNDS
}
_MODIFIER = rf"(?:{any_of(words('dates.modifiers'))}\s)?"
_JOIN = re.compile(rf"\s?(?:-|–|—|~|〜|{whole(words('dates.to'))})\s?{_MODIFIER}", re.IGNORECASE)
_AND = re.compile(rf"\s?{whole(words('dates.and'))}\s?{_MODIFIER}", re.IGNORECASE)
# Between two alternative times: "today or yesterday", "on Monday and on Tuesday".
_BESIDE = re.compile(rf"\s?{whole(words('dates.beside'))}\s?(?:(?:on|in|am|im|le|el|en)\s)?{_MODIFIER}", re.IGNORECASE)
# Between a weekday and its date: "Monday, 25 May", "Friday the 13th".
_WEEKDAY_TO_DATE = re.compile(r",?\s?(?:(?:the|den|dem|le|el)\s)?", re.IGNORECASE)
_BETWEEN = re.compile(
    rf"\b{any_of(spaced(words('dates.between')))}\s(?:(?:the|dem|el|la|le)\s)?$"
    rf"|{any_of(unspaced(words('dates.between')))}\s?$",
    re.IGNORECASE,
)
# Small words that belong to a time, before it and after it.
_BEFORE_TIME = re.compile(
    r"(?:\b(?:on|in|at|over|during|from|of|around|about|am|im|um|ca|vom|en|au|du|del|de|between|zwischen|entre|на|в)\s"
    r"|[在于]\s?)?(?:\b(?:the|early|late|mid|den|dem|der|die|les?|la|el|los|las)\s){0,2}$",
    re.IGNORECASE,
)
_BEHIND_TIME = re.compile(r"T[\d:.Z+-]+|\s?(?:之?间|之?間|的时候|の間|[のに的])")
# Words of which an expression of time has at least one, unless it has digits.
_TIME_WORDS = frozenset(
    (
        *MONTHS,
        *WEEKDAYS,
        *DAY_WORDS,
        *UNIT_OF,
        *words("dates.weekend"),
        *words("dates.single_hour"),
        *(word for name in ("shifted_units", "clock_units", "holidays") for word in keyed(f"dates.{name}")),
        *keyed("dates.neighbouring_days"),
    )
)
# An ASCII question without any of these names no time. Three of four name none, and this test takes a fiftieth of the
# time. Words can be joined ("lastweek"), so a long one counts anywhere, and a short one at the end of a word.
_AN = "an"
_HINT = LatePattern(
    rf"\d|{any_word_of(word for word in _TIME_WORDS if len(word) > 3)}"
    rf"|(?:\b{_AN}|{any_word_of(word for word in _TIME_WORDS if len(word) <= 3 and word != _AN)})\b"
)
# Maximum characters of a query: a longer one is pasted text, whose times are not asked about.
_LONGEST_QUERY = 1_000
# Characters before a time that are searched for its prepositions: the length of the longest.
_LONGEST_LEAD = 21


@dataclass(frozen=True, slots=True)
class _Named:
    """Days that a question names, and their place in it; `limit` says which side of them is meant."""

    start: int
    end: int
    days: tuple[date, date]
    firm: bool
    limit: TimeBound | None = None


def asked_time(query: str, now: datetime, timezone: str) -> AskedTime | None:
    """Return the time that a question asks about, asked at `now` in `timezone`; None means any time.

    Of several times that do not belong together, the first one counts.
    """
    if len(query) > _LONGEST_QUERY or (query.isascii() and not _HINT.search(query.lower())):
        return None
    text = _TOKEN.sub(_blanked, query)
    local = now.astimezone(zone(timezone))
    ahead = _AHEAD.search(text) and not _PAST.search(text)
    expressions = LOOKING_AHEAD if ahead else LOOKING_BACK
    found = [*found_in(text, local.date(), expressions)]
    if (hours := hours_in(text, now)) and not any(one.match.start() <= hours.start for one in found):
        return _asked_time(query, hours.start, hours.end, firm=False, window=hours.window)
    anchored = anchor_in(text)
    if anchored and not any(_covers(one, anchored.start) for one in found):
        behind = next((one for one in found if anchored.end <= one.match.start() <= anchored.end + 4), None)
        if behind is None:
            return _asked_time(query, anchored.start, anchored.end, firm=False, anchor=anchored.anchor)
        span = span_of(behind.days, timezone)
        window = anchored_window(anchored.anchor, span.start, span.end, timezone)
        return _asked_time(query, anchored.start, behind.match.end(), firm=True, window=window) if window else None
    if not found:
        return None
    named = _limited(text, _named(text, found))
    return _asked_time(query, named.start, named.end, firm=named.firm, window=_window(named, local, timezone))


def _blanked(token: re.Match[str]) -> str:
    """Return a token, or blanks of the same length if it is code."""
    is_code = _CODE.search(token[0]) and not _DATE.fullmatch(token[0].rstrip(".:)"))
    return " " * len(token[0]) if is_code else token[0]


def _covers(one: DateExpression, place: int) -> bool:
    return one.match.start() <= place < one.match.end()


def _asked_time(
    query: str, start: int, end: int, *, firm: bool, window: Window | None = None, anchor: Anchor | None = None
) -> AskedTime:
    """Return the time between two places of a question, together with the small words that belong to it."""
    if before := _BEFORE_TIME.search(query, max(0, start - _LONGEST_LEAD), start):
        start = before.start()
    if behind := _BEHIND_TIME.match(query, end):
        end = behind.end()
    rest = " ".join(f"{query[:start]} {query[end:]}".split())
    return AskedTime(query[start:end].strip(), rest, firm, window, anchor)


def _named(text: str, found: Sequence[DateExpression]) -> _Named:
    """Return the first time of a question; a second time that is joined to it extends it."""
    first = found[0]
    alone = _Named(first.match.start(), first.match.end(), first.days, _is_dated(first))
    if len(found) == 1:
        return alone
    second = found[1]
    between = text[first.match.end() : second.match.start()]
    lead = _BETWEEN.search(text, max(0, alone.start - _LONGEST_LEAD), alone.start)
    if _JOIN.fullmatch(between) or (lead and _AND.fullmatch(between)):
        return _Named(lead.start() if lead else alone.start, second.match.end(), _joined(first, second), firm=True)
    if (
        _WEEKDAY_TO_DATE.fullmatch(between)
        and first.match.groupdict().get("weekday")
        and second.match.groupdict().get("day")
    ):
        return _Named(alone.start, second.match.end(), second.days, firm=True)
    if _BESIDE.fullmatch(between):
        days = min(first.days[0], second.days[0]), max(first.days[1], second.days[1])
        return _Named(alone.start, second.match.end(), days, alone.firm)
    return alone


def _joined(first: DateExpression, second: DateExpression) -> tuple[date, date]:
    """Return the days from one time to another; a time without a year is the nearest to the other."""
    one, other = first.days, second.days
    if _floats(second) and not _floats(first) and _is_dated(first):
        other = read_days(second.read, second.match, one[0] + timedelta(days=365)) or other
    if _floats(first):
        one = read_days(first.read, first.match, other[1]) or one
    return min(one[0], other[0]), max(one[1], other[1])


def _is_dated(found: DateExpression) -> bool:
    """Whether a time is a calendar date, and not a distance from today."""
    named = found.match.groupdict()
    return any(named.get(name) for name in ("year", "month", "day", "quarter", "half", "week_number", "holiday"))


def _floats(found: DateExpression) -> bool:
    """Whether a time is named without its year, or a weekday without its week."""
    named = found.match.groupdict()
    in_week = named.get("weekday") and not named.get("week")
    return bool(in_week or (_is_dated(found) and not (named.get("year") or named.get("away"))))


def _limited(text: str, named: _Named) -> _Named:
    """Return a time with the limit named before or after it: since, until, before or after."""
    for limit, pattern in _LIMITS.items():
        if lead := pattern.search(text, max(0, named.start - _LONGEST_LEAD), named.start):
            return replace(named, start=lead.start(), firm=True, limit=limit)
    for limit, pattern in _BEHIND.items():
        if tail := pattern.match(text, named.end):
            return replace(named, end=tail.end(), firm=True, limit=limit)
    return named


def _window(named: _Named, now: datetime, timezone: str) -> Window:
    """Return the window of a time; after an open start it lasts until now, and at least one grain after `after`."""
    window = window_of(named.days, timezone)
    second = timedelta(seconds=1)
    match named.limit:
        case None:
            return window
        case "until":
            return replace(window, start=min(EARLIEST, window.start))
        case "before":
            end = window.start - second
            return replace(window, start=min(EARLIEST, end - window.grain), end=end)
        case "since":
            return replace(window, end=max(now, window.end))
        case "after":
            start = window.end + second
            return replace(window, start=start, end=max(now, start + window.grain))
