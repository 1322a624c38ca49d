"""Finds another amount in the words of an earlier statement, whatever its verb: "commits every 1000 rows", "every 250".

The grammar of clauses reads a value only beside verbs that it knows. Here two statements are compared without it: all
words of the earlier one but its amount return in the new one, whose clause adds no other word to its own amount.
"""

import re

from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.assertions import Assertion
from esker.server.providers.extractive.changed_values import Effect, is_form
from esker.server.providers.extractive.clauses import CLAUSE
from esker.server.providers.extractive.grammar import Grammar, grammar_of
from esker.server.providers.extractive.value_kinds import Spot, amounts_in, has_unit

_LAST_WORD = re.compile(r"([^\W\d_]+)[ ]?\Z")
# Kinds of segments of a clause that gives up or denies its amount.
_DENYING = frozenset(("gone", "not", "instead", "replaces"))


def in_same_frame(said: Assertion, other: Assertion) -> Effect:
    """Return the effect of an amount that has the place of an earlier one; one that no change introduces is unlike.

    A correction of words that give the earlier amount needs no other words: "sorry, Thursday at 3".
    """
    for now, then in _exchanged(said, other):
        if _answers(said, other, now, then):
            return Effect.REPLACES
        if not _has_frame(said, other, now, then):
            continue
        if _changes(said) or _orders(said, other, now, then):
            return Effect.REPLACES
        # Without a change, another day is another occasion.
        return Effect.NOTHING if now.kind in ("date", "clock") else Effect.UNLIKE
    return Effect.NOTHING


def _answers(said: Assertion, other: Assertion, now: Spot, then: Spot) -> bool:
    """Whether a statement corrects words that give the earlier amount, and says nothing else."""
    grammar = grammar_of(said.statement)
    answers = said.corrects and frozenset(grammar.terms(then.text)) <= said.context
    return answers and not _lacking(_beside(grammar, said.statement, now), other.terms)


def _has_frame(said: Assertion, other: Assertion, now: Spot, then: Spot) -> bool:
    """Whether a statement asserts an amount in the words of an earlier one."""
    grammar = grammar_of(said.statement)
    frame = _beside(grammar_of(other.statement), other.statement, then)
    clauses = CLAUSE.split(said.statement)
    clause = next((one for one in clauses if now.text in one), said.statement)
    kinds = {(match.lastgroup or "").partition("__")[0] for match in grammar.opener.finditer(clause)}
    if grammar.unspaced or not frame or kinds & _DENYING:
        return False
    if any(then.text in one and not _lacking(frame, frozenset(grammar.terms(one))) for one in clauses):
        return False  # "We moved it to Thursday, Tuesday is the customer demo"
    # Beside its former amount a subject is known by half of its words.
    most_missing = len(frame) // 2 if then.text in said.statement else 0
    missing = _lacking(frame, frozenset(grammar.terms(said.statement)))
    return len(missing) <= most_missing and not _lacking(_beside(grammar, clause, now), frame | other.terms)


def _exchanged(said: Assertion, other: Assertion) -> list[tuple[Spot, Spot]]:
    """Return the amounts of both that can be exchanged: each is the only one of its kind besides the other's."""
    earlier, new = (_values_of(one.statement) for one in (other, said))
    known = {then.text for then in earlier}
    pairs: list[tuple[Spot, Spot]] = []
    for then in earlier:
        alike = {now.text: now for now in new if now.kind == then.kind and now.text not in known}
        if len(alike) == 1 and sum(one.kind == then.kind for one in earlier) == 1:
            pairs += [(now, then) for now in alike.values()]
    return pairs


def _values_of(text: str) -> list[Spot]:
    """Return the amounts of a text without the numbers of things, such as "module 7", which stand behind their noun."""
    small = STOP_WORDS[language_of(text) or ENGLISH]
    found: list[Spot] = []
    for spot in amounts_in(text):
        before, unit = _LAST_WORD.search(text[: text.find(spot.text)]), _LAST_WORD.search(spot.text)
        # "to" is a unit, tonnes, as well.
        is_measured = has_unit(spot.text) and (unit is None or unit[1].casefold() not in small)
        if is_measured or before is None or before[1].casefold() in small:
            found.append(spot)
    return found


def _beside(grammar: Grammar, text: str, spot: Spot) -> frozenset[str]:
    """Return the terms of a text beside an amount, without the words that the grammar knows."""
    text = grammar.cue["corrects"].sub(" ", text.replace(spot.text, " ", 1))
    return frozenset(grammar.telling(grammar.opener.sub(" ", text)))


def _lacking(some: frozenset[str], others: frozenset[str]) -> list[str]:
    """Return the terms that are in no form among others."""
    return [term for term in some if term not in others and not any(is_form(term, other) for other in others)]


def _orders(said: Assertion, other: Assertion, now: Spot, then: Spot) -> bool:
    """Whether the clause of an amount begins with the verb of an earlier statement: "poll the sensor every minute"."""
    clause = next((one for one in CLAUSE.split(said.statement) if now.text in one), said.statement)
    grammar = grammar_of(other.statement)
    first, first_then = (grammar.terms(text)[:1] for text in (clause, other.statement))
    return first != first_then and frozenset(first) <= _beside(grammar, other.statement, then)


def _changes(said: Assertion) -> bool:
    """Whether a statement says that something changed, or orders it."""
    marked = said.marked or said.corrects or any(value.marked for value in said.values)
    return (marked or cues.is_order(said.statement)) and not any(value.added for value in said.values)
