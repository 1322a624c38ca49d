"""Whether a fact that a language model wrote is grounded: what it names, counts and quotes stands in what it cites.

A text is cut into what can be looked up: names (paths, flags, versions, code), numbers (also dates and clock times) and
quoted words. Ordinary words are free, since a fact may say things in its own. A name or a quotation must occur as it is
written, apart from case and typography; a number must occur as a value, however it is written.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import chain


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a fact may draw from: the texts that it cites, and the days that it may name."""

    texts: Sequence[str]
    days: frozenset[date]


@dataclass(frozen=True, slots=True)
class Grounds:
    """What texts give to facts: what they say, folded, and the values of the numbers and dates in them."""

    text: str
    values: frozenset[str]

    def missing(self, text: str, days: Iterable[date] = ()) -> list[str]:
        """Return the names, numbers and quoted words of `text` that are not grounded, in order, each once."""
        normal = _normal(text)
        known = frozenset(chain.from_iterable(_day_values(day) for day in days))
        found = [(piece.start, piece.text) for piece in _pieces(normal) if not self._holds(piece, known)]
        found += [(each.start, each.text) for each in _quotations(normal) if not self._says(each.text)]
        return list(dict.fromkeys(text for _, text in sorted(found)))

    def _holds(self, piece: "_Name | _Number", known: frozenset[str]) -> bool:
        if isinstance(piece, _Name):
            return self._names(piece.text)
        return any(all(value in self.values or value in known for value in reading) for reading in piece.readings)

    def _says(self, quoted: str) -> bool:
        """Tell whether each part of a quotation occurs, apart from punctuation at its ends; some are names."""
        parts = (part.strip(_PUNCTUATION) for part in _ELLIPSIS.split(quoted))
        if all(len(part) < _SHORTEST_QUOTATION or _occurs(_folded(part), self.text) for part in parts):
            return True
        return " " not in quoted and any(isinstance(p, _Name) for p in _pieces(quoted)) and self._names(quoted)

    def _names(self, name: str) -> bool:
        folded = _folded(name)
        if len(name) >= _LONGEST_NAME:
            return _occurs(folded, self.text, cut_short=True)
        if any(_occurs(spelling, self.text) for spelling in _spellings(folded)):
            return True
        if _HASH.fullmatch(folded):
            return _occurs(folded, self.text, cut_short=True)
        return self._places(folded) or self._joins(folded)

    def _places(self, name: str) -> bool:
        """Tell whether `name` is a file and a line of it that are named apart."""
        place = _PLACE.fullmatch(name)
        return bool(place) and self._names(place[1]) and all(n in self.values for n in _plain_numbers(place[2]))

    def _joins(self, path: str) -> bool:
        """Tell whether `path` is a folder that is named and, below it, a path that is named without it."""
        if not _ROOTED.match(path):
            return False
        for slash in re.finditer(r"(?<=.)[/\\]", path):
            if not _occurs(path[: slash.start()], self.text):
                return False
            if _occurs(path[slash.end() :], self.text):
                return True
        return False


def ungrounded(text: str, evidence: Evidence) -> list[str]:
    """Return the identifiers, numbers and quoted words of `text` that do not occur in the evidence, in order."""
    return joined(grounds_in(source) for source in evidence.texts).missing(text, evidence.days)


def grounds_in(text: str) -> Grounds:
    """Read a text once, so that many facts can be held against it. Takes time linear in its length."""
    normal = _normal(text)
    tokens = {(token.lastgroup, token[0]) for token in _TOKEN.finditer(normal)}
    pieces = chain.from_iterable(_token_pieces(kind, 0, token) for kind, token in tokens)
    values = chain.from_iterable(_given(piece) for piece in pieces)
    return Grounds(_folded(normal), frozenset(values) | _word_values(normal))


def joined(grounds: Iterable[Grounds]) -> Grounds:
    """Return what several texts give together. Nothing occurs across the end of one and the beginning of another."""
    every = list(grounds)
    return Grounds("\n".join(each.text for each in every), frozenset[str]().union(*(each.values for each in every)))


def identifiers(text: str) -> list[str]:
    """Return the identifiers of a text in order, as they are written: names in code, and whatever is in backticks."""
    normal = _normal(text)
    found = [(piece.start, piece.text) for piece in _pieces(normal) if isinstance(piece, _Name)]
    found += [(each.start, each.text) for each in _quotations(normal) if each.is_code]
    return [name for _, name in sorted(set(found))]


def numbers(text: str) -> list[str]:
    """Return the values of the numbers, dates and clock times of a text in order.

    `8,000`, `8.000` and `8k` are "8000", `3,5` is "3.5", `24h` is "24"; `9:30 pm` is "21:30"; `March 3, 2026` is
    "2026-03-03", `March 3` is "--03-03". A number inside an identifier is none.
    """
    return [piece.readings[0][0] for piece in _pieces(_normal(text)) if isinstance(piece, _Number)]


# Pieces: what is looked up.


@dataclass(frozen=True, slots=True)
class _Name:
    """An identifier, at `start` of the normal text."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class _Number:
    """A number, date or time: it can be read in several ways, each of them some values that must all be known."""

    start: int
    text: str
    readings: tuple[tuple[str, ...], ...]
    implied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Quotation:
    """What stands between quotation marks or, as code, between backticks."""

    start: int
    text: str
    is_code: bool


# Letters that names are made of: another script ends a name that is glued to it. No other character becomes one of
# these when it is folded, so that what ends a name in a text also ends it in the folded text.
_W = "0-9A-Za-z_À-ÖØ-öø-ſƠơƯưǰȘ-țḀ-ỿ"
_NOT_GLUED = f"(?![{_W}])"

_MONTH_NAMES = (
    "January February March April May June July August September October November December",
    "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "Jän Febr Mär Apr Mai Jun Jul Aug Sept Okt Nov Dez",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "janv févr mars avr mai juin juil août sept oct nov déc",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
_MONTHS = {name.casefold(): month for names in _MONTH_NAMES for month, name in enumerate(names.split(), start=1)}
# Only what is written in lower case in its language may be: in English, "may" and "march" are mostly no months.
_WRITTEN_MONTHS = {name for names in _MONTH_NAMES for name in names.split()} | {name.title() for name in _MONTHS}
_MONTH = f"(?:{'|'.join(sorted(_WRITTEN_MONTHS, key=len, reverse=True))}){_NOT_GLUED}"
_YEAR = rf"(?:19|20)\d\d{_NOT_GLUED}"
_WRITTEN_DATE = "|".join(
    (
        rf"{_MONTH}\.?\s{{1,2}}\d{{1,2}}(?:st|nd|rd|th)?(?![{_W}]|[.:]\d|,\d{{3}}(?!\d))(?:(?:,\s?|\s{{1,2}}){_YEAR})?",
        rf"{_MONTH}\.?,?\s{{1,2}}(?:de\s|del\s)?{_YEAR}",
        rf"\d{{1,2}}(?:st|nd|rd|th|er|[.oa])?\s{{0,2}}(?:(?:of|de)\s)?{_MONTH}\.?(?:,?\s{{1,2}}(?:de\s|del\s)?{_YEAR})?",
        r"(?:\d{4}\s?[年년]\s?)?\d{1,2}\s?[月월](?:\s?\d{1,2}(?:\s?[日号號일]|(?!\w)))?",
    )
)
_TIME = rf"T?(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d(?:[.,]\d{{1,9}})?)?(?:\s?[AaPp]\.?[Mm]\.?)?Z?(?![{_W}]|:\d)"
_CLOCK = rf"{_TIME}|(?:1[0-2]|0?[1-9])\s?[AaPp](?:[Mm]|\.[Mm]\.?){_NOT_GLUED}"
_DATE = (
    r"(?:(?:19|20)\d\d(?:(?P<a>[-/.])\d{1,2}(?P=a)\d{1,2}|-\d\d)|\d{1,2}(?P<b>[-/.])\d{1,2}(?P=b)(?:19|20)\d\d)"
    rf"(?:(?=T)(?={_TIME})|(?![{_W}]|[-/.:][{_W}]))|{_WRITTEN_DATE}"
)
_POWERS = {
    word: power
    for power, words in (
        (2, "百"),
        (3, "k thousand tausend mille mil 千"),
        (4, "万 萬 만"),
        (6, "M million millions Million Millionen millones millón Mio 百万 百萬"),
        (8, "億 亿 억"),
    )
    for word in words.split()
} | {"K": 3}
_SCALE = "|".join(sorted(_POWERS, key=len, reverse=True))
_SCALED = rf"\d{{1,12}}(?:[.,'_]\d{{1,12}}){{0,4}}(?:[kKM]|\s?(?![kKM]{_NOT_GLUED})(?:{_SCALE})){_NOT_GLUED}"
_TOKEN = re.compile(
    # Looked at first, so that most places are passed at once.
    rf"(?=[{_W}.:/\\@#~-])"
    rf"(?:(?P<url>[A-Za-z][A-Za-z0-9+.-]{{1,20}}://[{_W}%&=?#~+.:;@$/-]+)"
    rf"|(?P<date>{_DATE})|(?P<clock>{_CLOCK})|(?P<scaled>{_SCALED})"
    rf"|(?P<grouped>\d{{1,3}}(?:\ \d{{3}})+(?![{_W}]|[-.,:/]\d))"
    rf"|(?P<chunk>(?!-\d)(?:[{_W}:/\\@#~-]|(?<!\.)\.(?!\.)|\.\.(?=[/\\])|(?<=\d)[,'](?=\d))+))"
)
# Where a chunk really begins: behind bullets, repeated slashes and the like, but not behind what belongs to a path or
# to a flag.
_LEAD = re.compile(r"(?:[:#\\,']|-(?!-?[A-Za-z])|~(?![/\\])|/(?=/)|\.(?=\d))*")
_TRAIL = ".:-/\\@#~,'"
# Characters of a name that are compared.
_LONGEST_NAME = 300


def _pieces(normal: str) -> Iterator[_Name | _Number]:
    """Yield the names and numbers of a normal text in order."""
    for token in _TOKEN.finditer(normal):
        yield from _token_pieces(token.lastgroup, token.start(), token[0])


def _token_pieces(kind: str | None, start: int, text: str) -> Iterator[_Name | _Number]:
    match kind:
        case "url":
            yield _Name(start, text.rstrip(_TRAIL + "?;&")[:_LONGEST_NAME])
        case "date":
            yield from _dated(start, text)
        case "clock":
            yield _timed(start, text)
        case "scaled":
            yield from _scaled(start, text)
        case "grouped":
            yield _Number(start, text, ((text.replace(" ", "").lstrip("0") or "0",), tuple(_plain_numbers(text))))
        case _:
            yield from _chunk_pieces(start, text)


def _chunk_pieces(start: int, text: str) -> Iterator[_Name | _Number]:
    """Yield a chunk as one name if it is one, else what stands in its parts."""
    lead = _LEAD.match(text)
    begin = lead.end() if lead else 0
    start, word = start + begin, text[begin:].rstrip(_TRAIL)
    if not word or (word.isalpha() and not _is_code_word(word)):
        return
    if len(word) > _LONGEST_NAME:
        yield _Name(start, word[:_LONGEST_NAME])
        yield from _numbers_in(start, word)
    elif compound := _COMPOUND.search(word):
        yield from _chunk_pieces(start, word[: compound.start()])
        yield from _chunk_pieces(start + compound.start() + 1, word[compound.start() + 1 :])
    elif _is_name(word):
        yield _Name(start, word)
    elif separator := next((separator for separator in "/:-" if separator in word), None):
        for part in re.finditer(f"[^{separator}]+", word):
            yield from _chunk_pieces(start + part.start(), part[0])
    else:
        yield from _numbers_in(start, word)


# Names.

# In German, an ordinary word may be tied to a name: `ECONNRESET-Fehler`.
_COMPOUND = re.compile(r"(?<=[^\W_])-[A-ZÄÖÜ][a-zäöüß]+(?:-[A-ZÄÖÜ][a-zäöüß]+)*\Z")
_FLAG = re.compile(rf"--[A-Za-z]|-[A-Za-z]{_NOT_GLUED}")
_ROOTED = re.compile(rf"(?:~|\.{{1,2}})?[/\\][{_W}.]|[A-Za-z]:[/\\]")
_TIED = re.compile(rf"[{_W}](?:@|::|\\)[{_W}]|@[A-Za-z]")
_PLACE = re.compile(r"([^:]+):(\d+(?:[:-]\d+)*)")
_DOTTED = re.compile(rf"[{_W}]\.[{_W}]|(?<![{_W}])\.[A-Za-z]")
_TAGGED = re.compile(r"v\d+", re.IGNORECASE)
_NUMBERED = re.compile(r"([a-z]+)(\d+(?:\.\d+)*)")
_HASH = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}", re.IGNORECASE)
_INNER_CAPITAL = re.compile(r"[a-zß-öø-ÿ][A-ZÀ-ÖØ-Þ]|[A-Z]{2}[a-z]{3}")
_NUMBER = r"\d+(?:[.,'_]\d+)*"
_QUANTITY = re.compile(
    rf"{_NUMBER}[^\W\d_]{{0,20}}|[^\W\d_]{{1,20}}|(?:\d{{1,4}}(?:h|min|m|sec|s|ms|d|x)){{1,4}}\d{{0,4}}[a-z]{{0,3}}"
)
_DOTTED_NUMBER = re.compile(r"\d+(?:\.\d+){2}")
_GROUPS = re.compile(r"[1-9]\d{0,2}([.,'_])\d{3}(?:\1\d{3})*(?:(?!\1)[.,]\d+)?")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_ABBREVIATIONS = frozenset("p.ej p.ex ph.d et.al".split())
# What may stand before a number or a name without making it another: `mid-2025`, `pre-1.0`.
_LOOSE = re.compile(r"(?:early|late|mid|non|over|post|pre|sub|top|under)-", re.IGNORECASE)
# Words inside an ordinary compound: `state-of-the-art`, `up-to-date`.
_LINKS = frozenset(
    "a als al and as at à bien by c ce d da de des do du e el elle en est et for from il in is it ja la le les like"
    " moi n nous of off on one or out per pro s so sur t that the then to und up us vis vous with y".split()
)


def _is_name(word: str) -> bool:
    if _FLAG.match(word) or _ROOTED.match(word) or _TIED.search(word):
        return True
    if place := _PLACE.fullmatch(word):
        return _is_name(place[1])
    if ":" in word or _LOOSE.match(word):
        return False
    return _is_path(word.split("/")) if "/" in word else _is_plain_name(word)


def _is_path(parts: list[str]) -> bool:
    """Tell paths from alternatives (`and/or`, `Q1/Q2`, `a.py/b.py`): some part looks like a file's, and not all do."""
    dotted = [_is_dotted(part) for part in parts]
    if dotted[-1]:
        return not all(dotted)
    alike = [_is_dotted(part) or _is_kebab(part) or "_" in part or bool(_TAGGED.fullmatch(part)) for part in parts]
    return any(alike) and not all(alike)


def _is_plain_name(word: str) -> bool:
    return _is_dotted(word) or _is_kebab(word) or (word.replace("_", "a").isalnum() and _is_code_word(word))


def _is_dotted(word: str) -> bool:
    if not _DOTTED.search(word) or _is_quantity(word):
        return False
    parts = word.split(".")
    return word.casefold() not in _ABBREVIATIONS and not all(len(part) == 1 and part.isalpha() for part in parts)


def _is_kebab(word: str) -> bool:
    parts = word.split("-")
    if len(parts) < 2 or _is_quantity(word) or not any(parts):
        return False
    if any(character.isdigit() for character in word):
        return True
    ordinary = not word.islower() or not word.isascii() or any(part in _LINKS for part in parts)
    return len(parts) > 2 and not ordinary


def _is_code_word(word: str) -> bool:
    if word.isalpha():
        return bool(_INNER_CAPITAL.search(word)) or (len(word) > 3 and word.isupper())
    if not any(character.isalpha() for character in word) or _is_quantity(word):
        return False
    inner = word.strip("_")
    return not inner.isalpha() or (word[0] == "_" and word[-1] != "_")


def _is_quantity(word: str) -> bool:
    """Tell whether `word` is made of numbers with units and ordinary words: `8-16`, `30s`, `50-tablet`, `2h30m`."""
    if not word[:1].isdigit() or _HASH.fullmatch(word) or _ADDRESS.fullmatch(word):
        return False
    if _DOTTED_NUMBER.match(word) and not _GROUPS.fullmatch(word):
        return False
    return all(_QUANTITY.fullmatch(part) for part in re.split("[-/:]", word) if part)


def _spellings(name: str) -> Iterator[str]:
    """Yield the ways to write a folded name that are the same name."""
    yield name
    relative = re.sub(r"^(?:(?:~|\.{1,2})?[/\\])+", "", name)
    if relative != name and (name[0] != "/" or "/" in relative):
        yield relative
    if name.endswith("()"):
        yield name.removesuffix("()")
    if "://" in name:
        yield name.partition("://")[2]
    elif "-" in name and not name.startswith("-"):
        yield name.replace("-", " ")
    elif "\\" in name:
        yield name.replace("\\", "\\\\")
        yield name.replace("\\", "/")
    elif numbered := _NUMBERED.fullmatch(name):
        letters, number = numbered.groups()
        yield from (f"{letters} {number}", f"{letters}-{number}")
        if letters == "v":
            yield from (f"version {number}", *([number] if "." in number else []))


# Numbers.


def _numbers_in(start: int, word: str) -> Iterator[_Number]:
    for found in re.finditer(_NUMBER, word):
        for value in _values(found[0]):
            yield _Number(start + found.start(), found[0], ((value,),))


def _plain_numbers(text: str) -> list[str]:
    return [digits.lstrip("0") or "0" for digits in re.findall(r"\d+", text)]


def _values(written: str) -> list[str]:
    """Return the value of a number, however its thousands are set apart; those of a list such as `1,2,3` singly.

    Groups of three digits are thousands, so `8.000` is eight thousand. Zeros count behind other decimals: `3.10`.
    """
    if groups := _GROUPS.fullmatch(written):
        whole, _, decimals = written.replace(groups[1], "").replace(",", ".").partition(".")
    else:
        whole, *rest = re.split("[.,]", written.replace("'", "").replace("_", ""))
        if len(rest) > 1:
            return _plain_numbers(written)
        decimals = rest[0] if rest else ""
    whole = whole.lstrip("0") or "0"
    return [f"{whole}.{decimals}" if decimals.strip("0") else whole]


def _scaled(start: int, text: str) -> Iterator[_Number]:
    """Yield `8k`, `8 thousand` or `3万` as what it comes to."""
    written = re.match(_NUMBER, text)
    digits = written[0] if written else ""
    [base, *more] = _values(digits)
    if more:
        yield from _numbers_in(start, digits)
        return
    scale = text[len(digits) :]
    power = _POWERS[scale.strip()]
    whole, _, decimals = base.partition(".")
    decimals = decimals.ljust(power, "0")
    [value] = _values(f"{whole}{decimals[:power]}.{decimals[power:] or '0'}")
    # What stands by itself may be told by itself.
    yield _Number(start, text, ((value,),), (base,) if scale[0].isspace() else ())


def _timed(start: int, text: str) -> _Number:
    hour, minute, second, *_ = [*re.findall(r"\d+", text), "00", "00"]
    half = re.search("[AaPp]", text)
    hours = int(hour) % 12 + (12 if half[0] in "Pp" else 0) if half and int(hour) <= 12 else int(hour)
    short = f"{hours:02}:{minute}"
    value = f"{short}:{second}" if text.count(":") > 1 else short
    # In German, "5 am" is most often no time: "Version 5 am Montag".
    readings = ((value,), (hour.lstrip("0"),)) if text.endswith(" am") and ":" not in text else ((value,),)
    return _Number(start, text.lstrip("T").rstrip("Z"), readings, (short, *_plain_numbers(text)))


def _given(piece: _Name | _Number) -> Iterable[str]:
    """Return the values that a piece of a source gives: a name gives the numbers in it."""
    if isinstance(piece, _Number):
        return (*chain.from_iterable(piece.readings), *piece.implied)
    if not any(character.isdigit() for character in piece.text):
        return ()
    decimals = re.findall(r"\d+\.\d+", piece.text)
    return (*_plain_numbers(piece.text), *chain.from_iterable(_values(decimal) for decimal in decimals))


# Dates.


def _dated(start: int, text: str) -> Iterator[_Number]:
    """Yield a date; one that no calendar has is some numbers."""
    month = next((_MONTHS[word.casefold()] for word in _WORD.findall(text) if word.casefold() in _MONTHS), None)
    parts = [int(digits) for digits in re.findall(r"\d+", text)]
    dates = [each for each in _date_readings(text, parts, month) if _is_date(*each)]
    if not dates:
        yield from (_Number(start, digits, ((digits,),)) for digits in _plain_numbers(text))
        return
    readings: list[tuple[str, ...]] = [(_date_values(*each)[0],) for each in dates]
    if month:
        readings.append((*_plain_numbers(text), _month_value(month)))
    implied = chain.from_iterable(_date_values(*each) for each in dates)
    yield _Number(start, text.rstrip("."), tuple(readings), (*implied, *_plain_numbers(text)))


_PartialDate = tuple[int | None, int, int | None]


def _date_readings(text: str, parts: list[int], month: int | None) -> list[_PartialDate]:
    """Return the years, months and days that a date may mean; with slashes, the month may come first or second."""
    years, rest = [part for part in parts if part > 31], [part for part in parts if part <= 31]
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
        # A leap year allows every day that there is.
        date(year or 2000, month, 1 if day is None else day)
    except ValueError:
        return False
    return True


def _date_values(year: int | None, month: int, day: int | None) -> list[str]:
    """Return a date as a value, and then what it says when less of it is told."""
    months = [f"--{month:02}"] if year is None else [f"{year:04}-{month:02}", f"--{month:02}"]
    days = [] if day is None else [f"{each}-{day:02}" for each in months]
    return days + months


def _day_values(day: date) -> list[str]:
    return [str(day.year), *_date_values(day.year, day.month, day.day)]


def _month_value(month: int) -> str:
    return f"month {month}"


# Numbers that are written as words.


_WRITTEN_NUMBERS = {
    0: "zero null zéro cero",
    1: "one eins ein un une uno una first erst premier première primero primera primer",
    2: "two zwei zwo deux dos second zweit twice deuxième seconde segundo segunda",
    3: "three drei trois tres third dritt troisième tercero tercera tercer",
    4: "four vier quatre cuatro fourth viert quatrième cuarto cuarta",
    5: "five fünf cinq cinco fifth fünft cinquième quinto quinta",
    6: "six sechs seis sixth sechst sixième sexto sexta",
    7: "seven sieben sept siete seventh siebt septième séptimo séptima",
    8: "eight acht huit ocho eighth huitième octavo octava",
    9: "nine neun neuf nueve ninth neunt neuvième noveno novena",
    10: "ten zehn dix diez tenth zehnt dixième décimo décima",
    11: "eleven elf onze once eleventh elft onzième",
    12: "twelve zwölf douze doce twelfth zwölft douzième dozen dutzend douzaine docena",
    13: "thirteen dreizehn treize trece",
    14: "fourteen vierzehn quatorze catorce",
    15: "fifteen fünfzehn quinze quince quinzaine quincena",
    16: "sixteen sechzehn seize dieciséis",
    17: "seventeen siebzehn dix-sept diecisiete",
    18: "eighteen achtzehn dix-huit dieciocho",
    19: "nineteen neunzehn dix-neuf diecinueve",
    20: "twenty zwanzig vingt veinte",
    30: "thirty dreißig trente treinta",
    40: "forty vierzig quarante cuarenta",
    50: "fifty fünfzig cinquante cincuenta",
    60: "sixty sechzig soixante sesenta",
    70: "seventy siebzig soixante-dix setenta",
    80: "eighty achtzig quatre-vingt quatre-vingts ochenta",
    90: "ninety neunzig quatre-vingt-dix noventa",
    100: "hundred hundert cent cien ciento",
    1000: "thousand tausend mille mil",
}
_SIMPLE_NUMBERS = {word.casefold(): value for value, words in _WRITTEN_NUMBERS.items() for word in words.split()}
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
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def _word_values(normal: str) -> set[str]:
    """Return the values of numbers and months that a text has as words."""
    written = set(_WORD.findall(normal))
    whole = {word.casefold() for word in written}
    words = whole | {part for word in whole for part in word.split("-")}
    words |= {_GERMAN_ENDING.sub("", word) for word in words}
    counted = {str(_WORD_NUMBERS[word]) for word in words & _WORD_NUMBERS.keys()}
    months = {_month_value(_MONTHS[word]) for word in words & _MONTHS.keys()}
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


# Quotations.

_QUOTATION = re.compile(
    r"`(?P<code>[^`\n]{1,1000})`"
    rf"|(?<![{_W}])\"([^\"\n]{{1,1000}})\"{_NOT_GLUED}"
    r"|“([^“”\n]{1,1000})”|„([^„“”\n]{1,1000})[“”]|«([^«»\n]{1,1000})»|»([^«»\n]{1,1000})«"
    r"|「([^「」\n]{1,1000})」|『([^『』\n]{1,1000})』"
    rf"|(?<![{_W}])‘([^‘\n]{{1,1000}}?)’{_NOT_GLUED}|‚([^‚‘’\n]{{1,1000}})[‘’]"
)
_ELLIPSIS = re.compile(r"\.{3,}")
_PUNCTUATION = " \t.,;:!?。、・"
_SHORTEST_QUOTATION = 3


def _quotations(normal: str) -> Iterator[_Quotation]:
    """Yield what stands between quotation marks or backticks; a number there is left to the numbers."""
    for found in _QUOTATION.finditer(normal):
        group = found.lastindex or 0
        quoted = found[group].lstrip()
        if quoted and not _is_quantity(quoted.rstrip()):
            yield _Quotation(found.end(group) - len(quoted), quoted.rstrip(), found["code"] is not None)


# Text in one form, and where something occurs in it.

# Invisible characters are dropped, and hyphens that look like one are one: models like to write them into names.
_ALIKE = str.maketrans("\u2010\u2011\u2212", "---", "\u00ad\u200b\u200c\u200d\u2060\ufeff")
_STRAIGHT = str.maketrans("‘’‚‛′“”„‟″«»「」『』–—―", "'" * 5 + '"' * 11 + "---")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_ESCAPES = ("\\n", "\\r", "\\t")


def _normal(text: str) -> str:
    """Return the form of a text in which its pieces are found: compatible characters, digits and hyphens are one."""
    plain = unicodedata.normalize("NFKC", text).translate(_ALIKE)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


def _folded(normal: str) -> str:
    """Return the form of a normal text in which texts are compared: no case, one space, straight quotes and dashes.

    It is made character by character, so that a part of a text, folded, is a part of the folded text.
    """
    return " ".join(normal.translate(_STRAIGHT).casefold().split())


def _occurs(part: str, text: str, cut_short: bool = False) -> bool:
    """Tell whether `part` stands in `text` and does not begin or end inside a word; `cut_short`, it may end inside."""
    place = text.find(part)
    while place >= 0:
        if _begins(part, text, place) and (cut_short or _ends(part, text, place + len(part))):
            return True
        place = text.find(part, place + 1)
    return False


def _begins(part: str, text: str, place: int) -> bool:
    before = text[place - 1 : place]
    if part[:1].isdigit():
        return not before.isdigit()
    return not (_is_word(part[:1]) and _is_word(before)) or text[max(0, place - 2) : place] in _ESCAPES


def _ends(part: str, text: str, place: int) -> bool:
    return not (_is_word(part[-1:]) and _is_word(text[place : place + 1]))


def _is_word(character: str) -> bool:
    return bool(_WORD_CHARACTER.match(character))


_WORD_CHARACTER = re.compile(f"[{_W}]")
