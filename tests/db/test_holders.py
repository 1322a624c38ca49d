"""Leases end with the process that holds them, and not before."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from esker.server.core.clock import SharedClock
from esker.server.core.records import Lease, Principal
from esker.server.db.database import Database
from esker.server.db.holder import Holder
from esker.server.usecases.embed import claim as claim_rows
from esker.server.usecases.end_leases import MissingHolders, end_abandoned_leases
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.run_job import claim_job
from tests.support.clock import FakeClock
from tests.support.embedding_server import asked_at, embedding_server, known_space
from tests.support.waiting import eventually

GRACE = 5.0
"""Monotonic seconds after which a missing holder is gone."""


class Process:
    """The part of a server that holds leases; `die` is what kill -9 does to its connection."""

    def __init__(self, parts: Parts) -> None:
        self.parts = replace(parts, holder=Holder())
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        async with self.parts.holder.held(self.parts.database.direct_url, SharedClock()):
            await self._stop.wait()

    async def until_it_lives(self) -> "Process":
        """Wait until it holds its lock."""
        await eventually(self._is_held)
        return self

    async def _is_held(self) -> bool:
        return self.parts.holder.is_held

    async def die(self) -> None:
        """End the connection. Leases stay as they are."""
        self._stop.set()
        await self._task


async def claimed(parts: Parts, who: Principal) -> Lease | None:
    return await claim_job(parts, who.pool_id, ["observe"])


async def with_a_job(parts: Parts, who: Principal) -> Parts:
    """Return parts of a server after a session became due."""
    eager = replace(parts, settings=parts.settings.model_copy(update={"observe_tokens": 1}))
    session = await open_session(eager, who.pool_id, SessionRequest("api", "s1"))
    await ingest(eager, who.pool_id, session.id, [IncomingMessage("m1", "user", "Never use floats for money.")])
    return eager


async def looked(parts: Parts, missing: MissingHolders) -> list[int]:
    """Return how many leases two looks end, with the grace period between them."""
    return [await end_abandoned_leases(parts, missing, moment) for moment in (0.0, GRACE)]


async def test_the_job_of_a_killed_server_is_taken_up_at_once(parts: Parts, who: Principal) -> None:
    eager = await with_a_job(parts, who)
    killed = await Process(eager).until_it_lives()
    first = await claimed(killed.parts, who)
    assert first
    assert await looked(eager, MissingHolders()) == [0, 0], "its holder lives"
    assert await claimed(eager, who) is None
    await killed.die()
    await eventually(lambda: _abandoned(eager))
    assert await looked(eager, MissingHolders()) == [0, 1]
    second = await claimed(eager, who)
    assert second
    assert (second.subject, second.attempts) == (first.subject, 2)
    assert second.token != first.token


async def _abandoned(parts: Parts) -> bool:
    [row] = await parts.database.ask(
        "SELECT count(*) FROM abandoned_holders(%(now)s) AS holder", {"now": parts.clock()}
    )
    return row["count"] == 1


async def test_rows_in_the_hand_of_a_killed_worker_are_taken_up_at_once_in_whole_batches(
    parts: Parts, who: Principal
) -> None:
    async with embedding_server() as endpoint, asked_at(endpoint) as embedder:
        space = await known_space(parts, embedder)
        await remember(parts, who, [Note(f"River {n}.") for n in range(128)])
        killed = await Process(parts).until_it_lives()
        for _ in range(2):
            assert await claim_rows(killed.parts, space, who.pool_id, tried=False)
        await killed.die()
        await eventually(lambda: _abandoned(parts))
        assert await looked(parts, MissingHolders()) == [0, 128]
        batches = [await claim_rows(parts, space, who.pool_id, tried=False) for _ in range(2)]
        assert [len(batch.batch.rows) for batch in batches if batch] == [64, 64]


async def test_a_holder_that_reconnects_keeps_its_leases(parts: Parts, who: Principal, owner_url: str) -> None:
    eager = await with_a_job(parts, who)
    process = await Process(eager).until_it_lives()
    lease = await claimed(process.parts, who)
    assert lease
    missing = MissingHolders()
    with psycopg.connect(owner_url, autocommit=True) as connection:
        await asyncio.to_thread(connection.execute, _CUT, {"number": process.parts.holder.number})
        await eventually(lambda: _abandoned(eager))
        assert await end_abandoned_leases(eager, missing, 0.0) == 0
        await process.until_it_lives()
        await eventually(lambda: _none_is_abandoned(eager))
    assert await end_abandoned_leases(eager, missing, GRACE) == 0
    assert await claimed(eager, who) is None
    await process.die()


_CUT = """
    SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = %(number)s
"""


async def _none_is_abandoned(parts: Parts) -> bool:
    return not await _abandoned(parts)


async def test_a_job_that_keeps_killing_its_server_waits_longer_each_time(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    eager = await with_a_job(parts, who)
    waits: list[float] = []
    for _ in range(4):
        killed = await Process(eager).until_it_lives()
        assert await claimed(killed.parts, who)
        await killed.die()
        await eventually(lambda: _abandoned(eager))
        assert await looked(eager, MissingHolders()) == [0, 1]
        waits.append(await _wait(eager, who))
        clock.advance(seconds=max(0.0, waits[-1]))
    assert waits[:2] == [0, 0]
    assert 7.5 <= waits[2] <= 15
    assert 15 <= waits[3] <= 30


async def _wait(parts: Parts, who: Principal) -> float:
    """Return for how many seconds the job is put off."""
    async with parts.database.tenant(who.pool_id) as connection:
        row = await (await connection.execute("SELECT run_after FROM jobs")).fetchone()
    assert row
    return (row[0] - parts.clock()).total_seconds()


def test_a_holder_is_gone_after_it_was_missed_for_the_whole_grace_period() -> None:
    missing = MissingHolders()
    assert missing.gone({1}, 0.0) == []
    assert missing.gone({1, 2}, 2.0) == []
    assert missing.gone({2}, 4.0) == []
    assert missing.gone({1, 2}, 6.0) == [2]


def test_a_token_names_its_holder_only_while_the_holder_has_its_lock(owner_url: str) -> None:
    holder = Holder()
    without = holder.token()
    holder.is_held = True
    tokens = [holder.token() for _ in range(50)]
    with psycopg.connect(owner_url) as connection:
        found = connection.execute(
            "SELECT lease_holder(token) FROM unnest(%s::uuid[]) AS token", [[without, *tokens]]
        ).fetchall()
    assert [number for (number,) in found] == [None, *[holder.number] * 50]
    assert len(set(tokens)) == 50


@pytest.mark.parametrize("wrong_by", [timedelta(hours=1), timedelta(hours=-1)])
async def test_time_comes_from_the_database_whatever_the_machines_clock_says(
    database: Database, wrong_by: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esker.server.core.clock.system_clock", lambda: database.clock() + wrong_by)
    async with database.tenant("00000000-0000-0000-0000-000000000000") as connection:
        row = await (await connection.execute("SELECT clock_timestamp()")).fetchone()
    assert row
    assert abs(database.clock() - row[0]) < timedelta(minutes=1)


def test_a_small_difference_between_two_readings_does_not_make_time_jump() -> None:
    clock, start = SharedClock(), FakeClock().now
    clock.read(start, 10.0, 10.2)
    clock.read(start + timedelta(seconds=5.05), 15.0, 15.2)
    assert clock._at(20.1) == start + timedelta(seconds=10)
    clock.read(start + timedelta(hours=1), 20.0, 20.2)
    assert clock._at(20.1) == start + timedelta(hours=1)
