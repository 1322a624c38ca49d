"""Requests beyond the limit: 429 with Retry-After, and the places of slow senders and readers are free for others."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.rest.admission import Admission
from tests.support.api import opened, said
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE, eventually

TIGHT = {"ESKER_EMBEDDER": "none", "ESKER_OBSERVER": "off", "ESKER_REQUESTS_AT_WORK": "1"}


@dataclass(frozen=True, slots=True)
class Tight:
    """A server that works on one request at a time."""

    client: httpx2.AsyncClient
    admission: Admission
    owner_url: str

    @contextmanager
    def working(self) -> Iterator[asyncio.Task[httpx2.Response]]:
        """Have a request at work during the block: it waits for a table that is locked."""
        with psycopg.connect(self.owner_url) as locking:
            locking.execute("LOCK TABLE memories")
            yield asyncio.create_task(self.client.post("/v1/memories", json={"content": "Our river is the Rhine."}))

    async def is_full(self) -> None:
        """Wait until a request is at work."""

        async def at_work() -> int:
            return self.admission.at_work

        await eventually(at_work)


@asynccontextmanager
async def tight(database_url: str, owner_url: str, waiting: int) -> AsyncGenerator[Tight]:
    """Run such a server while the block runs, with a queue of this length."""
    settings = Settings.from_environment({**TIGHT, "ESKER_REQUESTS_WAITING": str(waiting)})
    app = make_app(make_parts(settings, Database(database_url), system_clock))
    async with serving_app(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        yield Tight(client, app.state.admission, owner_url)


@pytest.fixture
async def server(database_url: str, owner_url: str) -> AsyncGenerator[Tight]:
    """A server without a queue."""
    async with tight(database_url, owner_url, waiting=0) as running:
        yield running


async def test_requests_beyond_the_limit_get_429_and_health_checks_and_metrics_an_answer(server: Tight) -> None:
    with server.working() as first:
        await server.is_full()
        refused = await server.client.get("/v1/memories")
        assert refused.status_code == 429
        assert 1 <= int(refused.headers["Retry-After"]) <= 3
        assert "nothing was changed" in refused.json()["detail"]
        refused = await server.client.post("/v1/memories", json={"content": "It flows to the sea."})
        assert refused.status_code == 429
        tool = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "memory_status", "arguments": {}}}
        assert (await server.client.post("/mcp", json=tool)).status_code == 429
        for path in ("/livez", "/readyz", "/metrics"):
            assert (await server.client.get(path)).status_code == 200, path
    assert (await first).status_code == 201
    [row] = (await server.client.get("/v1/memories")).json()["memories"]
    assert row["content"] == "Our river is the Rhine."


async def test_requests_whose_keys_are_being_checked_are_limited_as_well(server: Tight) -> None:
    with psycopg.connect(server.owner_url) as locking:
        locking.execute("LOCK TABLE api_keys")
        asked = [asyncio.create_task(server.client.get("/v1/memories")) for _ in range(3)]
        for answer in islice(asyncio.as_completed(asked), 2):
            assert (await answer).status_code == 429
    assert sorted([(await answer).status_code for answer in asked]) == [200, 429, 429]


async def test_a_request_that_waits_for_a_job_takes_no_place(server: Tight) -> None:
    session = await opened(server.client)
    await said(server.client, session, "Let's use Redis.")
    with server.working() as first:
        await server.is_full()
        answer = await server.client.post(f"/v1/sessions/{session}/observe?wait=true")
        assert answer.status_code == 409, "observing is switched off, but the request was not refused as one too many"
    await first


async def test_half_a_body_takes_no_place(database_url: str, owner_url: str) -> None:
    async with tight(database_url, owner_url, waiting=1) as server:
        host, port = urlsplit(str(server.client.base_url)).netloc.split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        head = f"POST /v1/memories HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 1000\r\n\r\n".encode() + b'{"content": "half')
        await writer.drain()
        assert (await server.client.get("/v1/memories")).status_code == 200
        assert server.admission.at_work == 0
        writer.close()


async def test_a_request_that_waits_is_answered_when_it_is_its_turn(database_url: str, owner_url: str) -> None:
    async with tight(database_url, owner_url, waiting=1) as server:
        with server.working() as first:
            await server.is_full()
            second = asyncio.create_task(server.client.get("/v1/memories"))

            async def waiting() -> int:
                return server.admission.waiting

            await eventually(waiting)
        assert (await first).status_code == 201
        assert (await second).status_code == 200
        assert (server.admission.at_work, server.admission.waiting) == (0, 0)


async def test_a_large_body_is_read_when_others_have_left_memory_for_it(database_url: str, owner_url: str) -> None:
    app = make_app(make_parts(Settings.from_environment(TIGHT), Database(database_url), system_clock))
    app.state.bodies.wait_seconds = 0.0
    async with serving_app(app) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        session = await opened(client)
        body = {"messages": [{"external_id": "m1", "role": "user", "content": "x " * 300_000}]}
        # The largest body that there may be, sent in part.
        size = app.state.parts.settings.max_body_bytes
        address = urlsplit(url)
        _, slow = await asyncio.open_connection(address.hostname, address.port)
        head = f"POST /v1/sessions/{session}/messages HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {size}\r\n"
        slow.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + b" " * 600_000)

        async def held() -> int:
            return app.state.bodies.held

        await eventually(held)
        refused = await client.post(f"/v1/sessions/{session}/messages", json=body)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) > 0
        small = await client.post("/v1/memories", json={"content": "Our river is the Rhine."})
        assert small.status_code == 201
        slow.close()
        await slow.wait_closed()

        async def free() -> bool:
            return not app.state.bodies.held

        await eventually(free)
        accepted = await client.post(f"/v1/sessions/{session}/messages", json=body)
        assert accepted.status_code == 200, accepted.text
