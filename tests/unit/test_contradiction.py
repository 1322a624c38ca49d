"""Two facts contradict each other when they judge the same thing in opposite ways."""

import pytest

from esker.server.core.facts.contradiction import contradicts, denied
from esker.server.core.facts.same_fact import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The worker retries 3 times", "The worker does not retry 3 times"),
        ("User loves mushrooms", "User hates mushrooms"),
        ("The deploy needs Redis", "The deploy never needs Redis"),
    ],
)
def test_opposite_judgements_of_one_thing_contradict_each_other(one: str, other: str) -> None:
    assert contradicts(fingerprint(one), fingerprint(other))
    assert contradicts(fingerprint(other), fingerprint(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The worker retries 3 times", "The worker does not retry 5 times"),
        ("Deploy Node 22 to staging", "Do not deploy Node 20 to staging"),
        ("The cache of auth.ts is on", "The cache of user.ts is off"),
    ],
)
def test_facts_with_other_numbers_or_identifiers_do_not_contradict_each_other(one: str, other: str) -> None:
    assert not contradicts(fingerprint(one), fingerprint(other))
    assert not contradicts(fingerprint(other), fingerprint(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [("User loves mushrooms", "User loves pizza"), ("The tests pass on Linux", "The build does not pass on Windows")],
)
def test_judgements_of_two_things_do_not_contradict_each_other(one: str, other: str) -> None:
    assert not contradicts(fingerprint(one), fingerprint(other))


def test_a_row_denies_the_word_after_the_negation_or_all_that_it_is_about() -> None:
    assert denied(fingerprint("User deploys, not MySQL")) == {"mysql"}
    row = fingerprint("User does not use MySQL for billing")
    assert denied(row) == row.terms
