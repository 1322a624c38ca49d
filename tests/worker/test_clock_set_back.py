"""A clock that is set back: what was scheduled before goes on at once, with its usual pause."""

from datetime import timedelta

import pytest

from esker.server.core.clock import SharedClock
from esker.server.core.records import Principal, Space
from esker.server.usecases.bring_forward import bring_jobs_forward, bring_rows_forward
from esker.server.usecases.embed import claim, make_space, register
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.run_job import claim_job
from tests.support.clock import START, FakeClock

SPACE = Space("back_8", "back", "", 8, "", "back")
JUMPS = [timedelta(hours=1), timedelta(days=1)]


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_a_session_is_observed_after_its_usual_pause_when_the_clock_was_set_back(
    parts: Parts, who: Principal, clock: FakeClock, jump: timedelta
) -> None:
    clock.now += jump
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "Never use floats for money.")])
    clock.now -= jump
    assert await bring_jobs_forward(parts) == 1
    assert await claim_job(parts, who.pool_id, ["observe"]) is None
    clock.advance(seconds=parts.settings.observe_idle_seconds)
    assert await claim_job(parts, who.pool_id, ["observe"]) is not None


async def test_a_job_of_a_clock_that_was_never_set_back_keeps_its_time(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "Never use floats for money.")])
    clock.advance(seconds=1)
    assert await bring_jobs_forward(parts) == 0


@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_a_row_gets_its_vector_at_once_when_the_clock_was_set_back(
    parts: Parts, who: Principal, clock: FakeClock, jump: timedelta
) -> None:
    await make_space(parts, SPACE)
    await register(parts, SPACE, or_retired=False)
    clock.now += jump
    await remember(parts, who, [Note("Our river is the Rhine.")])
    clock.now -= jump
    assert await claim(parts, SPACE, who.pool_id, tried=False) is None
    assert await bring_rows_forward(parts, SPACE) == 1
    claimed = await claim(parts, SPACE, who.pool_id, tried=False)
    assert claimed is not None
    assert len(claimed.batch.rows) == 1
    assert await bring_rows_forward(parts, SPACE) == 0


def test_the_shared_clock_counts_how_often_it_was_set_back() -> None:
    clock = SharedClock()
    for said, times in ((0, 0), (7200, 0), (7190, 0), (3600, 1), (0, 2), (30, 2)):
        clock.read(START + timedelta(seconds=said), 5.0, 5.0)
        assert clock.times_set_back == times, said
