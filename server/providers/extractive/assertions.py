"""Reads an assertion by its words alone: its subject, its scope, its values, and the value that it gives up.

`superseding` compares the results. The words are in `server/core/words`; a part that no pattern finds stays empty, and
nothing is replaced because of it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from esker.server.core.facts.contradiction import negates
from esker.server.core.facts.same_fact import Fingerprint, fingerprint
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import any_of, spaced, unspaced, whole, words
from esker.server.core.words.scripts import CJK

# Maximum words of a value that is an ordinary word; a longer phrase is a description.
_MOST_WORDS = 2
_CJK = re.compile(rf"[{CJK}]")


def _list(name: str) -> tuple[str, ...]:
    return words(f"assertions.{name}")


def _with_spaces(*names: str) -> str:
    """Return a pattern for the entries of some lists, in the scripts that put spaces between words."""
    return any_of(spaced(entry for name in names for entry in _list(name)))


def _without_spaces(*names: str) -> str:
    """Return a pattern for the entries of some lists in Chinese and Japanese."""
    return any_of(unspaced(entry for name in names for entry in _list(name)))


_OLD_VALUE = re.compile(
    rf"\b{_with_spaces('instead', 'gives_up')} (?P<old>[^,.;:!?()]{{2,60}})"
    rf"|{_without_spaces('instead', 'gives_up')} ?(?P<cjk>[^，。；：！？,.]{{1,30}})"
    rf"|(?P<jp>[^，。、；：！？,.\s]{{1,30}}?){_without_spaces('instead_behind', 'gives_up_behind')}",
    re.IGNORECASE,
)
_END_OF_VALUE = re.compile(whole(_list("value_ends")), re.IGNORECASE)
# The scope of an assertion: a purpose or occasion, or a place, which can also be the value itself ("keep it in X").
_PURPOSE = re.compile(
    rf"\b{_with_spaces('purposes')} ([^,.;:!?()]{{2,60}})"
    rf"|([^，。；：！？,.\s]{{1,12}}?){_without_spaces('purposes')}"
    rf"|{any_of(_list('purpose_forms'))}",
    re.IGNORECASE,
)
_PLACE = re.compile(rf"\b{_with_spaces('places')} ([^,.;:!?()]{{2,60}})", re.IGNORECASE)
_END_OF_SCOPE = re.compile(rf"\b{_with_spaces('instead', 'scope_ends')}\b", re.IGNORECASE)
# The groups are the subject and the value.
_VALUE_OF = re.compile(
    rf"^({_with_spaces('owners')} (?:[^\s,;:]+ ){{1,5}}?){_with_spaces('copulas')} ([^,;:!?()]{{1,80}})"
    rf"|{any_of(_list('value_forms'))}",
    re.IGNORECASE,
)
# A value is a name or a number, not a property: "is Render", "is on Friday", not "is fast".
_VALUE = re.compile(
    rf"(?:(?i:{_with_spaces('now')})\s)?"
    rf"(?P<where>{_with_spaces('value_places')}\s)?(?:{_with_spaces('articles', 'indefinite')}\s)?"
    r"(?P<name>[\"“„«'`~/]?[A-ZÀ-ÖØ-Þ0-9]|[^\s]{0,60}[./_\d-][^\s])"
)
# Subjects whose value can be an ordinary word.
_SLOT = re.compile(rf"\b{_with_spaces('slots')} $", re.IGNORECASE)
# Subjects of which many exist at a time, so that a new one replaces none.
_LOOSE = re.compile(rf"\b{_with_spaces('many')} $", re.IGNORECASE)

# The opening of a correction, which is not part of the statement.
_OPENER = re.compile(
    rf"^(?:(?:{_with_spaces('openers')}(?:[,.:;!—–]| [—–-])|{_with_spaces('plain_openers')}\b)"
    rf"[ ,.:;!—–-]{{0,4}}){{1,4}}"
    rf"|^{_without_spaces('openers')}[，、。：,.: ]{{0,3}}",
    re.IGNORECASE,
)
# Openings that name the speaker or a decision; the statement is the same without them.
_LEAD = re.compile(rf"^(?:{_with_spaces('leads')} ){{1,4}}|^{_without_spaces('leads')}{{1,2}}", re.IGNORECASE)
_DAY = any_of(_list("days"))
_TIMES = any_of(_list("times"))
_SIZES = r"[kmgt]i?b|bytes?|(?:kilo|mega|giga|tera)bytes?"
# Durations and deadlines, which do not distinguish two assertions.
_WHEN = re.compile(
    rf"\b{_with_spaces('when')} (?:{_with_spaces('when_fillers')} ){{0,2}}"
    rf"(?:(?:\d[\d.,]{{0,9}}|{_with_spaces('counts')})[ -]?{_TIMES}"
    rf"|{_with_spaces('when_ends')}|{_DAY}|\d{{1,2}}(?::\d\d)?(?: ?[ap]m)?)"
    r"(?![^\s,.;:!?)])",
    re.IGNORECASE,
)
# Words that mark a change: the statement holds from now on.
_CHANGE = re.compile(
    rf"[ ,]{{0,2}}\b{_with_spaces('changes')}\b[ ,]{{0,2}}|{_without_spaces('changes')}", re.IGNORECASE
)
# The old value, which a text often names beside the new one.
_GIVEN_UP = re.compile(
    rf" {_with_spaces('instead')} \S{{1,60}}(?<![,.;:!?])"
    rf"|[，,]? ?{_without_spaces('instead')}[^\s，。,.]{{1,30}}"
    rf"|[^\s，。、{CJK}]{{1,30}}{_without_spaces('instead_behind')}",
    re.IGNORECASE,
)
_LETTER = rf"[^\W{CJK}]"
_NAME_WORD = rf"[A-ZÀ-ÖØ-Þ](?:(?:{_LETTER}|[.+#/-]){{0,40}}(?:{_LETTER}|[+#]))?"
_NAME = (
    rf"(?:{_NAME_WORD}(?: {_NAME_WORD}| \d[\d.]{{0,8}}(?<!\.)){{0,2}}"
    rf"|(?:{_LETTER}{{1,20}}[-./]){{1,4}}{_LETTER}{{1,20}})"
)
# A name is a value after a verb of using or, without one, after a preposition of place. Many things can be used at a
# time, so a use must name its purpose; a thing is kept in only one place.
_USED = re.compile(
    rf"\b(?i:{_with_spaces('uses')}) (?P<value>{_NAME})"
    rf"|{_without_spaces('uses')} ?(?P<zh>{_NAME})|(?P<jp>{_NAME}) ?{_without_spaces('uses_behind')}"
)
_KEPT = re.compile(
    rf"\b(?i:{_with_spaces('kept')}) (?:(?i:{_with_spaces('articles')}) )?(?P<value>{_NAME})"
    rf"|{_without_spaces('kept')} ?(?P<zh>{_NAME})|(?P<jp>{_NAME}) ?{_without_spaces('kept_behind')}"
)
# An amount has a unit or follows a word such as "is"; any other number can be the name of one of many ("test 3").
_AMOUNT = re.compile(
    rf"(?<!{_LETTER})(?<![.,:/-])(?P<sign>[$€£]?)\d[\d.,:]{{0,11}}(?<![.,:]) ?"
    rf"(?P<unit>(?:{_TIMES}|{_SIZES}|{any_of(_list('counted'))})(?!{_LETTER}))"
    rf"|(?:\b{_with_spaces('equals')}\b|=|{_without_spaces('equals')}) ?(?P<sum>[$€£]?\d[\d.,:]{{0,11}}(?<![.,:]))"
    rf"(?= {_with_spaces('sum_ends')}\b|[.!,;。！，で]|$)",
    re.IGNORECASE,
)
_KINDS = {"time": re.compile(_TIMES, re.IGNORECASE), "size": re.compile(_SIZES, re.IGNORECASE)}
_DAY_NAME = re.compile(_DAY, re.IGNORECASE)
# Verbs of lasting states and settings, not of single events: "takes 30 seconds", not "took 30 seconds".
_LASTS = re.compile(rf"{whole(_list('lasts'))}|=", re.IGNORECASE)
# One of several, each with an amount of its own.
_ONE_OF_MANY = re.compile(rf"^{_with_spaces('one_of_many')}\b|^{_without_spaces('one_of_many')}", re.IGNORECASE)
# "Move X to B" and "back to B for X", done or decided: no word before or after postpones it.
_THING = r"(?P<thing>[^,.;:!?()]{2,40}?)"
_MOVES = tuple(
    re.compile(
        "^"
        + form.replace("<what>", _THING).replace("<name>", f"(?P<value>{_NAME})")
        + f"(?: (?i:{_with_spaces('move_ends').replace('<day>', _DAY)}))?[ .!。了]{{0,3}}$"
    )
    for form in (f"(?i:{any_of(_list('moves'))}) <what> (?i:{any_of(_list('moves_to'))}) <name>", *_list("move_forms"))
)


def _all_terms(name: str) -> frozenset[str]:
    """Return the words of a list together with their stems."""
    return frozenset(term for word in _list(name) for term in (word, *terms(word)))


# Verbs of being somewhere and of using, and small words: a sentence without them and its value names its subject.
_IS_AT, _USE, _SMALL = _all_terms("being"), _all_terms("using"), _all_terms("small")
_ARTICLES = frozenset((*_list("articles"), *_list("indefinite"), *_list("other_articles")))
_WORD = re.compile(rf"[{CJK}]|(?:[^\W{CJK}]|[.,:/+#-](?=\w)|[$€£%=])+")
# Maximum characters of a sentence that is compared word by word; a longer text is rarely repeated with one change.
_LONGEST_SENTENCE = 300


@dataclass(frozen=True, slots=True)
class ValueSlot:
    """A value in its sentence: its kind, and the stems of the words before and after it."""

    value: str
    kind: str
    before: tuple[str, ...]
    behind: tuple[str, ...]

    @property
    def things(self) -> frozenset[str]:
        """The stems of the subject of the sentence."""
        return frozenset((*self.before, *self.behind)) - _IS_AT - _USE - _SMALL


@dataclass(frozen=True, slots=True)
class Move:
    """A move: the terms of the thing, the place that it is moved to, and the kind of that place."""

    thing: frozenset[str]
    value: str
    kind: str


@dataclass(frozen=True, slots=True)
class Value:
    """A named value: the terms of its subject, the preposition before it, and its own terms."""

    subject: frozenset[str]
    where: str
    named: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion. `name` identifies it when it is replaced: the id of a row, or the content of a fact.

    `old` contains the terms of the value that it gives up, `purpose` and `place` those of its scope. `corrects`: it is
    a correction; `change`: it is marked as a change. `value` is the value in "X is value"; `named` is the one name, and
    `amounts` are the amounts, that a later sentence can replace with another.
    """

    name: str
    fingerprint: Fingerprint
    is_cjk: bool
    old: frozenset[str]
    purpose: frozenset[str]
    place: frozenset[str]
    corrects: bool
    change: bool
    value: Value | None
    named: ValueSlot | None
    amounts: tuple[ValueSlot, ...]
    move: Move | None


def read_assertion(name: str, content: str) -> Assertion:
    """Return the assertion in the content of a row or fact."""
    statement = _OPENER.sub("", without_label(content).split(labels.IN_ANSWER, 1)[0])
    lasting = _WHEN.sub("", statement)
    sentence = _sentence(statement)
    corrects = content.startswith(labels.CORRECTION)
    return Assertion(
        name=name,
        fingerprint=fingerprint(statement),
        is_cjk=bool(_CJK.search(statement)),
        old=_old_value(statement),
        purpose=_after(_PURPOSE, lasting),
        place=_after(_PLACE, lasting),
        corrects=corrects,
        change=corrects or bool(_CHANGE.search(statement)),
        value=_value_of(statement),
        named=_named(_WHEN.sub("", sentence)),
        amounts=tuple(_amounts(sentence)),
        move=_move(sentence),
    )


def _sentence(statement: str) -> str:
    """Return a sentence without its lead, its words of change and the old value; empty for a long text."""
    if len(statement) > _LONGEST_SENTENCE:
        return ""
    bare = _GIVEN_UP.sub("", _CHANGE.sub(" ", statement)).strip()
    return _LEAD.sub("", bare)


def _old_value(text: str) -> frozenset[str]:
    """Return the terms of the value that a text says is given up."""
    found = _OLD_VALUE.search(text)
    if not found:
        return frozenset()
    named = next(part for part in found.groups() if part)
    # In Japanese the value comes before its mark, and its purpose before the value.
    parts = _END_OF_VALUE.split(named)
    return frozenset(terms(parts[-1] if found["jp"] else parts[0]))


def _after(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    """Return the terms of the scopes that a pattern finds in a text."""
    found = (next(part for part in match.groups() if part) for match in pattern.finditer(text))
    return frozenset(term for scope in found for term in terms(_END_OF_SCOPE.split(scope, 1)[0]))


def _value_of(text: str) -> Value | None:
    """Return the value in a text such as "X is value", or None."""
    found = _VALUE_OF.search(text)
    if not found:
        return None
    subject, said = (part for part in found.groups() if part)
    value = _VALUE.match(said)
    in_a_word = bool(_SLOT.search(subject)) and len(said.split()) <= _MOST_WORDS
    if _is_loose(text) or not (value or in_a_word):
        return None
    where = ((value and value["where"]) or "").strip().casefold()
    found_value = Value(frozenset(terms(subject)), where, frozenset(terms(said)))
    return found_value if found_value.subject and found_value.named else None


def _is_loose(text: str) -> bool:
    """Whether the subject of a text is one of which many exist at a time."""
    found = _VALUE_OF.search(text)
    return bool(found and found[1] and _LOOSE.search(found[1]))


def _named(sentence: str) -> ValueSlot | None:
    """Return the one name in a sentence about the use or the place of something; None if there are several."""
    used = list(_USED.finditer(sentence))
    found = used or list(_KEPT.finditer(sentence))
    if len(found) != 1 or negates(fingerprint(sentence)):
        return None
    group = found[0].lastgroup or ""
    slot = _slot(sentence, found[0].span(group), _kind_of_name(found[0][group]))
    return slot if (slot.things if used else _says_where(slot)) else None


def _says_where(slot: ValueSlot) -> bool:
    """Whether a sentence says where something is; a place at its beginning is only the scope of the rest."""
    opens = len(slot.before) <= 1
    return not opens and bool(_IS_AT & {*slot.before, *slot.behind})


def _kind_of_name(name: str) -> str:
    return "day" if _DAY_NAME.fullmatch(name) else "name"


def _amounts(sentence: str) -> Iterator[ValueSlot]:
    """Yield the amounts in a sentence, if it describes a lasting state of one thing."""
    if not _LASTS.search(sentence) or _ONE_OF_MANY.search(sentence) or _is_loose(sentence):
        return
    for found in _AMOUNT.finditer(sentence):
        kind = "" if found["sum"] else found["sign"] + _kind_of_unit(found["unit"])
        yield _slot(sentence, found.span("sum" if found["sum"] else 0), kind)


def _kind_of_unit(unit: str) -> str:
    kinds = (kind for kind, units in _KINDS.items() if units.fullmatch(unit))
    return next(kinds, _stem(unit))


def _move(sentence: str) -> Move | None:
    found = next(filter(None, (form.search(sentence) for form in _MOVES)), None)
    if found is None:
        return None
    return Move(frozenset(_stems(found["thing"])) - _SMALL, found["value"].casefold(), _kind_of_name(found["value"]))


def _slot(sentence: str, span: tuple[int, int], kind: str) -> ValueSlot:
    start, end = span
    return ValueSlot(sentence[start:end].casefold(), kind, _stems(sentence[:start]), _stems(sentence[end:]))


def _stems(text: str) -> tuple[str, ...]:
    found = (word.casefold() for word in _WORD.findall(text))
    return tuple(_stem(word) for word in found if word not in _ARTICLES)


def _stem(word: str) -> str:
    return next(iter(terms(word)), word)
