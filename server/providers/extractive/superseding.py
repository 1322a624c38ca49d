"""Decides by words alone which earlier assertion a new one replaces.

These signs are trusted: the old value is named ("X instead of Y", "from Y to X", "no longer Y"); the same subject gets
another value ("the deploy target is …") or amount ("for 48 hours"); it is moved ("move sessions to X"); a sentence is
repeated with another name and marked as a change ("now", "again", a correction); or the same is liked and disliked,
allowed and forbidden, done and not done. A correction replaces the last assertion about its subject with another value.
Two texts with different scopes ("for sessions", "in Python") are about different things, however much else they share.
A row that is replaced by mistake is lost to recall; one that is not replaced is merely old. So in doubt nothing is
replaced.
"""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.core.facts.contradiction import contradicts, denied
from esker.server.core.facts.records import Fact
from esker.server.core.facts.same_fact import same_fact, same_subject
from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.providers.extractive.assertions import Assertion, ValueSlot, read_assertion

_ASSERTED = ("decision", "preference", "fact", "state_change")
# Minimum `same_subject` of an earlier row with a correction, and with a row that names an old value. Chinese and
# Japanese terms are pairs of characters: there are more of them, and two texts share a smaller part.
_SUBJECT_OF_CORRECTION = 0.5
_SUBJECT_OF_OLD_VALUE = 0.3
_SUBJECT_OF_OLD_VALUE_CJK = 0.1


def with_replaced(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with the assertion it replaces: the id of a row, or the content of an earlier fact."""
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
    """Whether a row is an assertion, and not a question, a request or a list of changed files."""
    if row.category not in _ASSERTED or row.content.startswith(labels.ASKED):
        return False
    return row.trust == "user" or row.category != "state_change"


def _replaced(said: Assertion, earlier: Sequence[Assertion]) -> str | None:
    """Return the name of the latest earlier assertion that this one replaces."""
    return next((other.name for other in reversed(earlier) if _replaces(said, other)), None)


def _replaces(said: Assertion, other: Assertion) -> bool:
    if same_fact(said.fingerprint, other.fingerprint) or _apart(said.purpose, other.purpose):
        return False
    if _corrects(said, other) or _another_value(said, other):
        return True
    if _another_name(said, other) or _another_amount(said, other) or _moves(said, other):
        return True
    elsewhere = _apart(said.place, other.place - said.old)
    return not elsewhere and (_names_old(said, other) or _opposes(said, other))


def _opposes(said: Assertion, other: Assertion) -> bool:
    """Whether both judge the same in opposite ways; "X instead of Y" denies neither X nor its purpose."""
    return not other.old and contradicts(said.fingerprint, other.fingerprint)


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two scopes differ: both exist and share at most half of the smaller one's terms."""
    return bool(one and other) and 2 * len(one & other) <= min(len(one), len(other))


def _names_old(said: Assertion, other: Assertion) -> bool:
    """Whether the other asserts the value that this one gives up, and does not itself give it up or deny it."""
    if not said.old or not said.old <= other.fingerprint.terms - other.old or denied(other.fingerprint) & said.old:
        return False
    least = _SUBJECT_OF_OLD_VALUE_CJK if other.is_cjk else _SUBJECT_OF_OLD_VALUE
    return same_subject(said.fingerprint, other.fingerprint) >= least


def _corrects(said: Assertion, other: Assertion) -> bool:
    """Whether a correction gives the same subject another value: each has terms that the other has not."""
    if not said.corrects:
        return False
    differ = bool(other.fingerprint.subject - said.fingerprint.subject) and bool(
        said.fingerprint.subject - other.fingerprint.subject
    )
    return differ and same_subject(said.fingerprint, other.fingerprint) >= _SUBJECT_OF_CORRECTION


def _another_value(said: Assertion, other: Assertion) -> bool:
    """Whether both texts name a value of the same subject, and different ones."""
    now, then = said.value, other.value
    if now is None or then is None:
        return False
    # If the value is a place, two places are two values and not two scopes.
    if not now.where and _apart(said.place, other.place):
        return False
    return (now.subject, now.where) == (then.subject, then.where) and not now.named <= other.fingerprint.terms


def _another_name(said: Assertion, other: Assertion) -> bool:
    """Whether a sentence is repeated with another name and marked as a change."""
    now, then = said.named, other.named
    return said.change and now is not None and then is not None and _is_other_value(now, then)


def _another_amount(said: Assertion, other: Assertion) -> bool:
    """Whether a sentence about a lasting state is repeated with one other amount."""
    return any(_is_other_value(now, then) for now in said.amounts for then in other.amounts)


def _moves(said: Assertion, other: Assertion) -> bool:
    """Whether this one moves the subject of the other to another place, and the other says only where it is."""
    move, then = said.move, other.named
    if move is None or then is None or move.thing != then.things:
        return False
    return move.kind == then.kind and move.value != then.value


def _is_other_value(now: ValueSlot, then: ValueSlot) -> bool:
    same_frame = (now.kind, now.before, now.behind) == (then.kind, then.before, then.behind)
    return same_frame and now.value != then.value
