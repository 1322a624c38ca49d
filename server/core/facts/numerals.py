"""Numerals: numbers, dates, clock times and quantities, and the values that they have however they are written."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import chain

from esker.server.core.dates.months import ABBREVIATIONS, MONTHS, NAMES
from esker.server.core.text.folding import LETTERS, NOT_GLUED
from esker.server.core.words.lists import keyed


@dataclass(frozen=True, slots=True)
class Number:
    """A number, date or time with its possible readings; all values of one reading must be known to ground it.

    `implied` are values that a source which contains it also grounds, such as the month of a date.
    """

    start: int
    text: str
    readings: tuple[tuple[str, ...], ...]
    implied: tuple[str, ...] = ()


# Numbers

_NUMBER = r"\d+(?:[.,'_]\d+)*"
_QUANTITY = re.compile(
    rf"{_NUMBER}[^\W\d_]{{0,20}}|[^\W\d_]{{1,20}}|(?:\d{{1,4}}(?:h|min|m|sec|s|ms|d|x)){{1,4}}\d{{0,4}}[a-z]{{0,3}}"
)
_DOTTED_NUMBER = re.compile(r"\d+(?:\.\d+){2}")
_GROUPS = re.compile(r"[1-9]\d{0,2}([.,'_])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
# Names that are made of digits.
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}", re.IGNORECASE)


def is_quantity(word: str) -> bool:
    """Whether `word` consists of numbers with units and ordinary words: `8-16`, `30s`, `50-tablet`, `2h30m`."""
    if not word[:1].isdigit() or HASH.fullmatch(word) or _ADDRESS.fullmatch(word):
        return False
    if _DOTTED_NUMBER.match(word) and not _GROUPS.fullmatch(word):
        return False
    return all(_QUANTITY.fullmatch(part) for part in re.split("[-/:]", word) if part)


def numbers_in(start: int, word: str) -> Iterator[Number]:
    """Yield the numbers in a word that begins at `start`, without the units and signs around them."""
    for found in re.finditer(_NUMBER, word):
        for value in values_of(found[0]):
            yield Number(start + found.start(), found[0], ((value,),))


def plain_numbers(text: str) -> list[str]:
    """Return every run of digits as a value of its own."""
    return [digits.lstrip("0") or "0" for digits in re.findall(r"\d+", text)]


def values_of(written: str) -> list[str]:
    """Return the value of a number with any thousands separator, or the values of a list such as `1,2,3`.

    Groups of three digits are thousands, so `8.000` is eight thousand. Trailing zeros count in decimals: `3.10`.
    """
    if groups := _GROUPS.fullmatch(written):
        whole, _, decimals = written.replace(groups[1], "").replace(",", ".").partition(".")
    else:
        whole, *rest = re.split("[.,]", written.replace("'", "").replace("_", ""))
        if len(rest) > 1:
            return plain_numbers(written)
        decimals = rest[0] if rest else ""
    whole = whole.lstrip("0") or "0"
    return [f"{whole}.{decimals}" if decimals.strip("0") else whole]


_POWERS = {word: int(power) for word, power in keyed("numbers.powers").items()} | {"k": 3, "K": 3, "M": 6}
_SCALE = "|".join(sorted(_POWERS, key=len, reverse=True))
SCALED = rf"\d{{1,12}}(?:[.,'_]\d{{1,12}}){{0,4}}(?:[kKM]|\s?(?![kKM]{NOT_GLUED})(?:{_SCALE})){NOT_GLUED}"
"""A pattern for the input of `scaled`."""


def scaled(start: int, text: str) -> Iterator[Number]:
    """Yield the value of `8k`, `8 thousand` or `3万`."""
    written = re.match(_NUMBER, text)
    digits = written[0] if written else ""
    [base, *more] = values_of(digits)
    if more:
        yield from numbers_in(start, digits)
        return
    scale = text[len(digits) :]
    power = _POWERS[scale.strip()]
    whole, _, decimals = base.partition(".")
    decimals = decimals.ljust(power, "0")
    [value] = values_of(f"{whole}{decimals[:power]}.{decimals[power:] or '0'}")
    # A number before a separate word also counts alone.
    yield Number(start, text, ((value,),), (base,) if scale[0].isspace() else ())


# Dates and times

# Lower case only where the language writes it so: in English, "may" and "march" are mostly not months.
_WRITTEN_MONTHS = {*NAMES} | {name.title() for name in MONTHS}
_SHORT_MONTHS = ABBREVIATIONS | {name.title() for name in ABBREVIATIONS}


def _any_of(names: Iterable[str]) -> str:
    return f"(?:{'|'.join(sorted(names, key=len, reverse=True))}){NOT_GLUED}"


# A date ends with its line and its sentence: a full stop may follow a shortened name only.
_MONTH = rf"(?:{_any_of(_SHORT_MONTHS)}\.?|{_any_of(_WRITTEN_MONTHS)})"
_YEAR = rf"(?:19|20)\d\d{NOT_GLUED}"
_YEAR_BEHIND = rf"(?:,? {{1,2}}(?:de |del )?{_YEAR})"
# In "Mar 5 million" the number is not a day.
_NOT_SCALED = rf"(?!\s?(?:{_SCALE}){NOT_GLUED})"
_DAY_BEHIND = rf"\d{{1,2}}(?:st|nd|rd|th)?(?![{LETTERS}]|[.:]\d|,\d{{3}}(?!\d)){_NOT_SCALED}"
_WRITTEN_DATE = "|".join(
    (
        rf"{_MONTH} {{1,2}}{_DAY_BEHIND}(?:(?:, ?| {{1,2}}){_YEAR})?",
        rf"{_MONTH}{_YEAR_BEHIND}",
        rf"\d{{1,2}}(?:st|nd|rd|th|er|[.oa])? {{0,2}}(?:(?:of|de) )?{_MONTH}{_YEAR_BEHIND}?",
        rf"(?:\d{{4}} ?[年년] ?)?\d{{1,2}} ?[月월](?: ?\d{{1,2}}(?: ?[日号號일]|(?!\w){_NOT_SCALED}))?",
    )
)
_TIME = rf"T?(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:[.,]\d{{1,9}})?)?(?: ?[AaPp]\.?[Mm]\.?)?Z?(?![{LETTERS}]|:\d)"
CLOCK = rf"{_TIME}|(?:1[0-2]|0?[1-9]) ?[AaPp](?:[Mm]|\.[Mm]\.?){NOT_GLUED}"
"""A pattern for the input of `timed`."""
DATE = (
    r"(?:(?:19|20)\d\d(?:(?P<a>[-/.])\d{1,2}(?P=a)\d{1,2}|-\d\d)|\d{1,2}(?P<b>[-/.])\d{1,2}(?P=b)(?:19|20)\d\d)"
    rf"(?:(?=T)(?={_TIME})|(?![{LETTERS}]|[-/.:][{LETTERS}]))|{_WRITTEN_DATE}"
)
"""A pattern for the input of `dated`."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def dated(start: int, text: str) -> Iterator[Number]:
    """Yield a date, or its numbers if no calendar has it."""
    month = next((MONTHS[word.casefold()] for word in _WORD.findall(text) if word.casefold() in MONTHS), None)
    parts = [int(digits) for digits in re.findall(r"\d+", text)]
    dates = [each for each in _date_readings(text, parts, month) if _is_date(*each)]
    if not dates:
        yield from (Number(start, digits, ((digits,),)) for digits in plain_numbers(text))
        return
    readings: list[tuple[str, ...]] = [(_date_values(*each)[0],) for each in dates]
    if month:
        readings.append((*plain_numbers(text), _month_value(month)))
    implied = chain.from_iterable(_date_values(*each) for each in dates)
    yield Number(start, text.rstrip("."), tuple(readings), (*implied, *plain_numbers(text)))


_PartialDate = tuple[int | None, int, int | None]


def _date_readings(text: str, parts: list[int], month: int | None) -> list[_PartialDate]:
    """Return the years, months and days that a date may mean; with slashes, the month may come first or second."""
    years, rest = [part for part in parts if part > 31], [part for part in parts if part <= 31]
    if len(years) > 1:
        return []
    year = years[0] if years else None
    if month:
        return [(year, month, rest[0] if rest else None)]
    first, second = [*rest, None][:2] if rest else (0, None)
    if second is None or parts[0] == year or re.search("[月월.]", text):
        day_first = "." in text and parts[0] != year
        return [(year, second or 0, first)] if day_first else [(year, first or 0, second)]
    return [(year, first or 0, second), (year, second, first)]


def _is_date(year: int | None, month: int, day: int | None) -> bool:
    try:
        # A leap year has every day of the calendar.
        date(year or 2000, month, 1 if day is None else day)
    except ValueError:
        return False
    return True


def _date_values(year: int | None, month: int, day: int | None) -> list[str]:
    """Return the value of a date, followed by those of its less precise forms."""
    months = [f"--{month:02}"] if year is None else [f"{year:04}-{month:02}", f"--{month:02}"]
    days = [] if day is None else [f"{each}-{day:02}" for each in months]
    return days + months


def day_values(day: date) -> list[str]:
    """Return the values that a day grounds: its date, month and year, and the date and month without the year."""
    return [str(day.year), *_date_values(day.year, day.month, day.day)]


def _month_value(month: int) -> str:
    return f"month {month}"


def timed(start: int, text: str) -> Number:
    """Return a clock time on 24 hours, with seconds and their fraction if they are written."""
    parts = re.findall(r"\d+", text)
    hour, minute = [*parts, "00"][:2]
    half = re.search("[AaPp]", text)
    hours = int(hour) % 12 + (12 if half[0] in "Pp" else 0) if half and int(hour) <= 12 else int(hour)
    times = [f"{hours:02}:{minute}"]
    times += [f"{times[0]}:{second}" for second in parts[2:3]]
    times += [f"{times[1]}.{fraction}" for fraction in parts[3:] if fraction.strip("0")]
    # In German, "5 am" is mostly not a time: "Version 5 am Montag".
    german = ((hour.lstrip("0"),),) if text.endswith(" am") and ":" not in text else ()
    return Number(start, text.lstrip("T").rstrip("Z"), ((times[-1],), *german), (*times, *plain_numbers(text)))


# Numbers that are written as words

_SIMPLE_NUMBERS = {
    word.casefold(): int(value)
    for path in ("numbers.cardinals", "numbers.ordinals")
    for word, value in keyed(path).items()
}
_WORD_NUMBERS = _SIMPLE_NUMBERS | {
    compound: ten + one
    for tens, ten in _SIMPLE_NUMBERS.items()
    for ones, one in _SIMPLE_NUMBERS.items()
    if 20 <= ten <= 90 and 1 <= one <= 9
    for compound in (f"{tens}-{ones}", f"{ones}und{tens}")
}
_GERMAN_ENDING = re.compile(r"e[mnrs]?\Z")
_HAN_DIGITS = dict(zip("〇零一二两兩三四五六七八九", (0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
_HAN_POWERS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "萬": 10_000}
_HAN_NUMBER = re.compile(f"[{''.join((*_HAN_DIGITS, *_HAN_POWERS))}]{{1,20}}")


def word_values(normal: str) -> set[str]:
    """Return the values of the numbers and months that are written as words."""
    written = set(_WORD.findall(normal))
    whole = {word.casefold() for word in written}
    words = whole | {part for word in whole for part in word.split("-")}
    words |= {_GERMAN_ENDING.sub("", word) for word in words}
    counted = {str(_WORD_NUMBERS[word]) for word in words & _WORD_NUMBERS.keys()}
    months = {_month_value(MONTHS[word]) for word in words & MONTHS.keys()}
    return counted | months | {str(_han_value(number)) for number in set(_HAN_NUMBER.findall(normal))}


def _han_value(number: str) -> int:
    """Return the value of a number in Chinese characters: `二十五` is 25, `三万` 30,000, `二〇二六` 2026."""
    total = part = digits = 0
    for character in number:
        power = _HAN_POWERS.get(character)
        if power is None:
            digits = 10 * digits + _HAN_DIGITS[character]
        elif power == 10_000:
            total, part, digits = total + (part + digits or 1) * power, 0, 0
        else:
            part, digits = part + (digits or 1) * power, 0
    return total + part + digits
