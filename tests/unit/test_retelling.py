"""Facts retold with other function words are recognised, and facts that differ are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.facts.retelling import RETOLD, retells, retold_print, say_the_same
from esker.server.core.facts.same_fact import SAME_MEANING, fingerprint, same_fact, same_meaning
from esker.server.core.records import Memory
from tests.support.records import memory
from tests.unit.test_same_fact import DIFFERENT

RETOLD_FACTS = [
    ("User deploys with Fly.io.", "Deployments go to Fly.io."),
    ("Deployments go to Fly.io.", "The user said that deploys are done on Fly.io."),
    ("User deploys with Fly.io.", "The user said that deploys are done on Fly.io."),
    ("The user deploys on Fly.io.", "Deploys run on Fly.io"),
    ("Sessions live in Redis.", "The user said that sessions are stored in Redis"),
    ("Backups go to the Frankfurt bucket", "User told us that backups are done to the Frankfurt bucket"),
    ("Releases happen on Tuesdays.", "The user confirmed that releases are done on Tuesdays."),
    ("User mentioned that the API is rate limited to 100 requests", "The API is rate limited to 100 requests"),
]
NOT_RETOLD = [
    ("User settings live in Redis", "Settings live in Redis"),
    ("The user service is down", "The service is down"),
    ("User sessions expire after 30 minutes", "Sessions expire after 30 minutes"),
    ("Deploys go to Fly.io", "Deploys go from Fly.io"),
    ("User deploys with Fly.io", "User wants to deploy with Fly.io"),
    ("Deploys go to Fly.io", "Deploys should go to Fly.io"),
    ("Deploys go to Fly.io", "Deploys no longer go to Fly.io"),
    ("Deployments go to Fly.io", "Deployments go to Fly.io and Render"),
    ("User deploys with Fly.io", "User deploys with Render"),
    ("User said that deploys fail on Fly.io", "Deploys are done on Fly.io"),
    ("The user asked whether deploys go to Fly.io", "Deploys go to Fly.io"),
    ("Anna said that the API is done", "The API is done"),
    ("The backend runs on Go", "The backend runs on Rust"),
    ("Everything runs on Go 1.22", "Everything runs on 1.22"),
    ("Anna talks to Ben", "Ben talks to Anna"),
    ("Backups of staging go to S3", "Backups of production go to S3"),
    ("Mails to Anna are sent with SES", "Mails from Anna are sent with SES"),
    ("Copy staging to production", "Copy production to staging"),
    ("Access to Redis is done with a key", "Access with Redis is done to a key"),
    ("The user said so", "User said that"),
]


@pytest.mark.parametrize(("one", "other"), RETOLD_FACTS)
def test_retold_facts_are_shown_once_but_not_merged_when_written(one: str, other: str) -> None:
    first, second = retold_print(one), retold_print(other)
    assert retells(first, second, RETOLD)
    assert retells(second, first, RETOLD)
    assert not retells(first, second, RETOLD - 0.01)
    assert not same_fact(fingerprint(one), fingerprint(other))
    assert not same_meaning(fingerprint(one), fingerprint(other), SAME_MEANING - 0.01)


@pytest.mark.parametrize(("one", "other"), DIFFERENT + NOT_RETOLD)
def test_facts_that_differ_in_substance_are_not_retold_at_any_cosine(one: str, other: str) -> None:
    assert not retells(retold_print(one), retold_print(other), 1.0)
    assert not retells(retold_print(other), retold_print(one), 1.0)


def shown_once(one: Memory, other: Memory) -> bool:
    """Whether an answer shows only one of two rows whose vectors are as near as those of retold rows."""
    marks = {row.id: fingerprint(row.content) for row in (one, other)}
    pair = (min(one.id, other.id), max(one.id, other.id))
    return say_the_same(one, other, marks, retold_print, {pair: RETOLD})


def test_a_tentative_row_never_hides_behind_a_certain_one_nor_a_row_behind_one_of_another_project() -> None:
    first = memory("User deploys with Fly.io.", project="shop")
    same, tentative, foreign = (
        memory("Deployments go to Fly.io.", project=project, tentative=unsure)
        for project, unsure in (("shop", False), ("shop", True), ("forge", False))
    )
    assert shown_once(same, first)
    assert shown_once(first, same)
    for other in (tentative, foreign):
        assert not shown_once(other, first)
        assert not shown_once(first, other)


@given(st.text(), st.text(), st.floats(-1, 1))
def test_retelling_is_symmetric(one: str, other: str, cosine: float) -> None:
    first, second = retold_print(one), retold_print(other)
    assert retells(first, second, cosine) == retells(second, first, cosine)
