"""Recognizes the kind of a value by its form: a date, a time of day, an amount of a unit, a name or a word."""

import re
from dataclasses import dataclass
from functools import lru_cache

from esker.server.core.words.lists import any_of, keyed, whole, words
from esker.server.core.words.scripts import CJK

_SIZES = r"[kmgt]i?b|bytes?|(?:kilo|mega|giga|tera)bytes?"
_TIMES = any_of(words("assertions.times"))
_CLOCK = re.compile(
    rf"\b\d{{1,2}}:\d\d\b|(?<![\d.,])\d{{1,2}} ?{any_of(words('assertions.clock'))}(?![^\W\d])", re.IGNORECASE
)
_COUNTED = any_of(words("assertions.counted"))
_LETTER = rf"[^\W\d{CJK}]"
_AMOUNT = re.compile(
    rf"(?<!{_LETTER})(?<![\d.])(?P<sign>[$€£¥]?)(?P<number>\d[\d.,:]{{0,11}}(?:e-?\d{{1,2}})?)(?<![.,:]) ?"
    rf"(?:(?P<time>{_TIMES}(?!{_LETTER}))|(?P<size>(?:{_SIZES})(?!{_LETTER}))|(?P<counted>{_COUNTED}(?!{_LETTER})))?",
    re.IGNORECASE,
)
_MONTHS = any_of([*keyed("dates.months").keys(), *keyed("dates.short_months").keys()])
# The first day of several, up to the next one: "15 to" of "15 to 17 May".
_DAYS = re.compile(
    rf"(?<![\w.,])(\d{{1,2}}\.?) {any_of(words('dates.to'))} (?=\d{{1,2}}\.? (?:de |of )?{_MONTHS}\b)", re.IGNORECASE
)
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)|\d{{4}}-\d\d(?:-\d\d)?)\b|\b\d{{1,2}}\.(?: |$)|{whole(words('assertions.days'))}"
    rf"|\b\d{{1,2}}\.? (?:de |of )?{_MONTHS}\b|\b{_MONTHS} \d{{1,2}}\b|\d{{1,2}}(?:月|日|号)",
    re.IGNORECASE,
)
_NAME = re.compile(
    rf"[^\W\d_]?[A-ZÀ-ÖØ-ÞА-ЯЁ]|[^\s{CJK}]{{0,60}}[^\s{CJK}.,]?[./_\d-][^\s{CJK}]|[^\W\d_{CJK}]+ \d|`|(?:^|\s)[#@]\w"
)
# A number of things that no list of units has: "200 rows".
_COUNT = re.compile(r"\d[\d.,]* ([a-zà-öø-ÿ]{3,})")
_BESIDE_NUMBER = re.compile(any_of([*words("assertions.now"), *words("assertions.also"), *words("assertions.breaks")]))
_DIGITS, _LETTERS = re.compile(r"\d+"), re.compile(r"[^\W\d_]+")
_LATIN = re.compile(r"[A-Za-z]")
_IN_CJK = re.compile(f"[{CJK}]")


@dataclass(frozen=True, slots=True)
class Spot:
    """An amount, date or time of day in a text, and its kind."""

    text: str
    kind: str


def with_joined_days(text: str) -> str:
    """Return a text with "15 to 17 May" as one date: "15–17 May"."""
    return _DAYS.sub(r"\1–", text)


@lru_cache(4_000)
def kind_of(text: str) -> str:
    """Return the kind of a value: date, clock, time, size, a unit, number, name or word."""
    if _DATE.search(text):
        return "date"
    if _CLOCK.search(text):
        return "clock"
    amount = _AMOUNT.search(text)
    if amount and (amount["time"] or amount["size"]):
        return "time" if amount["time"] else "size"
    if amount and (amount["counted"] or amount["sign"]):
        return amount["counted"].casefold().rstrip("s") if amount["counted"] else amount["sign"]
    if amount and amount[0].strip() == text.strip():
        return "number"
    if counted := _COUNT.fullmatch(text):
        return counted[1].rstrip("s")
    if _IN_CJK.search(text):
        return "name" if _LATIN.search(text) else "word"
    return "name" if _NAME.search(text) else "word"


def amount_at(text: str) -> str:
    """Return the amount, date or time of day that a text begins with, or nothing."""
    found = next(filter(None, (pattern.match(text) for pattern in (_CLOCK, _DATE, _AMOUNT))), None)
    return found[0].strip() if found else ""


def has_unit(text: str) -> bool:
    """Whether a value is a date, a time of day, or a number with a unit: "30 s", "5 MB", "30 euros"."""
    if _DATE.fullmatch(text) or _CLOCK.fullmatch(text):
        return True
    amount = _AMOUNT.fullmatch(text)
    return bool(amount and any(amount[name] for name in ("time", "size", "counted", "sign")))


def amounts_in(text: str) -> list[Spot]:
    """Return the amounts, dates and times of day of a text; a number with the noun behind it."""
    spots: list[Spot] = []
    text = text.rstrip(".。")  # "at 3." is no ordinal
    for pattern in (_CLOCK, _DATE, _COUNT, _AMOUNT):
        for found in pattern.finditer(text):
            if pattern is _COUNT and _BESIDE_NUMBER.fullmatch(found[1]):
                continue  # "batches of 50 now"
            amount = found[0].strip()
            spots.append(Spot(amount, kind_of(amount)))
            text = text[: found.start()] + " " * len(found[0]) + text[found.end() :]
    return spots


def form_of(text: str) -> str:
    """Return a text with every number and every word as one character."""
    return _LETTERS.sub("a", _DIGITS.sub("9", text))


def is_time(kind: str) -> bool:
    """Whether values of a kind are durations or dates."""
    return kind in ("time", "date")


def is_amount(kind: str) -> bool:
    """Whether values of a kind are amounts, dates or times of day, and not names or words."""
    return kind not in ("name", "word")
