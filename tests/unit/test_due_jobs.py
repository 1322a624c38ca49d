"""When a job is due: after an observation was asked for, and after a failure."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.config.settings import Settings
from esker.server.usecases.ingest import observe_due
from esker.server.usecases.run_job import backoff
from tests.support.records import NOON

SETTINGS = Settings(observe_tokens=1_000, observe_idle_seconds=600)


@pytest.mark.parametrize(("unobserved", "wait"), [(999, 600), (1_000, 0), (5_000, 0)])
def test_a_session_is_observed_at_once_from_its_token_limit_on_and_else_when_idle(unobserved: int, wait: int) -> None:
    now = NOON + timedelta(minutes=1)
    due = observe_due(SETTINGS, unobserved, last_received_at=NOON, now=now)
    assert due == (now if wait == 0 else NOON + timedelta(seconds=wait))


@given(st.integers(min_value=1, max_value=8))
def test_a_backoff_doubles_with_each_failure_less_at_most_half(attempts: int) -> None:
    longest = timedelta(seconds=15) * 2 ** (attempts - 1)
    assert longest / 2 <= backoff(attempts) < longest


@given(st.integers(min_value=9, max_value=1_000))
def test_a_backoff_is_at_most_an_hour(attempts: int) -> None:
    assert timedelta(minutes=30) <= backoff(attempts) < timedelta(hours=1)
