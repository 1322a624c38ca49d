"""Finds the earlier assertion to which a value without a subject belongs: "make it 45", "InfluxDB it is"."""

import re
from collections.abc import Sequence

from esker.server.providers.extractive.assertions import Assertion
from esker.server.providers.extractive.changed_values import same_kind
from esker.server.providers.extractive.clause_values import Value
from esker.server.providers.extractive.value_kinds import form_of

# Maximum assertions between a value without a subject ("make it 45") and the one that it belongs to.
_NEAREST = 3
_DIGITS = re.compile(r"\d+")
_IDENTIFIER = re.compile(r"\w+(?:[-_./]\w+)+|[^\W\d_]+\d\w*")


def nearest(said: Assertion, latest_first: Sequence[Assertion]) -> Assertion | None:
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


def _chooses(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion only names what an earlier one has not decided: "InfluxDB it is"."""
    lone = [value.terms for value in said.values if not value.subject]
    return other.open == "choice" and any(named and named <= other.terms for named in (said.terms, *lone))


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
