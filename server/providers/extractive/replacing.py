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

from esker.server.core.facts.contradiction import contradicts, denied, negates, opposed
from esker.server.core.facts.same_fact import same_fact, same_subject
from esker.server.core.records import Trust
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.assertions import Assertion, Value
from esker.server.providers.extractive.changed_values import Effect, are_two_things, compared, same_kind
from esker.server.providers.extractive.grammar import places_of_software
from esker.server.providers.extractive.value_kinds import form_of

# Minimum `same_subject` of an earlier row with a correction. A higher value replaces less.
_SUBJECT_OF_CORRECTION = 0.5
# Minimum share of the terms of a plan or an open choice that the assertion which settles it has.
_SETTLED = 0.6
# Maximum assertions between a value without a subject ("make it 45") and the one that it belongs to.
_NEAREST = 3
_DIGITS = re.compile(r"\d+")
_IDENTIFIER = re.compile(r"\w+(?:[-_./]\w+)+|[^\W\d_]+\d\w*")
_CODE_NAME = re.compile(r"\w[_.]\w")
# Maximum characters of an agent's row that a person's statement replaces. A higher value loses more of what else the
# row tells; a lower one leaves more overtaken rows.
_LONGEST_REPLACED = 200
# Minimum characters of a term that another one begins with.
_STEM = 4
_FIRST_CJK = "\u3040"

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
        moves_on = by_agent and not effect and _is_comparable(said, other) and _moves_on(said, other)
        if moves_on:
            effect = Effect.REPLACES
        if (moves_on or not by_agent) and trust == "assistant" and _is_report(other):
            effect = min(effect, Effect.UNLIKE)
        if effect:
            found.append((effect, other))
    if by_agent or any(effect == Effect.REPLACES for effect, _ in found):
        return found
    nearest = _nearest(said, [other for trust, other in reversed(earlier) if trust == "user"])
    return [(Effect.REPLACES, nearest)] if nearest and _is_comparable(said, nearest) else found


def _is_report(said: Assertion) -> bool:
    """Whether an agent tells so much at once that a person's remark on one thing does not replace it."""
    return len(said.statement) > _LONGEST_REPLACED or ";" in said.statement


def _nearest(said: Assertion, latest_first: Sequence[Assertion]) -> Assertion | None:
    """Return the user's assertion to which a value without a subject ("make it 45") belongs; else None.

    A value of a form that is rarely used by chance, such as a period or "account_ref", can be further away if the
    earlier one has no subject either.
    """
    near = latest_first[:_NEAREST]
    answered = (other for other in near if _answers_to(said, other) or _chooses(said, other))
    alike = (
        other
        for place, other in enumerate(latest_first)
        if any(_takes_form(now, said, other, is_near=place < _NEAREST) for now in said.values)
    )
    return next(answered, None) or next(alike, None)


def _takes_form(now: Value, said: Assertion, other: Assertion, *, is_near: bool) -> bool:
    """Whether a value without a subject has the form of an earlier one: "15 to 17 May" and "8 to 10 May"."""
    changes = now.marked or said.corrects
    if now.subject or now.terms <= other.terms or not (other.firm and (changes or now.relation in ("uses", "sets"))):
        return False
    return any(
        then.subject <= other.context or (is_near and then.kind != "date" and (changes or then.marked))
        for then in other.values
        if _are_of_rare_form(now, then)
    )


def _are_of_rare_form(now: Value, then: Value) -> bool:
    """Whether two values are periods of one form, or identifiers of one form with a part in common."""
    if now.kind == then.kind == "date":
        return form_of(now.text) == form_of(then.text) and len(_DIGITS.findall(now.text)) > 1
    named, named_then = _IDENTIFIER.search(now.text), _IDENTIFIER.search(then.text)
    if not named or not named_then or named[0] == named_then[0]:
        return False
    return form_of(named[0]) == form_of(named_then[0]) and bool(now.terms & then.terms)


def _moved(said: Assertion, latest_first: Sequence[Assertion]) -> list[Assertion]:
    """Return the earlier assertions whose appointment a new one moves; none if there are several appointments."""
    comparable = (other for other in latest_first if _is_comparable(said, other))
    moved = [other for other in comparable if any(_reschedules(said, then) for then in other.values)]
    return moved if all(_related(moved[0].topic, other.topic) for other in moved[1:]) else []


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
        rules = (_settles,) if other.open else (_passes, _takes_back, _explains_again, _sets_again)
        return Effect.REPLACES if any(replaces(said, other) for replaces in rules) else Effect.NOTHING
    if same_fact(said.fingerprint, other.fingerprint):
        return Effect.NOTHING
    if any(replaces(said, other) for replaces in _RULES):
        return Effect.REPLACES
    by_value = {then: _about(said, then, other) for then in other.values}
    effect = max(by_value.values(), default=Effect.NOTHING)
    changed = frozenset[str]().union(*(then.subject for then, one in by_value.items() if one == effect))
    # If a row is about two things, one of them may still hold.
    held = [then for then, one in by_value.items() if one < effect and not then.lacks_verb]
    kept = any(then.subject and not then.subject & changed for then in held)
    if not effect and _may_change(said, other):
        return Effect.UNLIKE
    return Effect.UNLIKE if kept and changed and effect else effect


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


def _chooses(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion only names what an earlier one has not decided: "InfluxDB it is"."""
    lone = [value.terms for value in said.values if not value.subject]
    return other.open == "choice" and any(named and named <= other.terms for named in (said.terms, *lone))


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
        if not topic or not value.subject or _related(topic, value.subject | (value.terms - old)):
            return True
    return False


def _related(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two subjects share a term; of pairs of characters, they share at least half of the smaller one's."""
    shared = {term for term in one for again in other if term == again or _is_form(term, again)}
    return bool(shared) and (any(term < _FIRST_CJK for term in shared) or 2 * len(shared) >= min(len(one), len(other)))


def _is_form(term: str, other: str) -> bool:
    """Whether one term begins with the other, as "Chefin" with "Chef"."""
    return min(len(term), len(other)) >= _STEM and (term.startswith(other) or other.startswith(term))


def _is_value(old: frozenset[str], value: Value, *, handed_over: bool) -> bool:
    """Whether a value is given up: by its name, by a number of it, or by the person who hands it over."""
    return bool(old) and old <= value.terms | value.subject and (handed_over or bool(old & value.terms))


def _refutes(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion names another cause than an earlier one: "it was not the belt, it was the sensor"."""
    if said.topic or not cues.CAUSE.search(other.statement):
        return False
    return any(old <= other.terms - denied(other.fingerprint) for old in said.given_up if old)


def _denies(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion answers another one, and calls it wrong."""
    return said.denies and bool(said.context) and other.terms - other.context <= said.context


def _explains_again(said: Assertion, other: Assertion) -> bool:
    """Whether two assertions give one thing different causes."""
    return bool(said.explains) and said.explains == other.explains and not said.terms <= other.terms


def _takes_back(said: Assertion, other: Assertion) -> bool:
    """Whether an agent corrects itself and names what it gives up: "I was wrong, it was not 4f1d2aa"."""
    shared = said.terms & other.terms
    return said.corrects and any(old and old <= shared and len(shared - old) > 1 for old in said.given_up)


def _sets_again(said: Assertion, other: Assertion) -> bool:
    """Whether an agent reports another value of an identifier: "`MAX_UPLOAD_MB` is 200 now"."""
    return any(
        now.marked and now.is_amount and now.kind == then.kind and now.thing == then.thing and now.text != then.text
        for now in said.values
        for then in other.values
        if any(_CODE_NAME.search(term) for term in now.thing)
    )


def _returns(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion goes back to a value that an earlier one about the same gives up: "go back to X"."""
    about = said.topic.difference(*(now.terms for now in said.values))
    return (not about or _related(about, other.terms)) and any(
        now.marked and now.relation == "to" and now.terms in other.given_up for now in said.values
    )


def _moves_on(said: Assertion, other: Assertion) -> bool:
    """Whether an agent reports that it changed the value of what it found before: "moved the flags from X to Y"."""
    return said.marked and any(_gives_up(said, then, other) for then in other.values)


def _passes(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion says that now works what an earlier one reports as failing: "all importer tests pass"."""
    if not said.works or not cues.ISSUE.search(other.statement) or cues.ISSUE.search(said.statement):
        return False
    failed = {term for term in other.terms if not term.isdigit()}
    works = {term for term in said.works if not term.isdigit()}
    return bool(works) and works <= failed and 2 * len(works) >= len(failed)


def _opposes(said: Assertion, other: Assertion) -> bool:
    """Whether both judge the same in opposite ways; "X instead of Y" denies neither X nor its purpose."""
    return (
        not other.given_up and not _apart(said.scope, other.scope) and contradicts(said.fingerprint, other.fingerprint)
    )


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two scopes differ: both exist and share at most half of the smaller one's terms."""
    return bool(one and other) and 2 * len(one & other) <= min(len(one), len(other))


def _corrects(said: Assertion, other: Assertion) -> bool:
    """Whether a correction gives the same subject another value: each has terms that the other has not."""
    if not said.corrects:
        return False
    if said.fingerprint.subject & other.fingerprint.subject and opposed(said.fingerprint, other.fingerprint):
        return True
    denies = negates(said.fingerprint) != negates(other.fingerprint)
    if denies and 1 < len(other.fingerprint.subject & said.fingerprint.subject) == len(other.fingerprint.subject):
        return True
    if _apart(said.scope, other.scope):
        return False
    differ = bool(other.fingerprint.subject - said.fingerprint.subject) and bool(
        said.fingerprint.subject - other.fingerprint.subject
    )
    return differ and same_subject(said.fingerprint, other.fingerprint) >= _SUBJECT_OF_CORRECTION


# Rules by which a person's assertion replaces all of an earlier one.
_RULES = (_denies, _corrects, _opposes, _refutes, _explains_again, _passes, _returns)


def _answers_to(said: Assertion, other: Assertion) -> bool:
    """Whether a value without a subject ("make it 45"), or with one that the other names, takes its value's place."""
    about = said.topic - said.loose
    if not about <= other.terms or (said.given_up and not about) or not other.firm:
        return False
    alone = len(other.values) == 1
    lone = [now for now in said.values if not now.added and _is_about(now.subject - said.loose, other, alone=alone)]
    return any(
        _answers(now, then, said, other) and not now.terms <= other.terms for now in lone for then in other.values
    )


def _is_about(subject: frozenset[str], other: Assertion, *, alone: bool) -> bool:
    return not subject or (alone and subject <= other.terms and other.values[0].is_amount)


def _answers(now: Value, then: Value, said: Assertion, other: Assertion) -> bool:
    if now.kind == then.kind == "number" and _DIGITS.sub("9", now.text) != _DIGITS.sub("9", then.text):
        return False  # "1e-4" is not a score like 0.797
    if not now.is_amount and (not said.corrects or now.relation != then.relation or now.relation == "is"):
        return False
    if _gives_other_number(said.context, then):
        return False
    answers = now.marked or said.corrects or (now.relation in ("uses", "sets") and _names(said.context, then, other))
    return answers and same_kind(now, then, waived=False, marked=True)


def _gives_other_number(context: frozenset[str], then: Value) -> bool:
    """Whether the words that are answered give a number, and not that of an earlier value."""
    numbers = frozenset(filter(str.isdigit, context))
    return bool(numbers) and numbers.isdisjoint(then.terms)


def _names(context: frozenset[str], then: Value, other: Assertion) -> bool:
    """Whether the words that are answered give the same number of the same thing: "retries is 3", then "go with 6"."""
    former = set(filter(str.isdigit, then.terms))
    return bool(former) and former == set(filter(str.isdigit, context)) and bool(context & (other.terms - then.terms))
