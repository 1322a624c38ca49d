"""Decides what a new assertion does to an earlier one: it replaces it, has another value than it, or neither.

An assertion replaces an earlier one in four ways. It names the value that it gives up ("from X to Y", "Y, not X",
"X won't work, take Y"), and the earlier one has this value. It gives the same subject another value of the same kind
(`changed_values`). It takes back, denies or refutes what was said, or reports that what failed works. Or it settles
what was left open: a plan is carried out, a choice is made. Words of other people, conditions, plans, questions and
additions replace nothing, nor does a statement with another scope. A row that is replaced by mistake is lost to recall;
one that is not replaced is merely old. So in doubt both stay, and the newer one says that the older says otherwise.
"""

import re
from collections.abc import Sequence

from esker.server.core.facts.contradiction import denied, negates
from esker.server.core.facts.same_fact import same_fact
from esker.server.core.records import Trust
from esker.server.providers.extractive.assertions import Assertion
from esker.server.providers.extractive.changed_values import Effect, are_two_things, compared, related, same_kind
from esker.server.providers.extractive.clause_values import Value
from esker.server.providers.extractive.frames import in_same_frame
from esker.server.providers.extractive.grammar import places_of_software
from esker.server.providers.extractive.lone_values import nearest
from esker.server.providers.extractive.taking_back import AGENTS_RULES, PERSONS_RULES

# Minimum share of the terms of a plan or an open choice that the assertion which settles it has.
_SETTLED = 0.6
_CODE_NAME = re.compile(r"\w[_.]\w")
# Maximum characters of an agent's row that a person's statement replaces. A higher value loses more of what else the
# row tells; a lower one leaves more overtaken rows.
_LONGEST_REPLACED = 200

Told = tuple[Trust, Assertion]
"""An assertion with the trust of its speaker."""


def effects(said: Assertion, earlier: Sequence[Told], *, by_agent: bool = False) -> list[tuple[Effect, Assertion]]:
    """Return the earlier assertions (by trust) that a new one replaces or differs from, the latest first.

    Of an agent's words only those that report work are compared: what it finds has many values, and few that changed.
    """
    if not said.firm:
        return []
    latest_first = [other for _, other in reversed(earlier)]
    moved = [] if by_agent else _moved(said, latest_first)
    found: list[tuple[Effect, Assertion]] = []
    for trust, other in reversed(earlier):
        effect = Effect.REPLACES if other in moved else _effect(said, other, by_agent=by_agent)
        if by_agent and trust == "user":
            found += [(Effect.REPLACES, other)] if _overtakes(said, other) else []
            continue
        moves_on = by_agent and not effect and _is_comparable(said, other) and _moves_on(said, other)
        if moves_on:
            effect = Effect.REPLACES
        if (moves_on or not by_agent) and trust == "assistant" and _is_report(other):
            effect = min(effect, Effect.UNLIKE)
        if effect:
            found.append((effect, other))
    if by_agent or any(effect == Effect.REPLACES for effect, _ in found):
        return found
    answered = nearest(said, [other for trust, other in reversed(earlier) if trust == "user"])
    return [(Effect.REPLACES, answered)] if answered and _is_comparable(said, answered) else found


def _overtakes(said: Assertion, other: Assertion) -> bool:
    """Whether an agent reports, in the words of a person, that the value which they told is another one now."""
    return said.marked and _is_comparable(said, other) and in_same_frame(said, other) == Effect.REPLACES


def _is_report(said: Assertion) -> bool:
    """Whether an agent tells so much at once that a person's remark on one thing does not replace it."""
    return len(said.statement) > _LONGEST_REPLACED or ";" in said.statement


def _moved(said: Assertion, latest_first: Sequence[Assertion]) -> list[Assertion]:
    """Return the earlier assertions whose appointment a new one moves; none if there are several appointments."""
    comparable = (other for other in latest_first if _is_comparable(said, other))
    moved = [other for other in comparable if any(_reschedules(said, then) for then in other.values)]
    return moved if all(related(moved[0].topic, other.topic) for other in moved[1:]) else []


def _reschedules(said: Assertion, then: Value) -> bool:
    """Whether an assertion moves an appointment and names its former day or hour: "Tuesday is out, make it Thursday".

    The appointment is not what takes place then instead: "the retro moved, Tuesday is the demo".
    """
    return then.kind in ("date", "clock") and any(
        now.kind == then.kind
        and (now.marked or said.given_up)
        and not now.subject
        and (said.terms - now.terms) & then.terms
        and not then.subject & said.terms
        for now in said.values
    )


def _effect(said: Assertion, other: Assertion, *, by_agent: bool) -> Effect:
    """Return the effect on one earlier assertion; `by_agent`: both are an agent's."""
    if not _is_comparable(said, other):
        return Effect.NOTHING
    if other.open or by_agent:
        rules = (_settles,) if other.open else AGENTS_RULES
        return Effect.REPLACES if any(replaces(said, other) for replaces in rules) else Effect.NOTHING
    if same_fact(said.fingerprint, other.fingerprint):
        return Effect.NOTHING
    if any(replaces(said, other) for replaces in PERSONS_RULES):
        return Effect.REPLACES
    by_value = {then: _about(said, then, other) for then in other.values}
    effect = max(by_value.values(), default=Effect.NOTHING)
    changed = frozenset[str]().union(*(then.subject for then, one in by_value.items() if one == effect))
    # If a row is about two things, one of them may still hold.
    held = [then for then, one in by_value.items() if one < effect and not then.lacks_verb]
    kept = any(then.subject and not then.subject & changed for then in held)
    if kept and changed and effect:
        return Effect.UNLIKE
    if not effect and _may_change(said, other):
        effect = Effect.UNLIKE
    return max(effect, in_same_frame(said, other))


def _may_change(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion of a change has another value than an earlier one, in a sentence that is not understood.

    It names the former value beside its subject, or has one of the same kind and names all of the subject.
    """
    if not said.marked or other.terms <= said.terms or _names_another(said.topic, other.topic):
        return False
    if any(are_two_things(now, then) for now in said.values for then in other.values):
        return False
    new = [now for now in said.values if not now.added and not now.terms <= other.terms]
    return bool(new) and any(_is_spoken_of(then, said, new) for then in other.values if not then.added)


def _names_another(topic: frozenset[str], other: frozenset[str]) -> bool:
    """Whether each of two topics has an identifier that the other lacks: `user_events`, `user_events_archive`."""
    named, other_named = ({term for term in one if _CODE_NAME.search(term)} for one in (topic, other))
    return bool(named - other_named) and bool(other_named - named)


def _is_spoken_of(then: Value, said: Assertion, new: Sequence[Value]) -> bool:
    """Whether an assertion names a value beside its subject, or all of the subject beside a new value of its kind."""
    subject = {term for term in then.subject if term[0] != "@"}
    if then.terms <= said.terms:
        return bool(subject & said.terms)
    if not subject or then.lacks_verb or not subject <= said.terms:
        return False
    return any(now.kind == then.kind != "word" and same_kind(now, then, waived=False, marked=True) for now in new)


def _settles(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion carries out a plan, makes a choice, or decides a doubt that an earlier one leaves open."""
    if negates(said.fingerprint) and not negates(other.fingerprint):
        return False
    shared = len(said.terms & other.terms)
    if other.open == "choice":
        return 2 * shared >= len(other.terms) and any(value.terms <= other.terms for value in said.values)
    if shared > 1 and shared >= _SETTLED * len(other.terms):
        return True
    dates = ((now, then) for now in said.values for then in other.values if now.kind == then.kind == "date")
    return any(compared(now, then, said, other) == Effect.REPLACES for now, then in dates)


def _about(said: Assertion, then: Value, other: Assertion) -> Effect:
    """Return the effect on one value of an earlier assertion."""
    if _gives_up(said, then, other):
        return Effect.REPLACES
    return max((compared(now, then, said, other) for now in said.values), default=Effect.NOTHING)


def _is_comparable(said: Assertion, other: Assertion) -> bool:
    """Whether both are of one speaker, and the new one names no environment, such as staging, that the other lacks."""
    scope = said.scope.difference(*(value.terms for value in said.values if value.subject or value.marked))
    elsewhere = ((said.topic | scope) & places_of_software("environments")) - other.terms
    return said.speaker == other.speaker and bool(other.firm or other.open) and not elsewhere


def _gives_up(said: Assertion, value: Value, other: Assertion) -> bool:
    """Whether a new assertion gives up a value of an earlier one, and both are about the same."""
    topic = said.topic.union(*(now.subject & now.terms for now in said.values)).difference(*said.given_up)
    if any(are_two_things(now, value) for now in said.values) or not said.ended <= other.terms:
        return False
    handed_over = any(now.relation in ("start", "by") for now in said.values)
    for old in said.given_up:
        known = _is_value(old, value, handed_over=handed_over) and not old & denied(other.fingerprint)
        if not known or any(old <= given_up for given_up in other.given_up):
            continue
        if not topic or not value.subject or related(topic, value.subject | (value.terms - old)):
            return True
    return False


def _is_value(old: frozenset[str], value: Value, *, handed_over: bool) -> bool:
    """Whether a value is given up: by its name, by a number of it, or by the person who hands it over."""
    return bool(old) and old <= value.terms | value.subject and (handed_over or bool(old & value.terms))


def _moves_on(said: Assertion, other: Assertion) -> bool:
    """Whether an agent reports that it changed the value of what it found before: "moved the flags from X to Y"."""
    return said.marked and any(_gives_up(said, then, other) for then in other.values)
