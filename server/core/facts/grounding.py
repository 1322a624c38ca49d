"""Whether a fact that a language model wrote is grounded: its sources contain its names, numbers and quotations.

Names are paths, flags, versions and code; numbers include dates and clock times. Ordinary words are not looked up,
since a fact may use its own. A name or a quotation must occur as it is written, apart from case and typography; a
number must occur as a value, in any notation.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import chain

from esker.server.core.facts.identifiers import COMPOUND, PLACE, ROOTED, is_code_word, is_name, spellings
from esker.server.core.facts.numerals import (
    CLOCK,
    DATE,
    HASH,
    SCALED,
    Number,
    dated,
    day_values,
    is_quantity,
    numbers_in,
    plain_numbers,
    scaled,
    timed,
    values_of,
    word_values,
)
from esker.server.core.text.folding import LETTERS, NOT_GLUED, folded_form, normal_form, occurs, repeated


@dataclass(frozen=True, slots=True)
class Grounds:
    """Source texts: their folded words, and the values of the numbers and dates in them."""

    text: str
    values: frozenset[str]

    def missing(self, text: str, days: Iterable[date] = ()) -> list[str]:
        """Return the names, numbers and quoted words of `text` that are not grounded, in order, each once.

        `days` are days that it may name as well. A sentence that the texts contain word for word is grounded as it is,
        so that no misread number can make it look invented.
        """
        normal = normal_form(text)
        known = frozenset(chain.from_iterable(day_values(day) for day in days))
        found = [(piece.start, piece.text) for piece in _pieces(normal) if not self._holds(piece, known)]
        found += [(each.start, each.text) for each in _quotations(normal) if not self._says(each.text)]
        if not found:
            return []
        verbatim = [span for span in _sentences(normal) if self._repeats(normal[slice(*span)])]
        invented = [
            (at, text) for at, text in sorted(found) if not any(a <= at and at + len(text) <= b for a, b in verbatim)
        ]
        return list(dict.fromkeys(text for _, text in invented))

    def _repeats(self, sentence: str) -> bool:
        part = folded_form(sentence).rstrip(_PUNCTUATION)
        return bool(part) and repeated(part, self.text)

    def _holds(self, piece: "_Identifier | Number", known: frozenset[str]) -> bool:
        if isinstance(piece, _Identifier):
            return self._names(piece.text)
        return any(all(value in self.values or value in known for value in reading) for reading in piece.readings)

    def _says(self, quoted: str) -> bool:
        """Whether each part of a quotation occurs, apart from punctuation at its ends, or it is a known name."""
        parts = (part.strip(_PUNCTUATION) for part in _ELLIPSIS.split(quoted))
        if all(len(part) < _SHORTEST_QUOTATION or occurs(folded_form(part), self.text) for part in parts):
            return True
        return " " not in quoted and any(isinstance(p, _Identifier) for p in _pieces(quoted)) and self._names(quoted)

    def _names(self, name: str) -> bool:
        folded = folded_form(name)
        if len(name) >= _LONGEST_NAME:
            return occurs(folded, self.text, cut_short=True)
        if any(occurs(spelling, self.text) for spelling in spellings(folded)):
            return True
        if HASH.fullmatch(folded):
            return occurs(folded, self.text, cut_short=True)
        return self._places(folded) or self._joins(folded)

    def _places(self, name: str) -> bool:
        """Whether `name` is a file and a line of it that are named separately."""
        place = PLACE.fullmatch(name)
        return bool(place) and self._names(place[1]) and all(n in self.values for n in plain_numbers(place[2]))

    def _joins(self, path: str) -> bool:
        """Whether `path` joins a folder and a relative path that are named separately."""
        if not ROOTED.match(path):
            return False
        for slash in re.finditer(r"(?<=.)[/\\]", path):
            if not occurs(path[: slash.start()], self.text):
                return False
            if occurs(path[slash.end() :], self.text):
                return True
        return False


def grounds_in(text: str) -> Grounds:
    """Read a text once, so that many facts can be checked against it, in time linear in its length."""
    normal = normal_form(text)
    tokens = {(token.lastgroup, token[0]) for token in _TOKEN.finditer(normal)}
    pieces = chain.from_iterable(_token_pieces(kind, 0, token) for kind, token in tokens)
    values = chain.from_iterable(_grounded_values(piece) for piece in pieces)
    return Grounds(folded_form(normal), frozenset(values) | word_values(normal))


def joined(grounds: Iterable[Grounds]) -> Grounds:
    """Return the grounds of several texts together. Nothing occurs across the border of two texts."""
    every = list(grounds)
    return Grounds("\n".join(each.text for each in every), frozenset[str]().union(*(each.values for each in every)))


# Pieces: the names, numbers and quotations that are looked up


@dataclass(frozen=True, slots=True)
class _Identifier:
    """An identifier, at `start` of the normal text."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class _Quotation:
    """The words between quotation marks or backticks."""

    start: int
    text: str


_SENTENCE_BREAK = re.compile(r"\n+|(?<=[.!?。！？])[\"')\]”’»」]*(?:[ \t]+|(?<=[。！？]))|\Z")


def _sentences(normal: str) -> Iterator[tuple[int, int]]:
    """Yield where the whole text, and then each of its sentences and lines, begins and ends."""
    yield 0, len(normal)
    start = 0
    for found in _SENTENCE_BREAK.finditer(normal):
        yield start, found.end()
        start = found.end()


_TOKEN = re.compile(
    # A cheap test that most positions fail.
    rf"(?=[{LETTERS}.:/\\@#~-])"
    rf"(?:(?P<url>[A-Za-z][A-Za-z0-9+.-]{{1,20}}://[{LETTERS}%&=?#~+.:;@$/-]+)"
    rf"|(?P<date>{DATE})|(?P<clock>{CLOCK})|(?P<scaled>{SCALED})"
    rf"|(?P<grouped>\d{{1,3}}(?:\ \d{{3}})+(?![{LETTERS}]|[-.,:/]\d))"
    rf"|(?P<chunk>(?!-\d)(?:[{LETTERS}:/\\@#~-]|(?<!\.)\.(?!\.)|\.\.(?=[/\\])|(?<=\d)[,'](?=\d))+))"
)
# Bullets, repeated slashes and the like before a chunk, but not what belongs to a path or a flag.
_LEAD = re.compile(r"(?:[:#\\,']|-(?!-?[A-Za-z])|~(?![/\\])|/(?=/)|\.(?=\d))*")
_TRAIL = ".:-/\\@#~,'"
# Characters of a name that are compared; the rest is ignored.
_LONGEST_NAME = 300


def _pieces(normal: str) -> Iterator[_Identifier | Number]:
    """Yield the names and numbers of a normal text in order."""
    for token in _TOKEN.finditer(normal):
        yield from _token_pieces(token.lastgroup, token.start(), token[0])


def _token_pieces(kind: str | None, start: int, text: str) -> Iterator[_Identifier | Number]:
    match kind:
        case "url":
            yield _Identifier(start, text.rstrip(_TRAIL + "?;&")[:_LONGEST_NAME])
        case "date":
            yield from dated(start, text)
        case "clock":
            yield timed(start, text)
        case "scaled":
            yield from scaled(start, text)
        case "grouped":
            yield Number(start, text, ((text.replace(" ", "").lstrip("0") or "0",), tuple(plain_numbers(text))))
        case _:
            yield from _chunk_pieces(start, text)


def _chunk_pieces(start: int, text: str) -> Iterator[_Identifier | Number]:
    """Yield a chunk as one name if it is one, else the pieces of its parts."""
    lead = _LEAD.match(text)
    begin = lead.end() if lead else 0
    start, word = start + begin, text[begin:].rstrip(_TRAIL)
    if not word or (word.isalpha() and not is_code_word(word)):
        return
    if len(word) > _LONGEST_NAME:
        yield _Identifier(start, word[:_LONGEST_NAME])
        yield from numbers_in(start, word)
    elif compound := COMPOUND.search(word):
        yield from _chunk_pieces(start, word[: compound.start()])
        yield from _chunk_pieces(start + compound.start() + 1, word[compound.start() + 1 :])
    elif is_name(word):
        yield _Identifier(start, word)
    elif separator := next((separator for separator in "/:-" if separator in word), None):
        for part in re.finditer(f"[^{separator}]+", word):
            yield from _chunk_pieces(start + part.start(), part[0])
    else:
        yield from numbers_in(start, word)


def _grounded_values(piece: _Identifier | Number) -> Iterable[str]:
    """Return the values that a piece of a source grounds; a name grounds the numbers in it."""
    if isinstance(piece, Number):
        return (*chain.from_iterable(piece.readings), *piece.implied)
    if not any(character.isdigit() for character in piece.text):
        return ()
    decimals = re.findall(r"\d+\.\d+", piece.text)
    return (*plain_numbers(piece.text), *chain.from_iterable(values_of(decimal) for decimal in decimals))


# Quotations

_QUOTATION = re.compile(
    r"`([^`\n]{1,1000})`"
    rf"|(?<![{LETTERS}])\"([^\"\n]{{1,1000}})\"{NOT_GLUED}"
    r"|“([^“”\n]{1,1000})”|„([^„“”\n]{1,1000})[“”]|«([^«»\n]{1,1000})»|»([^«»\n]{1,1000})«"
    r"|「([^「」\n]{1,1000})」|『([^『』\n]{1,1000})』"
    rf"|(?<![{LETTERS}])‘([^‘\n]{{1,1000}}?)’{NOT_GLUED}|‚([^‚‘’\n]{{1,1000}})[‘’]"
)
_ELLIPSIS = re.compile(r"\.{3,}")
_PUNCTUATION = " \t.,;:!?。、・"
_SHORTEST_QUOTATION = 3


def _quotations(normal: str) -> Iterator[_Quotation]:
    """Yield the words between quotation marks or backticks, except quantities, which are read as numbers."""
    for found in _QUOTATION.finditer(normal):
        group = found.lastindex or 0
        quoted = found[group].lstrip()
        if quoted and not is_quantity(quoted.rstrip()):
            yield _Quotation(found.end(group) - len(quoted), quoted.rstrip())
