"""Decides whether a new assertion takes back, denies or refutes all that an earlier one says, or overtakes it."""

import re

from esker.server.core.facts.contradiction import contradicts, denied, negates, opposed
from esker.server.core.facts.same_fact import same_subject
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.assertions import Assertion
from esker.server.providers.extractive.changed_values import related

# Minimum `same_subject` of an earlier row with a correction. A higher value replaces less.
_SUBJECT_OF_CORRECTION = 0.5
_CODE_NAME = re.compile(r"\w[_.]\w")


def _denies(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion answers another one, and calls it wrong."""
    return said.denies and bool(said.context) and other.terms - other.context <= said.context


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


def _opposes(said: Assertion, other: Assertion) -> bool:
    """Whether both judge the same in opposite ways; "X instead of Y" denies neither X nor its purpose."""
    return (
        not other.given_up and not _apart(said.scope, other.scope) and contradicts(said.fingerprint, other.fingerprint)
    )


def _refutes(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion names another cause than an earlier one: "it was not the belt, it was the sensor"."""
    if said.topic or not cues.CAUSE.search(other.statement):
        return False
    return any(old <= other.terms - denied(other.fingerprint) for old in said.given_up if old)


def _explains_again(said: Assertion, other: Assertion) -> bool:
    """Whether two assertions give one thing different causes."""
    return bool(said.explains) and said.explains == other.explains and not said.terms <= other.terms


def _passes(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion says that now works what an earlier one reports as failing: "all importer tests pass"."""
    if not said.works or not cues.ISSUE.search(other.statement) or cues.ISSUE.search(said.statement):
        return False
    failed = {term for term in other.terms if not term.isdigit()}
    works = {term for term in said.works if not term.isdigit()}
    return bool(works) and works <= failed and 2 * len(works) >= len(failed)


def _returns(said: Assertion, other: Assertion) -> bool:
    """Whether an assertion goes back to a value that an earlier one about the same gives up: "go back to X"."""
    about = said.topic.difference(*(now.terms for now in said.values))
    return (not about or related(about, other.terms)) and any(
        now.marked and now.relation == "to" and now.terms in other.given_up for now in said.values
    )


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


def _apart(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two scopes differ: both exist and share at most half of the smaller one's terms."""
    return bool(one and other) and 2 * len(one & other) <= min(len(one), len(other))


PERSONS_RULES = (_denies, _corrects, _opposes, _refutes, _explains_again, _passes, _returns)
"""Rules by which a person's assertion replaces all of an earlier one."""
AGENTS_RULES = (_passes, _takes_back, _explains_again, _sets_again)
"""Rules by which an agent's report replaces an earlier one."""
