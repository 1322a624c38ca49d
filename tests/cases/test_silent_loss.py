"""Silent loss on write: acknowledged text is stored and found, and anything missing is explained."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from esker.embedding_worker import worker
from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.providers import query_embedders
from esker.server.providers.embedders import make_embedder
from esker.server.usecases.embed import PAUSE, cooldown
from esker.server.usecases.parts import Parts
from tests.support.api import observed, opened, recalled, said, until
from tests.support.clock import FakeClock
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.model_server import ModelServer, model_server
from tests.support.serving import serving
from tests.support.waiting import PATIENCE, eventually


@dataclass(slots=True)
class Installation:
    """A server and a worker beside it, which ask one scripted embedder; both have the test's clock."""

    client: httpx2.AsyncClient
    endpoint: EmbeddingServer

    async def write(self, *texts: str) -> list[str]:
        """Write notes and return their ids."""
        batch = {"memories": [{"content": text} for text in texts]}
        answer = await self.client.post("/v1/memories/batch", json=batch)
        assert answer.status_code == 201, answer.text
        return answer.json()["ids"]

    async def settled(self, *, pending: int = 0) -> dict[str, Any]:
        """Wait until no more than `pending` rows lack their vector; return what a recall of all rows says."""
        return await eventually(
            lambda: recalled(self.client, "river", limit=50, explain=True),
            lambda answer: (answer["semantic"], answer["pending"]) == ("weak", pending),
        )

    async def gauge(self, name: str) -> float:
        """Return a gauge of the metrics."""
        lines = (await self.client.get("/metrics")).text.splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(f"esker_{name} ")))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits that use the wall clock."""
    monkeypatch.setattr(worker, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(worker, "PAUSE", timedelta(seconds=0.05))
    monkeypatch.setattr(query_embedders, "_AGAIN_SECONDS", 0.05)


@pytest.fixture
async def endpoint() -> AsyncGenerator[EmbeddingServer]:
    """A scripted embedder."""
    async with embedding_server() as server:
        yield server


@pytest.fixture
async def installed(database_url: str, clock: FakeClock, endpoint: EmbeddingServer) -> AsyncGenerator[Installation]:
    """An installation with it."""
    async with installation(database_url, clock, endpoint) as made:
        yield made


@asynccontextmanager
async def installation(database_url: str, clock: FakeClock, endpoint: EmbeddingServer) -> AsyncGenerator[Installation]:
    """Run the server and the worker while the block runs."""
    settings = Settings.from_environment({"ESKER_EMBEDDER": f"openai:{endpoint.url}#scripted"})
    embedder = make_embedder(settings, settings.embedder)
    assert embedder is not None
    stop = asyncio.Event()
    parts = Parts(Database(database_url, connections=2), clock, settings)
    working = asyncio.create_task(worker.run_worker(parts, embedder, stop))
    try:
        async with (
            serving(make_parts(settings, Database(database_url), clock)) as url,
            httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client,
        ):
            yield Installation(client, endpoint)
    finally:
        stop.set()
        await working
        await embedder.close()


def by_meaning(answer: dict[str, Any]) -> set[str]:
    """Return the ids of the hits that were found by their vectors."""
    return {hit["id"] for hit in answer["hits"] if hit["parts"]["vector_rank"] is not None}


async def test_a_text_that_cannot_be_embedded_does_not_affect_others_and_is_retried(
    installed: Installation, clock: FakeClock, owner_url: str
) -> None:
    """One row of a batch fails; all are there, the pool is recalled whole, and later all have vectors."""
    await installed.settled()
    installed.endpoint.refuses = {"BAD"}
    ids = await installed.write("First river.", "BAD river.", "Third river.")
    mixed = await installed.settled(pending=1)
    assert {hit["id"] for hit in mixed["hits"]} == set(ids)
    assert by_meaning(mixed) == {ids[0], ids[2]}
    for memory_id in ids:
        assert (await installed.client.get(f"/v1/memories/{memory_id}")).status_code == 200
    with psycopg.connect(owner_url) as connection:
        waiting = connection.execute(
            "SELECT m.id, a.last_error, a.dead FROM embedding_attempts a JOIN memories m USING (number)"
        ).fetchall()
    assert waiting == [(ids[1], "The embedder answered 400.", False)]
    installed.endpoint.refuses = set()
    clock.now += cooldown(1)
    assert by_meaning(await installed.settled()) == set(ids)


async def test_rows_written_while_the_embedder_is_down_are_found_by_word_and_later_by_meaning(
    installed: Installation, clock: FakeClock
) -> None:
    """Ten writes; recall says degraded, then all are healed and nothing else about them changes."""
    await installed.settled()
    installed.endpoint.status = 503
    ids = await installed.write(*(f"River number {n}." for n in range(10)))
    before = (await installed.client.get("/v1/memories")).json()
    # A question that was asked before is remembered, and would not need the embedder.
    down = await recalled(installed.client, "river number", limit=50)
    assert {hit["id"] for hit in down["hits"]} == set(ids)
    assert (down["semantic"], "503" in down["reason"]) == ("degraded", True)
    assert down["pending"] == await installed.gauge("embeddings_waiting") == 10
    installed.endpoint.status = 200
    clock.now += PAUSE
    assert by_meaning(await installed.settled()) == set(ids)
    assert await installed.gauge("embeddings_waiting") == 0
    assert (await installed.client.get("/v1/memories")).json() == before


@pytest.mark.parametrize("nonsense", [[], "vector", [0.0] * 8, None])
async def test_a_malfunctioning_embedder_does_not_stop_the_server(
    database_url: str, clock: FakeClock, endpoint: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, nonsense: Any
) -> None:
    """The server serves and finds by word, and by meaning as soon as the embedder recovers."""
    with monkeypatch.context() as patched:
        patched.setattr(EmbeddingServer, "_item", lambda _, place, __: {"index": place, "embedding": nonsense})
        async with installation(database_url, clock, endpoint) as installed:
            assert (await installed.client.get("/readyz")).status_code == 200
            ids = await installed.write("A river.")
            answer = await recalled(installed.client, "river")
            assert ([hit["id"] for hit in answer["hits"]], answer["semantic"]) == (ids, "degraded")
            patched.undo()
            assert by_meaning(await installed.settled()) == set(ids)


# The observer ------------------------------------------------------------------------------------------------------

FACTS: list[dict[str, Any]] = [
    {"text": "User decided to use Redis.", "priority": "high", "category": "decision", "sources": [1]},
    {"text": "User prefers tabs over spaces.", "priority": "high", "category": "preference", "sources": [1]},
]
WORDS = "Let's use Redis. I prefer tabs over spaces."


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer]:
    """A scripted model."""
    async with model_server() as server:
        yield server


@pytest.fixture
async def asking(database_url: str, model: ModelServer, clock: FakeClock) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server that asks the scripted model and gives up after two tries."""
    environment = {"ESKER_EMBEDDER": "none", "ESKER_LLM_BASE_URL": model.url, "ESKER_JOB_ATTEMPTS": "2"}
    parts = make_parts(Settings.from_environment(environment), Database(database_url), clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        yield connected


async def test_a_model_that_never_works_leaves_a_failed_job_and_every_message(
    asking: httpx2.AsyncClient, model: ModelServer, clock: FakeClock
) -> None:
    """The job is failed, not completed; its messages stay unobserved until the model works."""
    model.say("I would rather not.")
    session = await opened(asking)
    await said(asking, session, WORDS)
    await asking.post(f"/v1/sessions/{session}/observe")
    failed = await until(asking, f"/v1/sessions/{session}", lambda s: s["jobs"] and s["jobs"][0]["last_error"])
    assert (failed["jobs"][0]["state"], failed["jobs"][0]["attempts"]) == ("ready", 1)
    clock.advance(hours=1)
    shown = await until(asking, f"/v1/sessions/{session}", lambda s: s["jobs"][0]["state"] == "dead")
    assert "cannot be used" in shown["jobs"][0]["last_error"]
    assert (shown["observed_messages"], shown["groups"], shown["lost"]) == (0, 0, 0)
    assert shown["unobserved_tokens"] > 0
    assert "esker_jobs_dead 1.0" in (await asking.get("/metrics")).text
    model.say({"facts": FACTS})
    assert (await observed(asking, session))["memories"] == 2


async def test_an_observation_that_stored_nothing_counts_the_reasons(
    asking: httpx2.AsyncClient, model: ModelServer
) -> None:
    """The answer counts the facts found before and the facts that cannot be kept, by reason."""
    model.say({"facts": FACTS})
    session = await opened(asking)
    await said(asking, session, {"external_id": "m1", "role": "user", "content": WORDS})
    assert (await observed(asking, session))["memories"] == 2
    invented = {**FACTS[0], "text": "User decided to use redis-cluster.conf.", "sources": [2]}
    again = [{**fact, "sources": [2]} for fact in FACTS]
    model.say({"facts": [*again, invented, {**FACTS[0], "sources": [99]}, {"text": "x"}]})
    await said(asking, session, {"external_id": "m2", "role": "user", "content": WORDS})
    report = await observed(asking, session)
    assert (report["groups"], report["memories"], report["merged"]) == (1, 0, 2)
    assert report["refused"] == {"ungrounded": 1, "unknown_source": 1, "malformed": 1}


async def test_a_resend_that_stored_nothing_counts_known_messages_and_names_changed_ones(
    asking: httpx2.AsyncClient,
) -> None:
    """Known messages are counted, and named if they came with other content."""
    session = await opened(asking)
    await said(asking, session, "One.", "Two.")
    report = await said(asking, session, "One.", {"external_id": "Two.", "role": "user", "content": "Changed."})
    assert (report["accepted"], report["duplicates"], report["conflicts"]) == (0, 2, ["Two."])


async def test_a_locked_table_delays_messages_and_loses_none(
    asking: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    """A lock that is held for 3 s while 4 clients post 50 messages."""
    session = await opened(asking)
    names = [f"m{n}" for n in range(50)]

    def lock(held: asyncio.Event, loop: asyncio.AbstractEventLoop) -> None:
        with psycopg.connect(owner_url) as connection:
            connection.execute("LOCK TABLE messages IN ACCESS EXCLUSIVE MODE")
            loop.call_soon_threadsafe(held.set)
            connection.execute("SELECT pg_sleep(3)")

    async def post(share: list[str]) -> None:
        for name in share:
            await said(asking, session, {"external_id": name, "role": "user", "content": f"Message {name}."})

    held = asyncio.Event()
    locking = asyncio.create_task(asyncio.to_thread(lock, held, asyncio.get_running_loop()))
    await held.wait()
    await asyncio.gather(*(post(names[n::4]) for n in range(4)))
    await locking
    kept = (await asking.get(f"/v1/sessions/{session}/messages?limit=100")).json()["messages"]
    assert sorted(message["external_id"] for message in kept) == sorted(names)
    assert [message["seq"] for message in kept] == list(range(1, 51))
