"""Reads the values of a row (numbers and identifiers), and finds those of two rows that exclude each other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of
from esker.server.core.words.lists import Cue, words
from esker.server.core.words.scripts import CJK
from esker.server.providers.extractive.value_kinds import form_of

_CHARACTER = rf"[^\W{CJK}]"
_WORD = re.compile(rf"\+?{_CHARACTER}{{1,80}}(?:[-._:/\\@,'’]{_CHARACTER}{{1,80}}){{0,12}}|[{CJK}]")
_IS_CJK = re.compile(rf"[{CJK}]")
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_SENTENCE_END = re.compile(r"[.!?;:]\s+|[，。！？；：]")
_IN_IDENTIFIER = re.compile(r"[_.@:/\\]")
_CLOCK = re.compile(r"\d{1,2}(?::\d\d){1,2}")
_IN_DATE = re.compile(r"[年月日号]")
_SENTENCE_OPENERS = frozenset('.!?:;\n•→—("“„«`*')
# Names of days do not distinguish two rows: they are a part of a date, which is a value.
_NO_NAMES = frozenset(word.casefold() for path in ("dates.weekdays", "dates.months") for word in words(path))
_STATES = Cue(*words("reflector.states"))
# All nouns of this language are capitalised.
_WITHOUT_NAMES = "german"


@dataclass(frozen=True, slots=True)
class RowValue:
    """A number or an identifier of a text, folded, with the words before and after it.

    `key` is the identifier that it is the value of ("PAGE_SIZE is 50"), or nothing. `stated` is False if no verb comes
    before it: then it rather tells what the statement is about ("VLAN 20 is for desks"). `in_name`: it is the number
    behind a name ("Olmo 14"). `head` are the words of its sentence up to the verb or, without one, to the value.
    """

    text: str
    before: str
    after: str
    key: str
    is_number: bool
    stated: bool
    in_name: bool
    head: str

    @property
    def unit(self) -> str:
        """The word after a number, if it can be its unit or the rest of its date."""
        return "" if self.after in STOP_WORDS[ENGLISH] or _STATES.fullmatch(self.after) else self.after

    @property
    def is_time(self) -> bool:
        """Whether it is a time of day or a part of a date."""
        return bool(_CLOCK.fullmatch(self.text)) or self.unit in _NO_NAMES or bool(_IN_DATE.fullmatch(self.unit))

    @property
    def is_assigned(self) -> bool:
        """Whether an identifier comes directly before it ("PAGE_SIZE=50"), or a verb."""
        return self.stated or (bool(self.key) and self.key == self.before)


@dataclass(frozen=True)
class Values:
    """The values of a text, and what else distinguishes it: its names, and its other words in order."""

    values: tuple[RowValue, ...]
    names: frozenset[str]
    frame: tuple[str, ...]
    is_cjk: bool

    @cached_property
    def texts(self) -> frozenset[str]:
        """The values alone."""
        return frozenset(value.text for value in self.values)


def read_values(text: str) -> Values:
    """Return the values of a text."""
    found = list(_WORD.finditer(text))
    folded = [match[0].casefold() for match in found]
    places = [place for place, match in enumerate(found) if _is_value(match[0])]
    states = _STATES.search(text)
    behind = states.end() if states else len(text)
    names = frozenset(() if language_of(text) == _WITHOUT_NAMES else _names(text, found)) - _NO_NAMES
    return Values(
        tuple(
            RowValue(
                folded[place],
                _at(folded, place - 1),
                _at(folded, place + 1),
                _key(folded, place),
                not _LETTERS.search(folded[place]),
                found[place].start() >= behind,
                place > 0 and found[place - 1][0].casefold() in names and found[place][0].isdecimal(),
                _head(text[: found[place].start()]),
            )
            for place in places
        ),
        names,
        tuple(word for place, word in enumerate(folded) if place not in places),
        bool(_IS_CJK.search(text)),
    )


def _is_value(word: str) -> bool:
    return bool(_DIGITS.search(word) or _IN_IDENTIFIER.search(word))


def _at(folded: Sequence[str], place: int) -> str:
    return folded[place] if 0 <= place < len(folded) else ""


def _key(folded: Sequence[str], place: int) -> str:
    """Return the identifier that precedes a value directly or before one word, such as a verb."""
    before = folded[max(0, place - 2) : place]
    return next((word for word in reversed(before) if _is_value(word) and _LETTERS.search(word)), "")


def _head(before: str) -> str:
    """Return the beginning of the last clause or else of the last sentence of a text, up to its verb if it has one."""
    sentence = _SENTENCE_END.split(before)[-1]
    for part in (sentence.rpartition(", ")[2], sentence):
        if (verb := _STATES.search(part)) and part[: verb.start()].strip():
            return part[: verb.start()]
    return sentence


def _names(text: str, found: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the capitalised words that are neither values nor the first of a sentence."""
    for match in found:
        before = text[: match.start()].rstrip(" ")[-1:]
        if match[0][:1].isupper() and before and before not in _SENTENCE_OPENERS and not _is_value(match[0]):
            yield match[0].casefold()


def rivals(newer: Values, older: Values) -> list[tuple[RowValue, RowValue]]:
    """Return the pairs of a newer and an older value that exclude each other.

    Nothing is returned if the older text has a value to which the newer one says nothing, or if both name different
    things: "P3: 1.8 mg" and "P8: 0.4 mg", "Tallow has 50 rows" and "Quarry has 200 rows".
    """
    given_up = [value for value in older.values if value.text not in newer.texts]
    given = [value for value in newer.values if value.text not in older.texts]
    exclude = _take_turns if {*older.frame} <= {*newer.frame} else _excludes
    found = [(now, then) for then in given_up for now in given if exclude(now, then)]
    beside = {then for then in given_up if not then.in_name} - {then for _, then in found}
    if beside or len({then.is_number for _, then in found}) > 1:
        return []
    return [] if name_different_things(newer, older) else found


def name_different_things(one: Values, other: Values) -> bool:
    """Whether each of two texts has a name that the other lacks."""
    return bool(one.names - other.names - {*other.frame}) and bool(other.names - one.names - {*one.frame})


def _excludes(now: RowValue, then: RowValue) -> bool:
    """Whether two values are of one kind: amounts of one unit, values of one key, variants of one identifier."""
    if now.is_number != then.is_number:
        return False
    if now.key and now.key == then.key and now.is_assigned and then.is_assigned:
        return True
    if now.is_number and now.unit and then.unit:
        return now.unit == then.unit
    if not now.stated or not then.stated:
        return False
    same_before = bool(now.before) and now.before == then.before
    if now.is_number:
        return same_before
    return form_of(now.text) == form_of(then.text) and (same_before or bool(_parts(now.text) & _parts(then.text)))


def _take_turns(now: RowValue, then: RowValue) -> bool:
    """Whether two values exclude each other, in texts of which the newer has all words of the older."""
    both_of_noun = then.stated and now.is_number and then.is_number and bool(now.before) and now.before == then.before
    return both_of_noun or _excludes(now, then)


def _parts(text: str) -> frozenset[str]:
    return frozenset(part for part in _LETTERS.findall(text) if len(part) > 1)
