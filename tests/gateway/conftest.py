"""Fixtures: a provider, and a server whose gateway leads to it."""

from collections.abc import AsyncGenerator

import httpx2
import pytest

from tests.support.kept_servers import KeptServer, KeptServers
from tests.support.upstream import Upstream, upstream
from tests.support.waiting import PATIENCE


@pytest.fixture(scope="session")
async def kept_provider() -> AsyncGenerator[Upstream]:
    """The provider of this test process."""
    async with upstream() as provider:
        yield provider


@pytest.fixture
def provider(kept_provider: Upstream) -> Upstream:
    """A provider that was asked nothing yet."""
    kept_provider.forget()
    return kept_provider


@pytest.fixture
async def gateway_server(kept_servers: KeptServers, provider: Upstream) -> KeptServer:
    """A server whose gateway leads to the provider under the name `model`."""
    rules = "codex=watch, *@acme/hidden=off"
    environment = {"ESKER_GATEWAY_UPSTREAMS": f"model={provider.url}", "ESKER_GATEWAY_RULES": rules}
    environment |= {"ESKER_GATEWAY_HISTORY_TOKENS": "4000"}
    return await kept_servers.get({"ESKER_EMBEDDER": "none", **environment})


@pytest.fixture
async def agent(gateway_server: KeptServer) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of that server."""
    async with httpx2.AsyncClient(base_url=gateway_server.url, timeout=PATIENCE) as connected:
        yield connected
