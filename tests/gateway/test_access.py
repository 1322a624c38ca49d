"""Access to the gateway: keys of Esker beside those of providers, and the turns that its requests do not take."""

import asyncio
import json
from collections.abc import AsyncGenerator

import httpx2
import pytest

from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from tests.gateway.test_messages import CLAUDE, SESSION, request, sent, stored, text
from tests.support.kept_servers import KeptServer, KeptServers
from tests.support.upstream import Said, Upstream, messages_stream
from tests.support.waiting import PATIENCE


@pytest.fixture
async def gateway_server(kept_servers: KeptServers, provider: Upstream) -> KeptServer:
    """A server that works on one request at a time."""
    environment = {"ESKER_GATEWAY_UPSTREAMS": f"model={provider.url}", "ESKER_REQUESTS_AT_WORK": "1"}
    return await kept_servers.get({"ESKER_EMBEDDER": "none", **environment})


@pytest.fixture
def kept_server(gateway_server: KeptServer) -> KeptServer:
    """The same server, whose database the other fixtures use."""
    return gateway_server


@pytest.mark.usefixtures("kept_server")
async def test_a_key_of_esker_is_told_from_that_of_the_provider(
    agent: httpx2.AsyncClient, provider: Upstream, parts: Parts
) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read", "write"])
    reading = await create_key(parts, name="b", pool="default", scopes=["read"])
    provider.say(Said(messages_stream(text("Hello."))))
    body = request(("user", "Hi."))
    theirs = {"authorization": "Bearer sk-of-the-provider"}
    assert (await sent(agent, body, **theirs)).status_code == 401
    assert (await sent(agent, body, **theirs, **{"x-esker-key": "esk_wrong"})).status_code == 401
    assert (await sent(agent, body, **theirs, **{"x-esker-key": reading.key})).status_code == 403
    assert provider.arrived == []
    assert (await sent(agent, body, **theirs, **{"x-esker-key": key.key})).status_code == 200
    [arrived] = provider.arrived
    assert dict(arrived.headers)["authorization"] == "Bearer sk-of-the-provider"
    assert key.key not in str(arrived.headers)
    agent.headers["authorization"] = f"Bearer {key.key}"
    assert [each["text"] for each in await stored(agent, SESSION, 2)] == ["Hi.", "Hello."]


@pytest.mark.usefixtures("kept_server")
async def test_a_key_that_may_not_read_gets_neither_a_pack_nor_the_tool(
    agent: httpx2.AsyncClient, provider: Upstream, parts: Parts
) -> None:
    await agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    key = await create_key(parts, name="c", pool="default", scopes=["write"])
    provider.say(Said(messages_stream(text("Hello."))))
    body = json.dumps(request(("user", "Hi."))).encode()
    assert (await sent(agent, body, **{"x-esker-key": key.key, "x-esker-recall": "on"})).status_code == 200
    assert provider.arrived[0].body == body


async def test_a_request_that_waits_for_a_model_takes_nobodys_turn(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    gate = asyncio.Event()
    provider.say(Said([b"".join(messages_stream(text("Hello.")))], gate=gate))
    own = {"content-type": "application/json", **CLAUDE}
    waiting = [
        asyncio.create_task(
            agent.post("/gateway/model/v1/messages", content=json.dumps(request(("user", f"Hi {n}."))), headers=own)
        )
        for n in range(3)
    ]
    while len(provider.arrived) < len(waiting):
        await asyncio.wait_for(provider.came.wait(), PATIENCE)
        await asyncio.sleep(0)
    assert (await agent.get("/v1/memories")).status_code == 200
    gate.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200, 200, 200]


async def test_a_long_body_that_waits_for_a_model_holds_nobodys_place(
    agent: httpx2.AsyncClient, provider: Upstream
) -> None:
    gate = asyncio.Event()
    provider.say(Said([b"".join(messages_stream(text("Hello.")))], gate=gate))
    body = json.dumps(request(("user", "word " * 80_000)))

    async def chunks() -> AsyncGenerator[bytes]:
        # Without a length, a body counts as the largest one.
        yield body.encode()

    own = {"content-type": "application/json", **CLAUDE}
    waiting = [
        asyncio.create_task(agent.post("/gateway/model/v1/messages", content=chunks(), headers=own)) for _ in range(3)
    ]
    while len(provider.arrived) < len(waiting) and not any(each.done() for each in waiting):
        await asyncio.wait_for(provider.came.wait(), PATIENCE)
        await asyncio.sleep(0)
    gate.set()
    assert [answer.status_code for answer in await asyncio.gather(*waiting)] == [200, 200, 200]
