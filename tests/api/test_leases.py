"""Leases: a job has one holder at a time, and results of a late one are discarded."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from esker.server.background import beside, run_jobs
from esker.server.core.config.settings import Settings
from esker.server.core.conversation.records import Role
from esker.server.core.errors import JobStuck, LeaseLost, ModelDown, ModelFailed
from esker.server.core.facts.records import Observed, Superseder, TranscriptSlice
from esker.server.core.records import Filter, Lease, Memory, NewMemory, Principal
from esker.server.core.text.indexing import indexed
from esker.server.db.database import Database
from esker.server.providers.extractive_roles import ExtractiveObserver
from esker.server.providers.roles import Meter
from esker.server.store import memories, sessions
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.forget import forget_text
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionRequest, get_session, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect import reflect, reflect_leased
from esker.server.usecases.remember import list_memories
from esker.server.usecases.report_status import readiness
from esker.server.usecases.run_job import claim_job, run_job
from tests.support.clock import FakeClock
from tests.support.databases import until_one_waits
from tests.support.waiting import eventually


class SlowObserver(ExtractiveObserver):
    """Signals when it has begun, and waits for a signal to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.calls = 0

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts of a slice after the signal to go on."""
        self.calls += 1
        self.begun.set()
        await self.go_on.wait()
        return await super().observe(shown, meter)


@pytest.fixture
def observer() -> SlowObserver:
    """An observer that waits for a signal."""
    return SlowObserver()


@pytest.fixture
def slow(parts: Parts, observer: SlowObserver) -> Parts:
    """Parts with the slow observer and a short lease, which is renewed continually."""
    changes = {"job_lease_seconds": 0.03, "observe_tokens": 1}
    return replace(parts, observer=observer, settings=parts.settings.model_copy(update=changes))


async def session_with_a_message(parts: Parts, who: Principal) -> str:
    """Return a session that is due to be observed."""
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "Never use floats for money.")])
    return session.id


async def claimed(parts: Parts, who: Principal) -> Lease:
    """Return the lease of the one job that is due."""
    lease = await claim_job(parts, who.pool_id, ["observe"])
    assert lease is not None
    return lease


async def begun_or_ended(observer: SlowObserver, working: asyncio.Task[object]) -> None:
    """Return once the observer has begun, or its job has ended before, as one with a limit may on a busy machine."""
    begun = asyncio.create_task(observer.begun.wait())
    await asyncio.wait([begun, working], return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()


async def test_a_working_holder_keeps_its_lease_for_any_length_of_time(
    slow: Parts, who: Principal, observer: SlowObserver, clock: FakeClock
) -> None:
    session_id = await session_with_a_message(slow, who)
    lease = await claimed(slow, who)
    working = asyncio.create_task(run_job(slow, lease, observe_leased))
    await begun_or_ended(observer, working)
    for _ in range(3):
        now = clock.advance(seconds=0.02)
        await eventually(lambda: _until(slow, who), lambda end, now=now: end > now)  # the next heartbeat
        assert await claim_job(slow, who.pool_id, ["observe"]) is None
    observer.go_on.set()
    await working
    found = await get_session(slow, who.pool_id, session_id)
    assert (found.session.observed_seq, found.jobs, observer.calls) == (1, [], 1)


async def _until(parts: Parts, who: Principal) -> datetime:
    async with parts.database.tenant(who.pool_id) as connection:
        row = await (await connection.execute("SELECT lease_until FROM jobs")).fetchone()
    assert row is not None
    return row[0]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"job_stall_seconds": 30.0}, "It completed no part of its work within 30 s."),
        ({"job_max_seconds": 0.05}, "It did not end within 0 s."),
    ],
)
async def test_a_job_that_hangs_is_stopped_and_counts_as_failed(
    slow: Parts, who: Principal, observer: SlowObserver, clock: FakeClock, limits: dict[str, float], why: str
) -> None:
    limited = replace(slow, settings=slow.settings.model_copy(update=limits))
    session_id = await session_with_a_message(limited, who)
    working = asyncio.create_task(run_job(limited, await claimed(limited, who), observe_leased))
    await begun_or_ended(observer, working)
    clock.advance(seconds=31)
    with pytest.raises(JobStuck, match=why):
        await working
    [job] = (await get_session(limited, who.pool_id, session_id)).jobs
    assert (job.state, job.attempts, job.last_error, job.error_kind) == ("ready", 1, why, "JobStuck")
    assert job.run_after > clock()


async def test_work_whose_lease_went_to_another_worker_is_stopped(
    slow: Parts, who: Principal, observer: SlowObserver, clock: FakeClock
) -> None:
    await session_with_a_message(slow, who)
    working = asyncio.create_task(run_job(slow, await claimed(slow, who), observe_leased))
    await begun_or_ended(observer, working)
    async with slow.database.tenant(who.pool_id) as connection:
        await connection.execute("UPDATE jobs SET lease_token = gen_random_uuid()")
    await working  # though its observer never goes on
    assert not observer.go_on.is_set()


async def test_a_pool_with_many_jobs_does_not_keep_another_pool_waiting(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    observed: list[str] = []

    class Noting(ExtractiveObserver):
        """Notes whose session it observes."""

        async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
            observed.append(shown.session.external_id)
            return await super().observe(shown, meter)

    changes = {"observe_tokens": 1, "job_concurrency": 1}
    eager = replace(parts, observer=Noting(), settings=parts.settings.model_copy(update=changes))
    small = await create_pool(eager, "small")
    for name, pool_id in (("a", who.pool_id), ("b", who.pool_id), ("c", who.pool_id), ("other", small.id)):
        session = await open_session(eager, pool_id, SessionRequest("api", name))
        await ingest(eager, pool_id, session.id, [IncomingMessage("m1", "user", "Never use floats for money.")])
        clock.advance(seconds=1)
    async with beside("jobs", lambda: run_jobs(eager)):
        await eventually(lambda: _as_it_is(observed), lambda names: len(names) == 4)
    assert observed == ["a", "other", "b", "c"]


async def _as_it_is(names: list[str]) -> list[str]:
    return names


async def test_a_holder_that_lost_its_lease_cannot_commit_even_before_the_next_one(
    parts: Parts, who: Principal, observer: SlowObserver, clock: FakeClock
) -> None:
    late = replace(parts, observer=observer, settings=Settings(observe_tokens=1))
    session_id = await session_with_a_message(late, who)
    first = await claimed(late, who)
    working = asyncio.create_task(observe_leased(late, first))
    await begun_or_ended(observer, working)
    clock.advance(seconds=61)
    second = await claimed(late, who)
    observer.go_on.set()
    with pytest.raises(LeaseLost):
        await working
    assert (await get_session(late, who.pool_id, session_id)).session.observed_seq == 0
    await observe_leased(late, second)
    found = await get_session(late, who.pool_id, session_id)
    assert (found.session.observed_seq, found.jobs) == (1, [])


async def test_messages_that_another_holder_covered_are_a_lost_lease_not_a_failure(
    parts: Parts, who: Principal, observer: SlowObserver, clock: FakeClock
) -> None:
    late = replace(parts, observer=observer, settings=Settings(observe_tokens=1))
    await session_with_a_message(late, who)
    first = await claimed(late, who)
    working = asyncio.create_task(observe_leased(late, first))
    await begun_or_ended(observer, working)
    clock.advance(seconds=61)
    quick = replace(late, observer=ExtractiveObserver())
    await observe_leased(quick, await claimed(quick, who))
    observer.go_on.set()
    with pytest.raises(LeaseLost):
        await working


async def test_a_stopping_worker_releases_its_job_without_counting_an_attempt(
    parts: Parts, who: Principal, observer: SlowObserver
) -> None:
    stopping = replace(parts, observer=observer, settings=Settings(observe_tokens=1))
    session_id = await session_with_a_message(stopping, who)
    working = asyncio.create_task(run_job(stopping, await claimed(stopping, who), observe_leased))
    await begun_or_ended(observer, working)
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    [job] = (await get_session(stopping, who.pool_id, session_id)).jobs
    assert (job.state, job.attempts, job.last_error) == ("ready", 0, None)
    assert await claim_job(stopping, who.pool_id, ["observe"]) is not None


async def test_a_job_that_keeps_killing_its_worker_is_dead_with_an_error(
    slow: Parts, who: Principal, clock: FakeClock
) -> None:
    session_id = await session_with_a_message(slow, who)
    for _ in range(slow.settings.job_attempts):
        await claimed(slow, who)
        clock.advance(minutes=5)
    assert await claim_job(slow, who.pool_id, ["observe"]) is None
    [job] = (await get_session(slow, who.pool_id, session_id)).jobs
    assert (job.state, job.error_kind, job.last_error) == ("dead", "JobStuck", "its worker died, 8 times")
    await ingest(slow, who.pool_id, session_id, [IncomingMessage("m2", "user", "Something new.")])
    await claimed(slow, who)


async def test_a_reflection_that_commits_while_its_source_is_forgotten_is_forgotten(
    parts: Parts, who: Principal, database: Database
) -> None:
    async with beside("jobs", lambda: run_jobs(parts)):
        session_id = await session_with_a_message(parts, who)
        await observe(parts, who.pool_id, session_id, wait=True)
    [row] = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=10)
    reflected = indexed([reflection_of(row, parts.clock())])
    async with database.tenant(who.pool_id) as connection:
        await sessions.lock(connection, session_id)  # as a reflection that is about to commit
        forgetting = asyncio.create_task(forget_text(parts, who, row.id, with_messages=False))
        await until_one_waits(database, forgetting)
        await memories.insert(connection, reflected)
        by = {row.id: Superseder("mem_reflected", row.said_at)}
        await memories.supersede(connection, by, parts.clock())
    assert (await forgetting).reflections == 1
    everything = Filter(parts.clock(), with_superseded=True)
    assert await list_memories(parts, who.pool_id, everything, before=None, limit=10) == []


async def test_concurrent_reflections_of_sessions_never_deadlock(
    parts: Parts, who: Principal, database: Database
) -> None:
    said: list[tuple[Role, str]] = [
        ("user", "Never use floats for money."),
        ("assistant", "The limit of the queue is 30 jobs."),
        ("user", "Please look around."),
        ("assistant", "The limit of the queue is 40 jobs."),
    ]
    ids: list[str] = []
    for number in range(10):
        session = await open_session(parts, who.pool_id, SessionRequest("api", f"s{number}"))
        batch = [
            IncomingMessage(f"m{n}", role, f"{text[:-1]} in part {number}.") for n, (role, text) in enumerate(said)
        ]
        await ingest(parts, who.pool_id, session.id, batch)
        ids.append(session.id)
    busy = replace(parts, settings=parts.settings.model_copy(update={"job_concurrency": 8}))
    async with beside("jobs", lambda: run_jobs(busy)):
        await asyncio.gather(*(observe(busy, who.pool_id, session_id, wait=True) for session_id in ids))
        reports = await asyncio.gather(*(reflect(busy, who.pool_id, session_id, wait=True) for session_id in ids))
    assert all(report.memories for report in reports)
    [stats] = await database.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert stats["deadlocks"] == 0


async def test_a_job_that_is_requested_while_it_runs_runs_once_more(parts: Parts, who: Principal) -> None:
    session_id = await session_with_a_message(parts, who)
    await reflect(parts, who.pool_id, session_id, wait=False)
    lease = await claim_job(parts, who.pool_id, ["reflect"])
    assert lease is not None
    await reflect(parts, who.pool_id, session_id, wait=False)
    await run_job(parts, lease, reflect_leased)
    again = await claim_job(parts, who.pool_id, ["reflect"])
    assert again is not None
    await run_job(parts, again, reflect_leased)
    assert await claim_job(parts, who.pool_id, ["reflect"]) is None


async def test_a_session_is_idle_from_its_last_message_on(parts: Parts, who: Principal, clock: FakeClock) -> None:
    session_id = await session_with_a_message(parts, who)
    clock.advance(seconds=parts.settings.observe_idle_seconds - 1)
    await ingest(parts, who.pool_id, session_id, [IncomingMessage("m2", "user", "And more.")])
    session = (await get_session(parts, who.pool_id, session_id)).session
    assert session.last_received_at == clock()
    clock.advance(seconds=parts.settings.observe_idle_seconds - 1)
    assert await claim_job(parts, who.pool_id, ["observe"]) is None
    clock.advance(seconds=1)
    assert await claim_job(parts, who.pool_id, ["observe"]) is not None


async def test_progress_resets_the_count_of_failures(parts: Parts, who: Principal, clock: FakeClock) -> None:
    class Stumbling(ExtractiveObserver):
        """Fails every second call."""

        calls = 0

        async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
            self.calls += 1
            if self.calls % 2:
                raise ModelFailed("stumbled")
            return await super().observe(shown, meter)

    changes = {"job_attempts": 2, "observe_tokens": 1}
    observer = Stumbling(parts.processes)
    stumbling = replace(parts, observer=observer, settings=parts.settings.model_copy(update=changes))
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    # No two of them fit into a slice, and the observer is quickly through a block of code.
    long = f"```\n{'word ' * 30_000}\n```"
    await ingest(stumbling, who.pool_id, session.id, [IncomingMessage(f"m{n}", "user", long) for n in range(3)])
    for _ in range(10):
        if lease := await claim_job(stumbling, who.pool_id, ["observe"]):
            with suppress(ModelFailed):
                await run_job(stumbling, lease, observe_leased)
        clock.advance(hours=1)
    found = await get_session(stumbling, who.pool_id, session.id)
    assert (found.session.observed_seq, found.jobs) == (3, [])
    assert observer.calls == 6


class UnreachableObserver(ExtractiveObserver):
    """Counts the calls that its provider never answers."""

    calls = 0

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        self.calls += 1
        raise ModelDown("down")


async def test_an_unreachable_provider_never_makes_a_job_dead(parts: Parts, who: Principal, clock: FakeClock) -> None:
    down = replace(
        parts, observer=UnreachableObserver(), settings=parts.settings.model_copy(update={"observe_tokens": 1})
    )
    session_id = await session_with_a_message(down, who)
    for _ in range(20):
        lease = await claim_job(down, who.pool_id, ["observe"])
        assert lease is not None
        with suppress(ModelDown):
            await run_job(down, lease, observe_leased)
        clock.advance(hours=1)
    [job] = (await get_session(down, who.pool_id, session_id)).jobs
    assert (job.state, job.error_kind) == ("ready", "ModelDown")
    # The failures do not count either when the job's worker dies later.
    assert await claim_job(down, who.pool_id, ["observe"]) is not None
    clock.advance(hours=1)
    assert await claim_job(down, who.pool_id, ["observe"]) is not None


async def test_new_messages_do_not_shorten_the_backoff_of_a_job_with_an_unreachable_provider(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    observer = UnreachableObserver()
    down = replace(parts, observer=observer, settings=parts.settings.model_copy(update={"observe_tokens": 1}))
    session_id = await session_with_a_message(down, who)
    for number in range(60):
        await ingest(down, who.pool_id, session_id, [IncomingMessage(f"n{number}", "user", "More.")])
        if lease := await claim_job(down, who.pool_id, ["observe"]):
            with suppress(ModelDown):
                await run_job(down, lease, observe_leased)
        clock.advance(seconds=6)
    assert observer.calls == 6  # 6 minutes, one call in each


async def test_new_messages_do_not_shorten_the_pause_of_a_dead_job(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    class Poisoned(ExtractiveObserver):
        """Fails every call."""

        calls = 0

        async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
            self.calls += 1
            raise ModelFailed("poisoned")

    observer = Poisoned()
    changes = {"observe_tokens": 1}
    poisoned = replace(parts, observer=observer, settings=parts.settings.model_copy(update=changes))
    session_id = await session_with_a_message(poisoned, who)
    for number in range(60):
        await ingest(poisoned, who.pool_id, session_id, [IncomingMessage(f"n{number}", "user", "More.")])
        if lease := await claim_job(poisoned, who.pool_id, ["observe"]):
            with suppress(ModelFailed):
                await run_job(poisoned, lease, observe_leased)
        clock.advance(minutes=10)
    assert observer.calls < 8 + 10 * 3  # ten hours, and a pause of half an hour to an hour after each


def reflection_of(row: Memory, now: datetime) -> NewMemory:
    """Return a reflection of one row."""
    return NewMemory(
        id="mem_reflected",
        kind="reflection",
        priority="high",
        category="fact",
        trust="user",
        content="Floats are out.",
        author="test",
        said_at=row.said_at,
        created_at=now,
        session_id=row.session_id,
        source_ids=(row.id,),
        reflection_id="ref_1",
    )


async def test_a_server_whose_job_runner_does_not_move_is_not_ready(parts: Parts, clock: FakeClock) -> None:
    async with beside("the job runner", lambda: run_jobs(parts)):
        await eventually(lambda: has_moved(parts))
    clock.advance(seconds=95)
    found = await readiness(parts)
    assert (found.ready, found.database, found.jobs) == (False, "ok", "The job runner has not moved for 95 s.")


async def has_moved(parts: Parts) -> bool:
    """Return whether the job runner has moved."""
    return parts.pulse.stopped_for(parts.clock() + timedelta(days=1)) is not None
