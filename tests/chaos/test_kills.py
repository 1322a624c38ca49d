"""kill -9 of real servers at statements that a seed chooses: what was acknowledged is there, and there once.

Half of the kills come before a statement reaches Postgres, half after it ran and before the server hears of it.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, get_args

import httpx2
import psycopg
import pytest

from esker.server.usecases.parts import Parts
from tests.chaos.test_cut_connections import transactions_end
from tests.support.cut_network import CutNetwork, Place, cut_network
from tests.support.invariants import broken
from tests.support.processes import served
from tests.support.waiting import PATIENCE

_SHORT, _FULL = 2, 200
"""Kills without and with --full."""
_STATEMENTS = 60
"""The server is killed at one of this many statements after it begins to listen."""
_REQUESTS = 100
# A job whose worker dies eight times is given up by default, and more die here.
_SETTINGS = {
    "ESKER_OBSERVE_TOKENS": "100",
    "ESKER_OBSERVE_IDLE_SECONDS": "0",
    "ESKER_WORKER": "false",
    "ESKER_JOB_ATTEMPTS": "10000",
}


@dataclass(slots=True)
class Writer:
    """A client with a session, which sends again what was not acknowledged."""

    chance: random.Random
    sent: int = 0
    notes: int = 0
    acknowledged: int = 0
    session: str | None = None
    waiting: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    unwritten: list[str] = field(default_factory=list[str])

    async def work(self, client: httpx2.AsyncClient) -> None:
        """Send requests until one fails."""
        for _ in range(_REQUESTS):
            try:
                done = await self._open(client) if self.session is None else await self._step(client)
            except httpx2.HTTPError:
                return
            if not done:
                return

    async def finish(self, client: httpx2.AsyncClient) -> None:
        """Send what was not acknowledged, and have all of it observed."""
        if self.session is None:
            assert await self._open(client)
        assert await self._ingest(client)
        assert await self._note(client)
        answer = await client.post(f"/v1/sessions/{self.session}/observe?wait=true")
        assert answer.status_code == 200, answer.text

    async def _open(self, client: httpx2.AsyncClient) -> bool:
        answer = await client.post("/v1/sessions", json={"client": "api", "external_id": "killed"})
        if answer.status_code == 200:
            self.session = answer.json()["id"]
        return self.session is not None

    async def _step(self, client: httpx2.AsyncClient) -> bool:
        match self.chance.choice(["ingest", "ingest", "note", "pack", "observe", "reflect"]):
            case "ingest":
                return await self._ingest(client)
            case "note":
                return await self._note(client)
            case "pack":
                return (await client.get(f"/v1/sessions/{self.session}/pack")).status_code == 200
            case verb:
                return (await client.post(f"/v1/sessions/{self.session}/{verb}")).status_code in (200, 202)

    async def _ingest(self, client: httpx2.AsyncClient) -> bool:
        for _ in range(self.chance.randint(1, 3)):
            self.sent += 1
            text = f"We decided that service {self.sent} listens on port {self.sent + 2_000}."
            self.waiting.append({"external_id": f"m{self.sent}", "role": "user", "content": text})
        answer = await client.post(f"/v1/sessions/{self.session}/messages", json={"messages": self.waiting})
        if answer.status_code != 200:
            return False
        self.acknowledged += len(self.waiting)
        self.waiting.clear()
        return True

    async def _note(self, client: httpx2.AsyncClient) -> bool:
        self.notes += 1
        self.unwritten.append(f"Note {self.notes}: the river {self.notes} flows to the sea.")
        body = {"memories": [{"content": text} for text in self.unwritten]}
        if (await client.post("/v1/memories/batch", json=body)).status_code not in (200, 201):
            return False
        self.unwritten.clear()
        return True


@asynccontextmanager
async def server(network: CutNetwork) -> AsyncGenerator[httpx2.AsyncClient]:
    """Run a server process behind the network, which kills it when it breaks; yield a client."""
    running = served(ESKER_DATABASE_URL=network.url, **_SETTINGS)
    process, started = await asyncio.to_thread(running.__enter__)
    network.on_cut = process.kill
    try:
        async with httpx2.AsyncClient(base_url=started["url"], timeout=PATIENCE) as client:
            yield client
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


@pytest.fixture
def kills(request: pytest.FixtureRequest) -> int:
    """How many servers are killed."""
    return _FULL if request.config.getoption("--full") else _SHORT


async def test_servers_killed_at_any_statement_lose_nothing_and_do_nothing_twice(
    kills: int, database_url: str, owner_url: str, parts: Parts
) -> None:
    chance = random.Random(21)  # noqa: S311 - the same kills each time
    writer = Writer(chance)
    killed = 0
    async with cut_network(database_url) as network:
        for _ in range(kills):
            network.heal()
            async with server(network) as client:
                network.arm(chance.randint(1, _STATEMENTS), chance.choice(get_args(Place)))
                await writer.work(client)
                killed += network.was_cut
            assert await broken(parts) == [], network.name()
            await transactions_end(owner_url)
        network.heal()
        async with server(network) as client:
            await writer.finish(client)
            shown = (await client.get(f"/v1/sessions/{writer.session}")).json()
            assert (shown["messages"], shown["lost"], shown["coverage"]) == (writer.sent, 0, 1.0)
    assert killed > kills / 2
    with psycopg.connect(owner_url) as connection:
        notes = connection.execute(
            "SELECT count(*), count(DISTINCT content) FROM memories WHERE kind = 'note'"
        ).fetchone()
    assert notes == (writer.notes, writer.notes)
    assert await broken(parts) == []
