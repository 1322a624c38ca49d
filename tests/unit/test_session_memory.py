"""The state of a session's memory in one word."""

import pytest

from esker.server.core.context.session_memory import MemoryState, state_of
from esker.server.core.records import Job, JobState
from tests.support.records import NOON, session


def job(state: JobState = "ready", error: str | None = None) -> Job:
    """Return a job about the session."""
    return Job("observe", state, NOON, 1, error, None)


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        ([job("dead", "It failed."), job("running"), job(error="It failed.")], "failed"),
        ([job(error="It failed."), job("running", "It failed.")], "working"),
        ([job(), job(error="It failed.")], "retrying"),
        ([job()], "waiting"),
        ([], "waiting"),
    ],
)
def test_the_worst_job_has_precedence_over_waiting_messages(jobs: list[Job], expected: MemoryState) -> None:
    assert state_of(session(last_seq=3, unobserved_tokens=10), jobs) == expected


def test_a_session_without_unobserved_messages_is_up_to_date_or_empty() -> None:
    assert state_of(session(last_seq=3), []) == "up to date"
    assert state_of(session(last_seq=3), [job()]) == "up to date"
    assert state_of(session(), []) == "empty"
    assert state_of(session(), [job("running")]) == "working"
