"""In any order of events, no message is lost, covered twice, or marked observed without being seen.

Each seed is a random interleaving of batches, resends, observers at once, models that fail, events, reflections of
sessions and of the pool, their undoing, forgetting, restarts and crashes before and after every commit. `--full` runs
more of them.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from esker.server.core.budgets import LARGE_OBSERVER, REFLECTION_TOKENS, ObserverBudget
from esker.server.core.errors import Conflict, EskerError, ModelFailed, NotFound, UnusableAnswer
from esker.server.core.facts.records import Draft, Observed, Reflected, ReflectionTask, TranscriptSlice
from esker.server.core.records import Filter, JobKind, Principal
from esker.server.db.database import Connection, Database
from esker.server.providers.extractive_roles import ExtractiveObserver
from esker.server.providers.roles import Meter
from esker.server.usecases.forget import forget_text
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.receive_event import EventKind, receive_event
from esker.server.usecases.reflect import reflect, reflect_leased
from esker.server.usecases.reflect_pool import PoolReflection, reflect_pool, reflect_pool_leased
from esker.server.usecases.reflections import list_reflections, undo_reflection
from esker.server.usecases.remember import list_memories
from esker.server.usecases.run_job import Work, claim_job, run_job
from tests.support.clock import FakeClock
from tests.support.invariants import broken

STEPS = 18
WORK: dict[JobKind, Work] = {
    "observe": observe_leased,
    "reflect": reflect_leased,
    "reflect_pool": reflect_pool_leased,
}
WORDS = (
    "Never use floats for money.",
    "We decided to name module {} after a river.",
    "We decided to use Redis.",
    "Please fix the login of {}.",
    "The tests of {} are broken since we use Redis instead of files.",
    "ok 部署",
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
        async with self._dying(super().tenant(pool_id)) as connection:
            yield connection

    @asynccontextmanager
    async def tenant_pipeline(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open such a transaction in pipeline mode."""
        async with self._dying(super().tenant_pipeline(pool_id)) as connection:
            yield connection

    @asynccontextmanager
    async def _dying(self, opened: AbstractAsyncContextManager[Connection]) -> AsyncGenerator[Connection]:
        fate = self.dice.random()
        async with opened as connection:
            yield connection
            if fate < self.chance / 2:
                raise Crash("before the commit")
        if fate < self.chance:
            raise Crash("after the commit")


@dataclass
class WatchedObserver:
    """The extractive observer, watched: what it was shown; sometimes it fails or takes its time.

    Now and then it says that a fact replaces a row that it was shown, and that others were used.
    """

    dice: random.Random
    seen: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    name: str = "watched"

    async def budget(self) -> ObserverBudget:
        """Return the usual budget."""
        return LARGE_OBSERVER

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts of a slice, or fail."""
        self.seen.setdefault(shown.session.id, set()).update(message.seq for message in shown.messages)
        await asyncio.sleep(0)
        if self.dice.random() < 0.15:
            raise ModelFailed("the dice said so")
        observed = await ExtractiveObserver().observe(shown, meter)
        offered = [row.id for row in (*shown.previous, *shown.known)]
        facts = tuple(
            replace(fact, replaces=self.dice.choice(offered) if offered and self.dice.random() < 0.2 else fact.replaces)
            for fact in observed.facts
        )
        return replace(observed, facts=facts, used_ids=tuple(offered[:2]))

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class RandomReflector:
    """Puts a short row in the place of some rows, drops others and leaves others; now and then it is useless."""

    dice: random.Random
    name: str = "random"

    async def batch_tokens(self) -> int:
        """Return the usual size."""
        return REFLECTION_TOKENS

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return a candidate, or fail."""
        await asyncio.sleep(0)
        fate = self.dice.random()
        if fate < 0.1:
            raise UnusableAnswer("the dice said so")
        if fate < 0.15:
            raise ModelFailed("the dice said so")
        if fate < 0.2:
            return Reflected((Draft("word " * 5_000, "low", "fact", (task.rows[0].id,)),))
        ids = [row.id for row in task.rows]
        self.dice.shuffle(ids)
        half = max(1, len(ids) // 2)
        drafts = (Draft("A short row.", "medium", "fact", tuple(ids[:half])),)
        return Reflected(drafts if len(ids) > 1 else (), tuple(ids[half : half + half // 2]))

    async def close(self) -> None:
        """Do nothing."""


@dataclass
class CheckedSession:
    """One session under fire: what its client knows to be acknowledged, and the packs that it was given."""

    id: str
    acknowledged: list[str] = field(default_factory=list[str])
    sent: int = 0
    packs: dict[int, str] = field(default_factory=dict[int, str])


@dataclass
class World:
    """Several sessions of one pool, and everything that can happen to them."""

    parts: Parts
    who: Principal
    clock: FakeClock
    dice: random.Random
    observer: WatchedObserver
    conversations: list[CheckedSession] = field(default_factory=list[CheckedSession])

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
            self.reflect_all,
            self.reflect_pool,
            self.undo,
            self.restart,
            self.pack,
            self.forget,
        ]
        action = self.dice.choice(actions)
        self.clock.advance(seconds=self.dice.choice([0, 1, 30, 300]))
        await self._at_once(action())

    async def _at_once(self, *things: Coroutine[Any, Any, object]) -> None:
        """Do things at the same time; what may go wrong in this world may, and nothing else."""
        for result in await asyncio.gather(*things, return_exceptions=True):
            if isinstance(result, BaseException) and not _may_happen(result):
                raise result

    def _any(self) -> CheckedSession:
        return self.dice.choice(self.conversations)

    async def send(self) -> None:
        """Send new messages in a batch."""
        one = self._any()
        names = [f"m{one.sent + n}" for n in range(self.dice.randint(1, 6))]
        one.sent += len(names)
        await self._post(one, names)

    async def resend(self) -> None:
        """Send any of what was ever sent again, in any order, some of it perhaps for the first time."""
        one = self._any()
        names = [f"m{n}" for n in range(one.sent)]
        self.dice.shuffle(names)
        await self._post(one, names[: self.dice.randint(0, len(names))])

    async def _post(self, one: CheckedSession, names: list[str]) -> None:
        role = "user"
        batch = [IncomingMessage(name, role, WORDS[int(name[1:]) % len(WORDS)].format(name)) for name in names]
        await ingest(self.parts, self.who.pool_id, one.id, batch)
        one.acknowledged += [name for name in names if name not in one.acknowledged]

    async def observe(self, one: CheckedSession | None = None) -> None:
        """Observe and wait."""
        await self._waiting(observe(self.parts, self.who.pool_id, (one or self._any()).id, wait=True))

    async def _waiting(self, request: Coroutine[Any, Any, object]) -> None:
        """Wait for a request as a server does, which takes due jobs meanwhile."""
        task = asyncio.create_task(request)
        while not task.done():
            await self._at_once(self.run_due(), self.run_due())
            await asyncio.sleep(0)
        await task

    async def observe_twice(self) -> None:
        """Two observers and a client at once."""
        await self._at_once(self.observe(), self.run_due(), self.send())

    async def run_due(self) -> None:
        """Take a job that is due, as the background runner does."""
        if lease := await claim_job(self.parts, self.who.pool_id, list(WORK)):
            await run_job(self.parts, lease, WORK[lease.kind])

    async def event(self) -> None:
        """Tell of an event, perhaps twice at once, perhaps under a key that was used before."""
        kinds: list[EventKind] = ["compaction_pending", "session_end", "turn_end", "evicted"]
        one, kind, key = self._any(), self.dice.choice(kinds), self.dice.choice([None, "a", "b"])
        await self._at_once(
            *(receive_event(self.parts, self.who.pool_id, one.id, kind, key) for _ in range(self.dice.randint(1, 2)))
        )

    async def reflect_all(self) -> None:
        """Reflect every session at once, and wait."""
        await self._at_once(*(self._reflect(one) for one in self.conversations))

    async def _reflect(self, one: CheckedSession) -> None:
        await self._waiting(reflect(self.parts, self.who.pool_id, one.id, wait=True))

    async def reflect_pool(self) -> None:
        """Reflect the pool, while a session is observed and another reflection runs."""
        pool = reflect_pool(self.parts, self.who.pool_id, PoolReflection(min_age_days=0), wait=True)
        await self._at_once(self._waiting(pool), self.observe(), self._reflect(self._any()))

    async def undo(self) -> None:
        """Take a reflection back while others reflect."""
        made = await list_reflections(self.parts, self.who.pool_id)
        if made:
            undoing = undo_reflection(self.parts, self.who, self.dice.choice(made).id)
            await self._at_once(undoing, self.run_due(), self.pack())

    async def restart(self) -> None:
        """Go on with a new process, after leases of the old one have run out."""
        self.clock.advance(seconds=self.parts.settings.job_lease_seconds * 2)
        self.parts = replace(self.parts)

    async def pack(self) -> None:
        """Ask for packs; the text frozen under a version never changes."""
        for one in self.conversations:
            pack = await get_pack(self.parts, self.who.pool_id, one.id)
            assert one.packs.setdefault(pack.version, pack.sha256) == pack.sha256

    async def forget(self) -> None:
        """Forget a row while others reflect and freeze."""
        rows = await list_memories(self.parts, self.who.pool_id, Filter(self.clock()), before=None, limit=100)
        if rows:
            gone = self.dice.choice(rows)
            forgetting = forget_text(self.parts, self.who, gone.id, with_messages=self.dice.random() < 0.3)
            await self._at_once(forgetting, self.reflect_all(), self.pack())


def _may_happen(error: BaseException) -> bool:
    """Whether an error is expected in this simulation: a crash, a model that failed, a lost race."""
    # The waiting caller gets the error of its job, unless that was forgotten meanwhile.
    told = isinstance(error, EskerError) and ("the commit" in str(error) or "forgotten with" in str(error))
    return told or isinstance(error, (Crash, ModelFailed, NotFound, Conflict))


def check(connection: psycopg.Connection, world: World, *, drained: bool) -> None:
    """Compare the database with what was acknowledged and what was seen."""
    deadlocks = connection.execute(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    ).fetchone()
    shown = connection.execute("SELECT DISTINCT unnest(memory_ids) FROM packs").fetchall()
    there = connection.execute("SELECT id FROM memories").fetchall()
    check_reflections(connection)
    assert deadlocks == (0,)
    assert set(shown) <= set(there), "a pack shows what was forgotten"
    for one in world.conversations:
        check_session(connection, world, one, drained=drained)


def check_reflections(connection: psycopg.Connection) -> None:
    """Every row that was replaced leads to what replaced it, and what was undone replaces nothing."""
    orphans = connection.execute(
        "SELECT m.id FROM memories m WHERE m.superseded_by LIKE 'mem%' AND NOT EXISTS"
        " (SELECT FROM memories o WHERE o.id = m.superseded_by)"
    ).fetchall()
    assert orphans == [], "replaced by nothing"
    undone = connection.execute(
        "SELECT m.id FROM memories m JOIN reflections r ON r.id = m.reflection_id"
        " WHERE r.state = 'undone' AND m.superseded_at IS NULL"
        " AND NOT EXISTS (SELECT FROM memory_sources s WHERE s.memory_id = m.id)"
        " AND NOT EXISTS (SELECT FROM memories o WHERE o.superseded_by = m.id)"
    ).fetchall()
    assert undone == [], "a row of an undone reflection is live"
    hidden = connection.execute(
        # A row of it that was said again since is live, and may replace another like any live row.
        "SELECT m.id FROM memories m JOIN reflections r ON r.state = 'undone' AND m.id = ANY (r.input_ids)"
        " LEFT JOIN memories o ON o.id = m.superseded_by AND o.id = ANY (r.output_ids)"
        " WHERE m.superseded_by = r.id OR o.superseded_by = r.id"
    ).fetchall()
    assert hidden == [], "still replaced by an undone reflection"


def check_session(connection: psycopg.Connection, world: World, one: CheckedSession, *, drained: bool) -> None:
    """Compare one session with what its client knows."""
    about = (one.id,)
    messages = connection.execute(
        "SELECT seq, external_id, tokens, text FROM messages WHERE session_id = %s ORDER BY seq", about
    ).fetchall()
    groups = connection.execute(
        "SELECT first_seq, last_seq FROM observation_groups WHERE session_id = %s ORDER BY 1", about
    ).fetchall()
    session = connection.execute(
        "SELECT last_seq, observed_seq, unobserved_tokens, total_tokens FROM sessions WHERE id = %s", about
    ).fetchone()
    sources = connection.execute(
        "SELECT g.first_seq, g.last_seq, m.source_seqs FROM memories m JOIN observation_groups g ON g.id = m.group_id"
        " WHERE m.session_id = %s"
        " UNION ALL SELECT g.first_seq, g.last_seq, s.seqs FROM memory_sources s JOIN observation_groups g"
        " ON g.id = s.group_id WHERE s.session_id = %s",
        (one.id, one.id),
    ).fetchall()
    assert session is not None
    last, observed, unobserved, total = session
    assert [seq for seq, *_ in messages] == list(range(1, last + 1))
    names = [name for _, name, *_ in messages]
    assert len(names) == len(set(names)), "stored twice"
    assert set(one.acknowledged) <= set(names), "lost after it was acknowledged"
    covered = [seq for first, end in groups for seq in range(first, end + 1)]
    assert covered == list(range(1, observed + 1)), "not covered exactly once"
    # A message whose words were forgotten before it was observed has nothing to see.
    wordless = {seq for seq, _, _, text in messages if not text}
    assert set(covered) - wordless <= world.observer.seen.get(one.id, set()), "marked observed without being seen"
    assert unobserved == sum(tokens for seq, _, tokens, _ in messages if seq > observed)
    assert total == sum(tokens for _, _, tokens, _ in messages)
    assert all(first <= seq <= end for first, end, seqs in sources for seq in seqs)
    if drained:
        assert observed == last


@pytest.fixture
def owner(owner_url: str) -> Generator[psycopg.Connection]:
    """A connection of the owner, which sees all pools."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        yield connection


async def test_nothing_is_lost_or_covered_twice(
    seed: int, parts: Parts, who: Principal, clock: FakeClock, database_url: str, owner: psycopg.Connection
) -> None:
    dice = random.Random(seed)  # noqa: S311
    observer = WatchedObserver(dice)
    async with CrashingDatabase(database_url, connections=12) as database:
        database.dice = dice
        clock.tick = timedelta(seconds=1)  # so that the lease of a worker that died runs out
        changes = {"observe_tokens": 60, "job_lease_seconds": 20.0, "job_attempts": 10_000}
        settings = parts.settings.model_copy(update=changes)
        world = World(
            replace(parts, database=database, observer=observer, reflector=RandomReflector(dice), settings=settings),
            who,
            clock,
            dice,
            observer,
        )
        for number in range(3):
            # Two of them share a project, so that what they hear becomes one row.
            asked = SessionRequest("api", f"s{number}", project="shop" if number else None)
            session = await open_session(parts, who.pool_id, asked)
            world.conversations.append(CheckedSession(session.id))
        database.chance = 0.2
        for _ in range(STEPS):
            await world.step()
            check(owner, world, drained=False)
        database.chance = 0.0
        assert await broken(parts) == []
        for one in world.conversations:
            while not await _drained(world, one):
                clock.advance(hours=2)
        check(owner, world, drained=True)
        assert await broken(parts) == []


async def _drained(world: World, one: CheckedSession) -> bool:
    try:
        await world.observe(one)
    except ModelFailed:
        return False
    return True
