"""Fixtures: a provider, and a server whose gateway leads to it."""

from collections.abc import AsyncGenerator

import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from tests.support.kept_servers import KeptServer, KeptServers
from tests.support.serving import serving
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
async def other_agent(gateway_server: KeptServer, provider: Upstream) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of another server on the same database, as behind a balancer or after a restart."""
    environment = {"ESKER_EMBEDDER": "none", "ESKER_GATEWAY_UPSTREAMS": f"model={provider.url}"}
    database = Database(gateway_server.database.url, wait_seconds=PATIENCE)
    parts = make_parts(Settings.from_environment(environment), database, system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        yield connected


@pytest.fixture
async def agent(gateway_server: KeptServer) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of that server."""
    async with httpx2.AsyncClient(base_url=gateway_server.url, timeout=PATIENCE) as connected:
        yield connected
