"""Which earlier assertion a new one replaces, told by its words alone.

These signs are trusted: the old value is named ("X instead of Y", "from Y to X", "no longer Y"); the same thing gets
another value ("the deploy target is …") or amount ("for 48 hours"); it is moved ("move sessions to X"); a sentence is
said again with another name and marked as a change ("now", "again", a correction); or the same is liked and disliked,
allowed and forbidden, done and not done. A correction replaces what was said last about its subject with another value.
Two texts that say what they hold for ("for sessions", "in Python"), and say something else, are about different things
whatever else they share. A row that is replaced by mistake is lost to whoever asks; one that is not replaced is merely
older. So in doubt nothing is.
"""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.core.facts.contradiction import contradicts, denied
from esker.server.core.facts.records import Fact
from esker.server.core.facts.similarity import same_fact, same_subject
from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.providers.extractive.assertions import Assertion, ValueSlot, read_assertion

_ASSERTED = ("decision", "preference", "fact", "state_change")
# How much an earlier row must be about the same as a correction, and as a row that names an old value. Where words are
# pairs of characters, there are many of them, and less is shared.
_SUBJECT_OF_CORRECTION = 0.5
_SUBJECT_OF_OLD_VALUE = 0.3
_SUBJECT_OF_OLD_VALUE_CJK = 0.1


def with_replaced(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with what it replaces: the id of a row, or the words of a fact before it."""
    earlier = [read_assertion(row.id, row.content) for row in previous if _asserts(row)]
    marked: list[Fact] = []
    for fact in facts:
        asserts = _asserts(fact)
        said = read_assertion(fact.content, fact.content) if asserts else None
        old = _replaced(said, earlier) if said and fact.trust == "user" and not fact.tentative else None
        marked.append(replace(fact, replaces=old) if old else fact)
        earlier += [said] if said else []
    return marked


def _asserts(row: Fact | Memory) -> bool:
    """Tell whether a row says what is so or is to be so: no question, no request, no file that was changed."""
    if row.category not in _ASSERTED or row.content.startswith(labels.ASKED):
        return False
    return row.trust == "user" or row.category != "state_change"


def _replaced(said: Assertion, earlier: Sequence[Assertion]) -> str | None:
    """Return the name of the latest earlier assertion that one replaces."""
    return next((other.name for other in reversed(earlier) if _replaces(said, other)), None)


def _replaces(said: Assertion, other: Assertion) -> bool:
    if same_fact(said.mark, other.mark) or _apart(said.purpose, other.purpose):
        return False
    if _corrects(said, other) or _another_value(said, other):
        return True
    if _another_name(said, other) or _another_amount(said, other) or _moves(said, other):
        return True
    elsewhere = _apart(said.place, other.place - said.old)
    return not elsewhere and (_names_old(said, other) or _opposes(said, other))


def _opposes(said: Assertion, other: Assertion) -> bool:
    """Tell whether both judge the same in opposite ways; "X instead of Y" denies neither X nor what it is for."""
    return not other.old and contradicts(said.mark, other.mark)


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Tell whether both are named and share too little: words of two things can have a part in common."""
    return bool(one and other) and 2 * len(one & other) <= min(len(one), len(other))


def _names_old(said: Assertion, other: Assertion) -> bool:
    """Tell whether the value that is given up is what the other asserts, and not what it gives up or denies itself."""
    if not said.old or not said.old <= other.mark.terms - other.old or denied(other.mark) & said.old:
        return False
    least = _SUBJECT_OF_OLD_VALUE_CJK if other.is_cjk else _SUBJECT_OF_OLD_VALUE
    return same_subject(said.mark, other.mark) >= least


def _corrects(said: Assertion, other: Assertion) -> bool:
    """Tell whether a correction is about the same and gives it another value; each has something of its own."""
    if not said.corrects:
        return False
    differ = bool(other.mark.subject - said.mark.subject) and bool(said.mark.subject - other.mark.subject)
    return differ and same_subject(said.mark, other.mark) >= _SUBJECT_OF_CORRECTION


def _another_value(said: Assertion, other: Assertion) -> bool:
    """Tell whether both texts say what one and the same thing is, by name, and say something else."""
    now, then = said.value, other.value
    if now is None or then is None:
        return False
    # The place of what is somewhere is its value.
    if not now.where and _apart(said.place, other.place):
        return False
    return (now.subject, now.where) == (then.subject, then.where) and not now.named <= other.mark.terms


def _another_name(said: Assertion, other: Assertion) -> bool:
    """Tell whether a sentence is said again with another name, and marked as a change."""
    now, then = said.named, other.named
    return said.change and now is not None and then is not None and _is_other_value(now, then)


def _another_amount(said: Assertion, other: Assertion) -> bool:
    """Tell whether a sentence about what lasts is said again with one other amount."""
    return any(_is_other_value(now, then) for now in said.amounts for then in other.amounts)


def _moves(said: Assertion, other: Assertion) -> bool:
    """Tell whether what the other says to be in one place is moved to another, and nothing else is said of it."""
    move, then = said.move, other.named
    if move is None or then is None or move.thing != then.things:
        return False
    return move.kind == then.kind and move.value != then.value


def _is_other_value(now: ValueSlot, then: ValueSlot) -> bool:
    same_frame = (now.kind, now.before, now.behind) == (then.kind, then.before, then.behind)
    return same_frame and now.value != then.value
