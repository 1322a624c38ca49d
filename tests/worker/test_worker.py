"""The embedding worker: every row gets its vector, or a reason why not."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from esker.embedding_worker import worker
from esker.embedding_worker.worker import run_worker
from esker.server.core import worker_health
from esker.server.core.arrays import Vectors
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EmbedderDown, Misconfigured
from esker.server.core.recall.answer import Recalled
from esker.server.core.records import NewMemory, Principal, Space
from esker.server.core.text.indexing import indexed
from esker.server.core.worker_health import RUNNING, WorkerHealth, state_line
from esker.server.db.database import Database
from esker.server.providers.embedders import make_embedder
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.store import memories, vectors
from esker.server.usecases.authenticate import SCOPES, create_pool
from esker.server.usecases.embed import (
    MAX_ATTEMPTS,
    PAUSE,
    cooldown,
    embed_due,
    keep_up,
    make_space,
    pools_with_work,
    register,
    switch_when_complete,
)
from esker.server.usecases.forget import forget_text
from esker.server.usecases.inspect import stuck
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.report_status import backlog
from tests.support.clock import FakeClock
from tests.support.databases import until_one_waits
from tests.support.embedding_server import EmbeddingServer, asked_at, embedding_server, known_space
from tests.support.waiting import eventually

LOADING = "the embedding model is still loading"


@pytest.fixture
async def endpoint() -> AsyncGenerator[EmbeddingServer]:
    """A scripted embeddings endpoint."""
    async with embedding_server() as server:
        yield server


@pytest.fixture
async def embedder(endpoint: EmbeddingServer) -> AsyncGenerator[RemoteEmbedder]:
    """An embedder that uses this endpoint."""
    async with asked_at(endpoint) as made:
        yield made


@pytest.fixture
async def space(parts: Parts, embedder: RemoteEmbedder) -> Space:
    """The space of the embedder, known to every pool."""
    return await known_space(parts, embedder)


@pytest.fixture
def asking(parts: Parts, embedder: RemoteEmbedder) -> Parts:
    """Parts whose recall embeds its questions."""
    return replace(parts, embedders=QueryEmbedders(lambda _: embedder, "scripted"))


async def drain(parts: Parts, embedder: RemoteEmbedder, space: Space) -> None:
    """Embed everything that is due."""
    while pools := await pools_with_work(parts, space):
        for pool_id in pools:
            await embed_due(parts, embedder, space, pool_id)


def attempts(owner_url: str) -> dict[str, tuple[Any, ...]]:
    """Return the entries of the queue, by the content of the row."""
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute(
            "SELECT m.content, a.attempts, a.dead, a.last_error, a.lease_token IS NOT NULL"
            " FROM embedding_attempts a JOIN memories m ON m.number = a.number"
        ).fetchall()
    return {row[0]: row[1:] for row in rows}


def unexplained(owner_url: str, space: Space) -> int:
    """Return how many rows have neither a current vector nor a place in the queue."""
    with psycopg.connect(owner_url) as connection:
        row = connection.execute(
            f"SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT FROM embeddings_{space.name} v"  # type: ignore[arg-type]  # noqa: S608
            " WHERE v.number = m.number AND v.content_hash = m.content_hash)"
            " AND NOT EXISTS (SELECT FROM embedding_attempts a WHERE a.number = m.number)"
        ).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_bad_text_does_not_affect_the_others_of_its_batch(
    asking: Parts, who: Principal, endpoint: EmbeddingServer, embedder: RemoteEmbedder, space: Space, owner_url: str
) -> None:
    endpoint.refuses = {"BAD"}
    ids = await remember(asking, who, [Note("First river."), Note("BAD river."), Note("Third river.")])
    await drain(asking, embedder, space)
    assert attempts(owner_url) == {"BAD river.": (1, False, "The embedder answered 400.", False)}
    found = await recall(asking, who.pool_id, RecallRequest("river"))
    assert {hit.id for hit in found.hits} == set(ids)
    assert (found.semantic, found.pending) == ("ok", 1)


async def test_a_failing_row_is_retried_with_longer_pauses_and_then_dead_with_its_error(
    asking: Parts,
    who: Principal,
    clock: FakeClock,
    endpoint: EmbeddingServer,
    embedder: RemoteEmbedder,
    space: Space,
    owner_url: str,
) -> None:
    endpoint.refuses = {"BAD"}
    await remember(asking, who, [Note("BAD river.")])
    for number in range(1, MAX_ATTEMPTS + 1):
        await drain(asking, embedder, space)
        tries, dead, error, _ = attempts(owner_url)["BAD river."]
        assert (tries, dead, error) == (number, number == MAX_ATTEMPTS, "The embedder answered 400.")
        clock.now += cooldown(number)
        clock.advance(seconds=-1)
        assert await pools_with_work(asking, space) == []
        clock.advance(seconds=1)
    clock.advance(days=30)
    assert await pools_with_work(asking, space) == []
    assert list((await stuck(asking))[who.pool_name].embeddings)


def test_cooldowns_double_from_five_minutes_to_an_hour() -> None:
    assert [cooldown(n).total_seconds() / 60 for n in range(1, 8)] == [5, 10, 20, 40, 60, 60, 60]


async def test_an_embedder_that_is_down_costs_no_attempt_and_all_rows_are_embedded_later(
    asking: Parts,
    who: Principal,
    clock: FakeClock,
    endpoint: EmbeddingServer,
    embedder: RemoteEmbedder,
    space: Space,
    owner_url: str,
) -> None:
    endpoint.status = 503
    await remember(asking, who, [Note(f"River number {n}.") for n in range(10)])
    for _ in range(2 * MAX_ATTEMPTS):
        with pytest.raises(EmbedderDown):
            await drain(asking, embedder, space)
        clock.now += PAUSE
    assert {state[:3] for state in attempts(owner_url).values()} == {(0, False, "The embedder answered 503.")}
    found = await recall(asking, who.pool_id, RecallRequest("river"))
    assert (len(found.hits), found.semantic, found.pending) == (8, "degraded", 10)
    endpoint.status = 200
    await drain(asking, embedder, space)
    found = await recall(asking, who.pool_id, RecallRequest("river"))
    assert (found.semantic, found.pending) == ("ok", 0)
    assert attempts(owner_url) == {}


async def test_a_recall_counts_a_long_queue_again_after_two_seconds(
    asking: Parts, who: Principal, clock: FakeClock, space: Space, owner_url: str
) -> None:
    await remember(asking, who, [Note("A river runs.")])

    async def pending_after(seconds: float, more: int) -> int:
        clock.advance(seconds=seconds)
        with psycopg.connect(owner_url) as connection:
            connection.execute(
                "INSERT INTO embedding_attempts (pool_id, space, tier, number, urgency, not_before)"
                " SELECT pool_id, space, 'm', (SELECT max(number) FROM embedding_attempts) + n, 1, now()"
                " FROM embedding_attempts CROSS JOIN generate_series(1, %s) n WHERE number = (SELECT min(number)"
                " FROM embedding_attempts)",
                [more],
            )
        return (await recall(asking, who.pool_id, RecallRequest("river"))).pending

    assert await pending_after(0, more=0) == 1
    assert await pending_after(0, more=1_000) == 1_001
    assert await pending_after(1, more=1) == 1_001
    assert await pending_after(1, more=0) == 1_002


async def test_an_edit_while_its_text_is_embedded_wins(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, clock: FakeClock, owner_url: str
) -> None:
    [memory_id] = await remember(asking, who, [Note("The old words.")])
    async with asking.database.tenant(who.pool_id) as connection:
        late = await vectors.claim(connection, space.name, clock(), PAUSE, tried=False, limit=10)
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET content = 'New.', content_hash = sha256('New.')")
    async with asking.database.tenant(who.pool_id) as connection:
        await vectors.enqueue(connection, [memory_id], clock())
    old = await embedder.embed(["The old words."])
    async with asking.database.tenant(who.pool_id) as connection:
        assert await vectors.store(connection, late, late.rows, [old], clock()) == 0
    await drain(asking, embedder, space)
    assert unexplained(owner_url, space) == 0
    assert attempts(owner_url) == {}


async def test_a_worker_that_lost_its_lease_cannot_finish(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, clock: FakeClock
) -> None:
    await remember(asking, who, [Note("A river.")])
    async with asking.database.tenant(who.pool_id) as connection:
        late = await vectors.claim(connection, space.name, clock(), PAUSE, tried=False, limit=10)
    assert await pools_with_work(asking, space) == []
    clock.now += PAUSE
    async with asking.database.tenant(who.pool_id) as connection:
        second = await vectors.claim(connection, space.name, clock(), PAUSE, tried=False, limit=1)
    assert [row.id for row in second.rows] == [row.id for row in late.rows]
    made = await embedder.embed(["A river."])
    async with asking.database.tenant(who.pool_id) as connection:
        assert await vectors.store(connection, late, late.rows, [made], clock()) == 0
        assert await vectors.store(connection, second, second.rows, [made], clock()) == 1


async def test_two_workers_share_the_work_and_do_none_twice(
    asking: Parts, who: Principal, endpoint: EmbeddingServer, embedder: RemoteEmbedder, space: Space, owner_url: str
) -> None:
    await remember(asking, who, [Note(f"River number {n}.") for n in range(300)])
    endpoint.asked.clear()
    await asyncio.gather(*(drain(asking, embedder, space) for _ in range(4)))
    texts = [text for batch in endpoint.asked for text in batch]
    assert len(texts) == len(set(texts)) == 300
    assert max(len(batch) for batch in endpoint.asked) <= 64
    assert unexplained(owner_url, space) == 0


async def test_rows_are_embedded_by_priority_and_the_newest_first(
    asking: Parts, who: Principal, endpoint: EmbeddingServer, embedder: RemoteEmbedder, space: Space, clock: FakeClock
) -> None:
    for priority in ("low", "high", "medium", "high"):
        await remember(asking, who, [Note(f"{priority} {clock.advance(seconds=1):%S}", priority=priority)])
    async with asking.database.tenant(who.pool_id) as connection:
        claimed = [await vectors.claim(connection, space.name, clock(), PAUSE, tried=False, limit=1) for _ in range(4)]
    order = [batch.rows[0].content for batch in claimed]
    assert order == ["high 04", "high 02", "medium 03", "low 01"]


@pytest.mark.parametrize("kind", ["observation", "reflection", "note", "manual"])
async def test_missed_rows_of_every_kind_are_queued_again(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, clock: FakeClock, owner_url: str, kind: Any
) -> None:
    with psycopg.connect(owner_url) as connection:
        connection.execute(
            "INSERT INTO sessions (pool_id, id, client, external_id, timezone, effective_context, created_at, begun_at)"
            " VALUES (%(pool)s, 's', 'api', 's', 'UTC', 200000, now(), now());",
            {"pool": who.pool_id},
        )
        connection.execute(
            "INSERT INTO observation_groups (pool_id, id, session_id, first_seq, last_seq, first_external_id,"
            " last_external_id, observer, input_tokens, output_tokens, created_at)"
            " VALUES (%(pool)s, 'g', 's', 1, 1, 'a', 'a', 'x', 0, 0, now())",
            {"pool": who.pool_id},
        )
    row = NewMemory(
        id="mem_slipped",
        kind=kind,
        priority="medium",
        category="fact",
        trust="user",
        content="A river that slipped through.",
        author="test",
        said_at=clock(),
        created_at=clock(),
        session_id="s",
        group_id="g" if kind == "observation" else None,
        source_seqs=(1,) if kind == "observation" else (),
        source_ids=("mem_x",) if kind == "reflection" else (),
        reflection_id="ref_x" if kind == "reflection" else None,
    )
    async with asking.database.tenant(who.pool_id) as connection:
        await memories.insert(connection, indexed([row]))
    assert unexplained(owner_url, space) == 1
    await keep_up(asking, space)
    assert unexplained(owner_url, space) == 0
    await drain(asking, embedder, space)
    found = await recall(asking, who.pool_id, RecallRequest("river"))
    assert (found.pending, [hit.id for hit in found.hits]) == (0, ["mem_slipped"])


async def test_healing_changes_no_id_and_no_date(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, owner_url: str
) -> None:
    await remember(asking, who, [Note(f"River {n}.") for n in range(5)])
    query = "SELECT m::text FROM memories m ORDER BY id"
    with psycopg.connect(owner_url) as connection:
        before = connection.execute(query).fetchall()
        connection.execute("DELETE FROM embedding_attempts")
        connection.commit()
        await keep_up(asking, space)
        await drain(asking, embedder, space)
        assert connection.execute(query).fetchall() == before


async def test_vectors_of_forgotten_rows_are_deleted(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, owner_url: str
) -> None:
    [memory_id] = await remember(asking, who, [Note("A river.")])
    await drain(asking, embedder, space)
    receipt = await forget_text(asking, who, memory_id, with_messages=False)
    assert receipt.vectors == 1
    with psycopg.connect(owner_url) as connection:
        connection.execute(
            f"INSERT INTO embeddings_{space.name} SELECT %s, 'm', 0, 0, '\\x', array_fill(1, ARRAY[8])::halfvec, now()",  # type: ignore[arg-type]
            (who.pool_id,),
        )
        connection.commit()
        await keep_up(asking, space)
        count = connection.execute(f"SELECT count(*) FROM embeddings_{space.name}").fetchone()  # type: ignore[arg-type]  # noqa: S608
    assert count == (0,)


async def test_another_model_gets_a_space_of_its_own_beside_the_old_one(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, endpoint: EmbeddingServer
) -> None:
    await remember(asking, who, [Note(f"River number {n}.") for n in range(3)])
    await drain(asking, embedder, space)
    async with asked_at(endpoint, "other-model-of-the-same-dimension") as other:
        other_space = await other.load()
        assert other_space.name != space.name
        assert other_space.dimension == space.dimension
        await make_space(asking, other_space)
        await register(asking, other_space, or_retired=False)
        still = await recall(asking, who.pool_id, RecallRequest("river"))
        assert (still.semantic, len(still.hits)) == ("ok", 3)
        early = await recall(
            replace(asking, embedders=QueryEmbedders(lambda _: other, "other")), who.pool_id, RecallRequest("river")
        )
        assert (early.semantic, len(early.hits)) == ("degraded", 3)
        await switch_when_complete(asking, other_space, who.pool_id)
        assert (await recall(asking, who.pool_id, RecallRequest("river"))).semantic == "ok"
        await remember(asking, who, [Note("River number 4.")])  # queued for both
        await drain(asking, other, other_space)
        await switch_when_complete(asking, other_space, who.pool_id)
        assert (await backlog(asking))["embeddings_waiting"] == 0
        assert await stuck(asking) == {}
        after = await recall(
            replace(asking, embedders=QueryEmbedders(lambda _: other, "other")), who.pool_id, RecallRequest("river")
        )
        assert (after.semantic, len(after.hits), after.pending) == ("ok", 4, 0)
        assert (await recall(asking, who.pool_id, RecallRequest("river"))).semantic == "degraded"


@pytest.mark.parametrize("dimension", [384, 768, 1024, 1536, 3072])
async def test_dimensions_of_common_models_work(parts: Parts, who: Principal, dimension: int) -> None:
    async with embedding_server(dimension) as endpoint, asked_at(endpoint) as embedder:
        asking = replace(parts, embedders=QueryEmbedders(lambda _: embedder, "scripted"))
        space = await embedder.load()
        await make_space(parts, space)
        await register(parts, space, or_retired=False)
        await remember(asking, who, [Note("A river runs.")])
        await drain(asking, embedder, space)
        found = await recall(asking, who.pool_id, RecallRequest("a river runs"))
        assert (found.semantic, len(found.hits)) == ("ok", 1)


@pytest.mark.parametrize("nonsense", [[], [[]], [[0.0] * 8], [[float("nan")] * 8], "vector", None, [10**400] * 8])
async def test_an_embedder_with_invalid_answers_counts_as_down_and_nothing_else_fails(
    parts: Parts, who: Principal, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch, nonsense: Any
) -> None:
    await embedder.load()
    monkeypatch.setattr(EmbeddingServer, "_item", lambda _, place, __: {"index": place, "embedding": nonsense})
    await remember(parts, who, [Note("A river.")])
    found = await recall(
        replace(parts, embedders=QueryEmbedders(lambda _: embedder, "scripted")), who.pool_id, RecallRequest("river")
    )
    assert (found.semantic, [hit.content for hit in found.hits]) == ("degraded", ["A river."])


async def test_a_pool_is_searched_in_its_own_space_while_another_model_is_configured(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, endpoint: EmbeddingServer
) -> None:
    await remember(asking, who, [Note("A river.")])
    await drain(asking, embedder, space)
    settings = Settings(embedder=f"openai:{endpoint.url}#newer")
    embedders = QueryEmbedders(lambda setting: make_embedder(settings, setting), settings.embedder)
    newer = replace(asking, embedders=embedders)
    try:
        found = await eventually(
            lambda: recall(newer, who.pool_id, RecallRequest("river")),
            lambda found: found.semantic == "ok" or found.reason != LOADING,
        )
        assert found.semantic == "ok"
        assert [hit.content for hit in found.hits] == ["A river."]
    finally:
        await embedders.close()


async def test_a_model_that_cannot_be_loaded_says_so_instead_of_loading_for_ever(
    asking: Parts, who: Principal, space: Space
) -> None:
    setting = "sentence-transformers:/nowhere"
    embedders = QueryEmbedders(lambda _: make_embedder(Settings(), setting), setting)
    broken = replace(asking, embedders=embedders)
    found = await eventually(
        lambda: recall(broken, who.pool_id, RecallRequest("river")), lambda found: found.reason != LOADING
    )
    assert (found.semantic, "cannot be loaded" in (found.reason or "")) == ("degraded", True)
    await embedders.close()


async def test_the_label_of_a_row_is_neither_embedded_nor_searched(
    asking: Parts, who: Principal, endpoint: EmbeddingServer, embedder: RemoteEmbedder, space: Space
) -> None:
    await remember(asking, who, [Note("User decision: Use Redis.")])
    await drain(asking, embedder, space)
    assert endpoint.asked[-1] == ["Use Redis."]
    assert (await recall(replace(asking, embedders=None), who.pool_id, RecallRequest("decision"))).abstained


@dataclass
class Killer:
    """An embedder that dies of one text, like a process that was killed."""

    inner: RemoteEmbedder
    asked: list[list[str]] = field(default_factory=list[list[str]])
    lanes = 1
    portion = 1_000

    @property
    def space(self) -> Space | None:
        """Return the space of the wrapped embedder."""
        return self.inner.space

    def be_patient(self, patient: bool) -> None:
        """Do nothing."""

    async def load(self) -> Space:
        """Load the wrapped embedder."""
        return await self.inner.load()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Die, or embed."""
        self.asked.append(list(texts))
        if "A killer." in texts:
            raise SystemError("killed")
        return await self.inner.embed(texts)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Embed."""
        return await self.inner.embed_queries(texts)

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Split."""
        return await self.inner.split(texts)

    async def close(self) -> None:
        """Do nothing."""


async def test_a_row_that_kills_its_worker_affects_no_other_and_is_given_up(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, clock: FakeClock, owner_url: str
) -> None:
    killer = Killer(embedder)
    await remember(asking, who, [Note("A killer."), Note("A river."), Note("A hill.")])
    for _ in range(2 * MAX_ATTEMPTS + 4):
        with suppress(SystemError):
            await embed_due(asking, killer, space, who.pool_id)
        clock.now += PAUSE * 6
    # A worker that dies once probably died of something else.
    assert [len(texts) for texts in killer.asked[:2]] == [3, 3]
    assert all(len(texts) == 1 for texts in killer.asked[2:])
    assert attempts(owner_url) == {"A killer.": (MAX_ATTEMPTS, True, "its worker died, 8 times", False)}
    assert killer.asked.count(["A killer."]) == MAX_ATTEMPTS - 2


async def test_a_row_that_is_being_forgotten_leaves_no_vector(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, clock: FakeClock, owner_url: str
) -> None:
    [memory_id] = await remember(asking, who, [Note("A river.")])
    async with asking.database.tenant(who.pool_id) as connection:
        batch = await vectors.claim(connection, space.name, clock(), PAUSE, tried=False, limit=10)
    made = await embedder.embed(["A river."])

    async def store() -> int:
        async with asking.database.tenant(who.pool_id) as connection:
            return await vectors.store(connection, batch, batch.rows, [made], clock())

    async with asking.database.tenant(who.pool_id) as connection:
        await memories.lock_to_delete(connection, [memory_id])
        await memories.delete(connection, [memory_id])
        storing = asyncio.create_task(store())
        await until_one_waits(asking.database, storing)
    assert await storing == 0
    with psycopg.connect(owner_url) as connection:
        count = connection.execute(f"SELECT count(*) FROM embeddings_{space.name}").fetchone()  # type: ignore[arg-type]  # noqa: S608
    assert count == (0,)


async def test_a_vector_of_an_older_text_is_not_kept(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, space: Space, clock: FakeClock, owner_url: str
) -> None:
    await remember(asking, who, [Note("The old words.")])
    async with asking.database.tenant(who.pool_id) as connection:
        batch = await vectors.claim(connection, space.name, clock(), PAUSE, tried=False, limit=10)
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET content = 'New.', content_hash = sha256('New.')")
    old = await embedder.embed(["The old words."])
    async with asking.database.tenant(who.pool_id) as connection:
        assert await vectors.store(connection, batch, batch.rows, [old], clock()) == 0


@pytest.mark.parametrize(
    "setting",
    [
        "openai:http://user:secret@host/v1#m",
        "openai:ftp://host#m",
        "openai:host/v1#m",
        "openai:http://host?key=secret#m",
    ],
)
def test_an_address_with_credentials_is_refused_without_repeating_them(setting: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        make_embedder(Settings(), setting)
    assert "secret" not in f"{refused.value} {refused.value.hint}"


async def test_a_model_with_more_dimensions_than_postgres_holds_is_explained(parts: Parts, who: Principal) -> None:
    async with embedding_server(4_096) as endpoint, asked_at(endpoint) as large:
        with pytest.raises(Misconfigured, match="4,096 dimensions"):
            await large.load()
        embedders = QueryEmbedders(lambda _: large, "scripted")
        asking = replace(parts, embedders=embedders)
        await eventually(
            lambda: recall(asking, who.pool_id, RecallRequest("river")),
            lambda found: "dimensions" in (found.reason or ""),
        )
        assert "4,096 dimensions" in embedders.state


# The loop --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def working(database_url: str, embedder: RemoteEmbedder) -> AsyncGenerator[list[str]]:
    """Run the worker's loop while the block runs; it does not poll, so that only a notification wakes it.

    Yields the lines that it tells its server.
    """
    told: list[str] = []
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(worker, "POLL_SECONDS", 86_400)
    stop = asyncio.Event()
    database = Database(database_url, connections=2)
    clock = FakeClock()
    parts = Parts(database, lambda: clock.now, Settings())
    task = asyncio.create_task(run_worker(parts, embedder, stop, told.append))
    try:
        yield told
    finally:
        stop.set()
        await task
        monkeypatch.undo()


async def embedded(parts: Parts, pool_id: str) -> Recalled:
    """Recall until every row of a pool has its vector, and return the answer."""
    return await eventually(
        lambda: recall(parts, pool_id, RecallRequest("river")),
        lambda found: found.semantic != "degraded" and not found.pending,
    )


def after_seconds(seconds: int) -> datetime:
    """Return the time `seconds` after a fixed one."""
    return datetime(2026, 11, 30, tzinfo=UTC) + timedelta(seconds=seconds)


async def test_a_write_wakes_the_worker_which_tells_its_server_how_fast_it_is(
    asking: Parts, who: Principal, embedder: RemoteEmbedder, database_url: str
) -> None:
    health = WorkerHealth()
    async with working(database_url, embedder) as told:
        for n in range(3):
            await remember(asking, who, [Note(f"River {n}.")])
            await embedded(asking, who.pool_id)
    assert told[:2] == [state_line(worker_health.LOADING), state_line(RUNNING)]
    assert all(health.told(line, now) for line, now in zip(told, map(after_seconds, range(5)), strict=True))
    # The first of three rows says nothing about the speed; two came in the two seconds since.
    assert (str(health), health.rate(who.pool_id, after_seconds(4))) == (RUNNING, 1.0)


async def test_a_pool_created_later_is_served_as_well(
    asking: Parts, embedder: RemoteEmbedder, database_url: str
) -> None:
    async with working(database_url, embedder):
        pool = await create_pool(asking, "later")
        stranger = Principal(pool.id, pool.name, "x", frozenset(SCOPES))
        await remember(asking, stranger, [Note("A river.")])
        assert len((await embedded(asking, pool.id)).hits) == 1


@pytest.mark.parametrize("setting", ["magic", "openai:", "openai:http://x", "sentence-transformers:", ""])
def test_a_setting_that_names_no_embedder_is_explained(setting: str) -> None:
    with pytest.raises(Misconfigured, match="ESKER_EMBEDDER"):
        make_embedder(Settings(), setting)
