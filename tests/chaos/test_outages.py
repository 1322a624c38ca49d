"""Postgres is away in one of several ways: requests get 503 with Retry-After, and all goes on when it is back."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db import database as databases
from esker.server.db.database import Database
from esker.server.usecases.parts import Parts
from tests.chaos.test_cut_connections import transactions_end
from tests.support.api import opened, said
from tests.support.embedding_server import embedding_server
from tests.support.impatience import wait_hardly, wait_long
from tests.support.invariants import broken
from tests.support.serving import serving_app
from tests.support.silent_network import SilentNetwork, silent_network
from tests.support.waiting import PATIENCE, eventually

_READ_ONLY = "ALTER DATABASE {} SET default_transaction_read_only = {}"
_END_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
    " AND pid <> pg_backend_pid() AND application_name <> 'kept'"
)


@dataclass(frozen=True, slots=True)
class Outage:
    """A server behind a network that can fail, and the database as its owner sees it."""

    client: httpx2.AsyncClient
    database: Database
    network: SilentNetwork
    owner_url: str

    def stopped(self) -> None:
        """Refuse connections, as a Postgres that was stopped."""
        wait_hardly(self.database)
        self.network.refuses = True
        self.network.break_connections()

    def black_holed(self) -> None:
        """Swallow everything, also on new connections."""
        wait_hardly(self.database)
        self.network.swallows = True
        self.network.go_silent()

    def read_only(self) -> None:
        """Fail over to a Postgres that takes no writes."""
        self._set_read_only("on")

    def over(self) -> None:
        """End the outage."""
        wait_long(self.database)
        self.network.refuses = self.network.swallows = False
        self._set_read_only("off")

    def _set_read_only(self, value: str) -> None:
        with psycopg.connect(self.owner_url, autocommit=True) as owner:
            name = owner.info.dbname
            owner.execute("SET default_transaction_read_only = off")
            owner.execute(_READ_ONLY.format(name, value).encode())
            if value == "on":
                owner.execute(_END_OTHERS)


@pytest.fixture
async def outage(database_url: str, owner_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Outage]:
    """A server that gives up on answers and locks sooner than usual, behind a network that can fail."""
    monkeypatch.setitem(databases._OWN, "options", databases._OPTIONS.replace("lock_timeout=10s", "lock_timeout=0.1s"))
    async with silent_network(database_url) as network:
        settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
        database = Database(network.url, connections=4, answer_seconds=0.3)
        app = make_app(make_parts(settings, database, system_clock))
        async with serving_app(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            made = Outage(client, database, network, owner_url)
            yield made
            made.over()
            network.break_connections()  # the end waits for those that are silent


FAULTS: dict[str, Callable[[Outage], None]] = {
    "stopped": Outage.stopped,
    "black-holed": Outage.black_holed,
    "read-only": Outage.read_only,
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_writes_get_503_with_retry_after_while_postgres_is_away_and_go_on_when_it_is_back(
    fault: str, outage: Outage, parts: Parts
) -> None:
    client = outage.client
    session = await opened(client)
    await said(client, session, "One.", "Two.")
    FAULTS[fault](outage)
    three: dict[str, Any] = {"messages": [{"external_id": "Three.", "role": "user", "content": "Three."}]}
    requests = [client.post(f"/v1/sessions/{session}/messages", json=three) for _ in range(6)]
    requests += [client.post("/v1/memories", json={"content": "Our river is the Rhine."}) for _ in range(6)]
    for answer in await asyncio.gather(*requests):
        assert answer.status_code == 503, answer.text
        assert int(answer.headers["Retry-After"]) > 0
    assert (await client.get("/livez")).status_code == 200
    outage.over()

    async def sent() -> bool:
        return (await client.post(f"/v1/sessions/{session}/messages", json=three)).status_code == 200

    await eventually(sent)
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["messages"], shown["lost"]) == (3, 0)
    assert (await client.get("/v1/memories")).json()["memories"] == [], "no write that was refused was done"
    assert (await client.get("/readyz")).status_code == 200
    assert await broken(parts) == []
    await transactions_end(outage.owner_url)


async def test_who_needs_a_locked_table_is_told_so_soon_and_keeps_nobody_else_from_connections(
    outage: Outage, parts: Parts
) -> None:
    client = outage.client
    session = await opened(client)
    body: dict[str, Any] = {"messages": [{"external_id": "One.", "role": "user", "content": "One."}]}
    with psycopg.connect(outage.owner_url) as forgotten:
        forgotten.execute("LOCK TABLE messages")
        ingests = [asyncio.create_task(client.post(f"/v1/sessions/{session}/messages", json=body)) for _ in range(6)]
        for answer in await asyncio.gather(*ingests):
            assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (503, True)
            assert "holds a lock" in answer.text or "All connections to the database are in use" in answer.text
            assert "pg_stat_activity" in answer.json()["hint"]
        assert (await client.post("/v1/memories", json={"content": "Our river is the Rhine."})).status_code == 201
    assert (await client.post(f"/v1/sessions/{session}/messages", json=body)).status_code == 200
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["messages"], shown["lost"]) == (1, 0)
    assert await broken(parts) == []
    await transactions_end(outage.owner_url)


async def test_reading_goes_on_while_postgres_is_read_only(outage: Outage) -> None:
    client = outage.client
    note = await client.post("/v1/memories", json={"content": "Our river is the Rhine."})
    assert note.status_code == 201
    outage.read_only()

    async def asked() -> httpx2.Response:
        return await client.post("/v1/recall", json={"query": "Which river?"})

    found = await eventually(asked, lambda answer: answer.status_code == 200)
    assert [hit["content"] for hit in found.json()["hits"]] == ["Our river is the Rhine."]


async def test_two_hundred_recalls_while_the_embedder_hangs_are_answered_or_refused(database_url: str) -> None:
    async with embedding_server() as endpoint:
        settings = Settings.from_environment({"ESKER_EMBEDDER": f"openai:{endpoint.url}#scripted"})
        app = make_app(make_parts(settings, Database(database_url), system_clock))
        async with serving_app(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            await client.post("/v1/memories", json={"content": "Our river is the Rhine."})
            endpoint.breaks["river"] = "hang"
            asked = [client.post("/v1/recall", json={"query": "Which is our river?" + n * "?"}) for n in range(200)]
            answers = await asyncio.gather(*asked)
            endpoint.released.set()
        answered = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert answered
        for answer in answered:
            assert [hit["content"] for hit in answer.json()["hits"]] == ["Our river is the Rhine."]
        for answer in refused:
            assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (429, True), answer.text
