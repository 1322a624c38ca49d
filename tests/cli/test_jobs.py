"""`esker jobs` shows what waits and what failed, runs a job again, and drops it, whether a server runs or not."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from esker.server.core.conversation.records import Role
from esker.server.core.errors import Conflict, InvalidInput, ModelFailed, NotFound
from esker.server.core.facts.records import Observed, TranscriptSlice
from esker.server.core.records import Principal
from esker.server.providers.extractive_roles import ExtractiveObserver
from esker.server.providers.roles import Meter
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.manage_jobs import STATES, drop_job, list_jobs, retry_job, show_job
from esker.server.usecases.observe import observe_leased
from esker.server.usecases.open_session import SessionRequest, get_session, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.run_job import claim_job, run_job
from tests.support.clock import FakeClock
from tests.support.processes import esker

USER: Role = "user"


class Poisoned(ExtractiveObserver):
    """Fails every call."""

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        raise ModelFailed("poisoned")


@pytest.fixture
def poisoned(parts: Parts) -> Parts:
    """Parts of a server whose jobs die at their first failure."""
    changes = {"observe_tokens": 1, "job_attempts": 1}
    return replace(parts, observer=Poisoned(), settings=parts.settings.model_copy(update=changes))


@pytest.fixture
async def dead(poisoned: Parts, who: Principal) -> str:
    """The id of a job that is dead."""
    session = await open_session(poisoned, who.pool_id, SessionRequest("api", "s1"))
    await ingest(poisoned, who.pool_id, session.id, [IncomingMessage("m1", USER, "Never use floats for money.")])
    lease = await claim_job(poisoned, who.pool_id, ["observe"])
    assert lease
    with suppress(ModelFailed):
        await run_job(poisoned, lease, observe_leased)
    return f"observe:{session.id}"


async def test_a_dead_job_is_listed_shown_and_retried(
    poisoned: Parts, who: Principal, dead: str, clock: FakeClock
) -> None:
    [found] = await list_jobs(poisoned, None, ["dead"])
    assert (found.pool, found.id, found.job.last_error) == ("default", dead, "poisoned")
    assert await list_jobs(poisoned, "default", ["running"]) == []
    clock.advance(seconds=1)
    again = await retry_job(poisoned, "default", dead)
    assert (again.job.state, again.job.attempts, again.job.last_error) == ("ready", 0, None)
    assert await claim_job(poisoned, who.pool_id, ["observe"])
    assert (await show_job(poisoned, "default", dead)).job.progress_at == clock()
    with pytest.raises(Conflict, match="runs at present"):
        await retry_job(poisoned, "default", dead)


async def test_dropping_a_job_deletes_no_message_and_a_new_one_makes_another_job(
    poisoned: Parts, who: Principal, dead: str
) -> None:
    await drop_job(poisoned, "default", dead)
    session_id = dead.partition(":")[2]
    report = await get_session(poisoned, who.pool_id, session_id)
    assert (report.session.last_seq, report.session.observed_seq, report.jobs) == (1, 0, [])
    await ingest(poisoned, who.pool_id, session_id, [IncomingMessage("m2", USER, "And more.")])
    [found] = await list_jobs(poisoned, "default", STATES)
    assert (found.id, found.job.state) == (dead, "ready")


async def test_a_job_of_another_pool_is_not_found(poisoned: Parts, dead: str) -> None:
    await create_pool(poisoned, "other")
    assert await list_jobs(poisoned, "other", STATES) == []
    for use in (show_job, retry_job, drop_job):
        with pytest.raises(NotFound):
            await use(poisoned, "other", dead)
        with pytest.raises(InvalidInput):
            await use(poisoned, "default", "nonsense")
    assert len(await list_jobs(poisoned, None, STATES)) == 1


async def test_the_command_shows_and_drops_a_job(poisoned: Parts, dead: str, database_url: str) -> None:
    async def said(*arguments: str) -> Any:
        done = await asyncio.to_thread(esker, "jobs", *arguments, ESKER_DATABASE_URL=database_url)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if "--json" in arguments else done.stdout

    [listed] = await said("list", "--json")
    assert (listed["id"], listed["state"], listed["error_kind"]) == (dead, "dead", "ModelFailed")
    assert "last error: poisoned" in await said("show", dead)
    assert "within seconds" in await said("retry", dead)
    assert (await said("drop", dead, "--json"))["state"] == "ready"
    assert await said("list", "--json") == []
