"""Whatever happens in whatever order, no message is lost, covered twice, or marked observed without being seen.

Each seed is a random interleaving of batches, resends, observers at once, models that fail, events, reflections and
crashes before and after every commit. `--full` runs more of them.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import psycopg

from server.core.errors import EskerError, ModelFailed, Unavailable
from server.core.records import Filter, Observed, Principal, TranscriptSlice
from server.db.database import Connection, Database
from server.providers.extractive.observer import ExtractiveObserver
from server.usecases.forget import forget
from server.usecases.ingest import IncomingMessage, ingest
from server.usecases.observe import observe, observe_leased
from server.usecases.open_session import SessionRequest, open_session
from server.usecases.pack import get_pack
from server.usecases.parts import Parts
from server.usecases.receive_event import EventKind, receive_event
from server.usecases.reflect import reflect, reflect_leased
from server.usecases.remember import list_memories
from server.usecases.run_job import claim_job, run_job
from tests.support.clock import FakeClock

STEPS = 18
WORDS = (
    "Never use floats for money. We decided to use Redis. Please fix the login. The tests are broken. ok 部署".split(
        ". "
    )
)


class Crash(EskerError):
    """The process died here."""


class CrashingDatabase(Database):
    """Dies at transaction boundaries with a certain probability: before a commit, or just after one."""

    chance = 0.0
    dice = random.Random(0)  # noqa: S311

    @asynccontextmanager
    async def tenant(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a transaction that may be the last thing this process does."""
        fate = self.dice.random()
        async with super().tenant(pool_id) as connection:
            yield connection
            if fate < self.chance / 2:
                raise Crash("before the commit")
        if fate < self.chance:
            raise Crash("after the commit")


@dataclass
class WatchedObserver:
    """The extractive observer, watched: what it was shown; sometimes it fails or takes its time."""

    dice: random.Random
    seen: set[int] = field(default_factory=set[int])
    name: str = "watched"

    async def observe(self, shown: TranscriptSlice) -> Observed:
        """Return the facts of a slice, or fail."""
        self.seen |= {message.seq for message in shown.messages}
        await asyncio.sleep(0)
        if self.dice.random() < 0.15:
            raise ModelFailed("the dice said so")
        return await ExtractiveObserver().observe(shown)

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class World:
    """One session under fire, and what its client knows to be acknowledged."""

    parts: Parts
    who: Principal
    clock: FakeClock
    dice: random.Random
    observer: WatchedObserver
    session_id: str = ""
    acknowledged: list[str] = field(default_factory=list[str])
    sent: int = 0
    packs: dict[int, str] = field(default_factory=dict[int, str])

    async def step(self) -> None:
        """Do one thing, or several at once."""
        actions = [
            self.send,
            self.send,
            self.resend,
            self.observe,
            self.observe_twice,
            self.run_due,
            self.event,
            self.reflect,
            self.pack,
            self.forget,
        ]
        action = self.dice.choice(actions)
        self.clock.advance(seconds=self.dice.choice([0, 1, 30, 300]))
        with suppress(Crash, ModelFailed, EskerError):
            await action()

    async def send(self) -> None:
        """Send new messages in a batch."""
        names = [f"m{self.sent + n}" for n in range(self.dice.randint(1, 6))]
        self.sent += len(names)
        await self._post(names)

    async def resend(self) -> None:
        """Send any of what was ever sent again, in any order, some of it perhaps for the first time."""
        names = [f"m{n}" for n in range(self.sent)]
        self.dice.shuffle(names)
        await self._post(names[: self.dice.randint(0, len(names))])

    async def _post(self, names: list[str]) -> None:
        role = "user"
        batch = [IncomingMessage(name, role, f"{name}: {WORDS[len(name + name[-1]) % len(WORDS)]}") for name in names]
        await ingest(self.parts, self.who.pool_id, self.session_id, batch)
        self.acknowledged += [name for name in names if name not in self.acknowledged]

    async def observe(self) -> None:
        """Observe and wait."""
        await self._waiting(observe(self.parts, self.who.pool_id, self.session_id, wait=True))

    async def _waiting(self, request: Coroutine[Any, Any, object]) -> None:
        """Wait for a request as a server does, which takes due jobs meanwhile."""
        task = asyncio.create_task(request)
        while not task.done():
            with suppress(EskerError):
                await self.run_due()
            await asyncio.sleep(0)
        await task

    async def observe_twice(self) -> None:
        """Two observers and a client at once."""
        await asyncio.gather(self.observe(), self.run_due(), self.send(), return_exceptions=True)

    async def run_due(self) -> None:
        """Take a job that is due, as the background runner does."""
        if lease := await claim_job(self.parts, self.who.pool_id, ["observe", "reflect"]):
            await run_job(self.parts, lease, observe_leased if lease.kind == "observe" else reflect_leased)

    async def event(self) -> None:
        """Tell of an event."""
        kinds: list[EventKind] = ["compaction_pending", "session_end", "turn_end", "evicted"]
        kind = self.dice.choice(kinds)
        await receive_event(self.parts, self.who.pool_id, self.session_id, kind)

    async def reflect(self) -> None:
        """Reflect and wait."""
        await self._waiting(reflect(self.parts, self.who.pool_id, self.session_id, wait=True))

    async def pack(self) -> None:
        """Ask for the pack: what was frozen under a version never changes."""
        pack = await get_pack(self.parts, self.who.pool_id, self.session_id)
        assert self.packs.setdefault(pack.version, pack.sha256) == pack.sha256

    async def forget(self) -> None:
        """Forget a row while others reflect and freeze."""
        rows = await list_memories(self.parts, self.who.pool_id, Filter(self.clock()), before=None, limit=100)
        if rows:
            gone = self.dice.choice(rows)
            forgetting = forget(self.parts, self.who, gone.id, with_messages=self.dice.random() < 0.3)
            await asyncio.gather(forgetting, self.reflect(), self.pack(), return_exceptions=True)


def check(owner_url: str, world: World, *, drained: bool) -> None:
    """Compare the database with what was acknowledged and what was seen."""
    with psycopg.connect(owner_url) as connection:
        messages = connection.execute("SELECT seq, external_id, tokens FROM messages ORDER BY seq").fetchall()
        groups = connection.execute("SELECT first_seq, last_seq FROM observation_groups ORDER BY 1").fetchall()
        session = connection.execute(
            "SELECT last_seq, observed_seq, unobserved_tokens, total_tokens FROM sessions"
        ).fetchone()
        sources = connection.execute(
            "SELECT g.first_seq, g.last_seq, m.source_seqs"
            " FROM memories m JOIN observation_groups g ON g.id = m.group_id"
        ).fetchall()
        deadlocks = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
        shown = connection.execute("SELECT DISTINCT unnest(memory_ids) FROM packs").fetchall()
        there = connection.execute("SELECT id FROM memories").fetchall()
    assert session is not None
    assert deadlocks == (0,)
    assert set(shown) <= set(there), "a pack shows what was forgotten"
    last, observed, unobserved, total = session
    assert [seq for seq, _, _ in messages] == list(range(1, last + 1))
    names = [name for _, name, _ in messages]
    assert len(names) == len(set(names)), "stored twice"
    assert set(world.acknowledged) <= set(names), "lost after it was acknowledged"
    covered = [seq for first, end in groups for seq in range(first, end + 1)]
    assert covered == list(range(1, observed + 1)), "not covered exactly once"
    assert set(covered) <= world.observer.seen, "marked observed without being seen"
    assert unobserved == sum(tokens for seq, _, tokens in messages if seq > observed)
    assert total == sum(tokens for _, _, tokens in messages)
    assert all(first <= seq <= end for first, end, seqs in sources for seq in seqs)
    if drained:
        assert observed == last


async def test_nothing_is_lost_or_covered_twice(
    seed: int, parts: Parts, who: Principal, clock: FakeClock, database_url: str, owner_url: str
) -> None:
    dice = random.Random(seed)  # noqa: S311
    observer = WatchedObserver(dice)
    async with CrashingDatabase(database_url, connections=6) as database:
        database.dice = dice
        clock.tick = timedelta(seconds=1)  # so that the lease of a worker that died runs out
        changes = {"observe_tokens": 60, "job_lease_seconds": 5.0, "job_attempts": 10_000}
        settings = parts.settings.model_copy(update=changes)
        world = World(
            replace(parts, database=database, observer=observer, settings=settings), who, clock, dice, observer
        )
        world.session_id = (await open_session(parts, who.pool_id, SessionRequest("api", "s1"))).id
        database.chance = 0.2
        for _ in range(STEPS):
            await world.step()
            check(owner_url, world, drained=False)
        database.chance = 0.0
        while not await _drained(world):
            clock.advance(hours=2)
        check(owner_url, world, drained=True)


async def _drained(world: World) -> bool:
    try:
        await world.observe()
    except (ModelFailed, Unavailable):
        return False
    return True
