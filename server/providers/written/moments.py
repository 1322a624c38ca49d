"""Moments: the dates and times of day that stand at the beginning of a line or in a header above it."""

import re
from dataclasses import dataclass
from datetime import date, time

from esker.server.core.dates.months import MONTHS

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_WEEKDAY = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\.?|(?:星期|周)[一二三四五六日天])"
_DAY_TEXT = (
    r"(?:\d{4}\s?[-－/.年]\s?\d{1,2}\s?[-－/.月]\s?\d{1,2}日?"
    rf"|{_MONTH}\s{{1,3}}\d{{1,2}}(?:st|nd|rd|th)?,?\s{{1,3}}\d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\.?\s{{1,3}}(?:of\s)?{_MONTH},?\s{{1,3}}\d{{4}})(?!\d)"
)
_CLOCK_TEXT = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2})?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_CLOCK = re.compile(r"(?P<hour>\d{1,2})[:：](?P<minute>\d{2})(?:[:：]\d{2})?(?:\s?(?P<half>[AaPp])\.?[Mm])?")
_MOMENT = (
    rf"(?:{_WEEKDAY}[,，]?\s?)?(?P<day>{_DAY_TEXT})?[,，T\s]{{0,3}}(?:at\s)?"
    rf"(?P<hour>{_CLOCK_TEXT}(?:\s?[-–—~～]\s?{_CLOCK_TEXT})?)?"
)
_BRACKETED = re.compile(rf"[(（\[【]\s?{_MOMENT}\s?[)）\]】]", re.IGNORECASE)
_BARE = re.compile(rf"{_MOMENT}\s?(?:[-|](?=\s)|[–—]|:(?=\s)|：)(?!\s?\d{{1,4}}[-:：/.年])", re.IGNORECASE)
_HEADER = re.compile(
    rf"(?:{_WEEKDAY}[,，]?\s?)?{_DAY_TEXT}(?:[,，]?\s?[(（]?{_WEEKDAY})?"
    rf"|(?:date|日期)\s?[:：]\s?(?:(?:{_WEEKDAY}[,，]?\s?)?{_DAY_TEXT}[^-–—:：|]{{0,20}}|\D{{0,20}})",
    re.IGNORECASE,
)
_LONGEST_HEADER = 100
_DAY = re.compile(_DAY_TEXT, re.IGNORECASE)
_DECORATION = " \t#*_=-–—[]()【】（）:：>📅🗓\ufe0f"


@dataclass(frozen=True, slots=True)
class WrittenMoment:
    """A date, a time or both at the beginning of a text, and where it ends there."""

    day: date | None
    clock: time | None
    end: int


def read_moment(text: str) -> WrittenMoment | None:
    """Return the moment with which a text begins, in brackets or set off by a dash or colon, if there is such a one."""
    found = _BRACKETED.match(text) or _BARE.match(text)
    if not found or not (found["day"] or found["hour"]):
        return None
    day, clock = day_in(found["day"] or ""), _clock(found["hour"] or "")
    if (found["day"] and not day) or (found["hour"] and not clock):
        return None
    return WrittenMoment(day, clock, found.end())


def is_date_header(text: str) -> bool:
    """Tell whether a line is nothing but a date, or what is called one without being readable."""
    return len(text) <= _LONGEST_HEADER and bool(_HEADER.fullmatch(text.strip(_DECORATION)))


def day_in(text: str) -> date | None:
    """Return the first date in a text."""
    found = _DAY.search(text)
    if not found:
        return None
    numbers = [int(number) for number in re.findall(r"\d+", found[0])]
    month = re.search(_MONTH, found[0], re.IGNORECASE)
    if month:
        year, day = max(numbers), min(numbers)
        numbers = [year, MONTHS[month[0][:3].casefold()], day]
    try:
        return date(*numbers)
    except ValueError:
        return None


def _clock(text: str) -> time | None:
    parts = _CLOCK.match(text)
    if not parts:
        return None
    hour, minute = int(parts["hour"]), int(parts["minute"])
    if half := parts["half"]:
        hour = hour % 12 + (12 if half in "pP" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None
