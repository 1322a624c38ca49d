"""When the tail of the mode `manage` moves: after a pause at half its budget, and never before it is observed."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta

import httpx2
import pytest

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from tests.gateway.test_manage import MANAGED, answered, history, kept
from tests.gateway.test_messages import SESSION, request, sent, stored, text
from tests.support.api import until
from tests.support.serving import serving_app
from tests.support.upstream import Upstream
from tests.support.waiting import PATIENCE

LONGER = [*history(20), ("user", "Sum up."), ("assistant", [text("Part 20 is done.")]), ("user", "And now?")]
"""A history of some 5,500 tokens."""


class LateClock:
    """The time of the system, and what the test adds to it."""

    def __init__(self) -> None:
        self.late = timedelta()

    def __call__(self) -> datetime:
        return system_clock() + self.late


Served = Callable[[int], AbstractAsyncContextManager[httpx2.AsyncClient]]


@pytest.fixture
def clock() -> LateClock:
    """The clock of the servers of a test."""
    return LateClock()


@pytest.fixture
def served(database_url: str, provider: Upstream, clock: LateClock) -> Served:
    """Return a function that starts a server with a budget of the tail, in tokens."""

    @asynccontextmanager
    async def start(budget: int) -> AsyncGenerator[httpx2.AsyncClient]:
        environment = {"ESKER_EMBEDDER": "none", "ESKER_GATEWAY_UPSTREAMS": f"model={provider.url}"}
        settings = Settings.from_environment(environment | {"ESKER_GATEWAY_HISTORY_TOKENS": str(budget)})
        parts = make_parts(settings, Database(database_url, connections=4), clock)
        async with serving_app(make_app(parts)) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as agent:
            yield agent

    return start


async def test_after_a_pause_that_ends_the_cache_half_a_budget_is_enough_for_a_move(
    served: Served, provider: Upstream, clock: LateClock
) -> None:
    async with served(9_000) as agent:
        await kept(agent, provider, 20)
        provider.say(answered(21))
        await sent(agent, request(*LONGER), **MANAGED)
        assert len(provider.arrived[1].json["messages"]) == 83
        clock.late = timedelta(minutes=6)
        again = [*LONGER, ("assistant", [text("Part 21 is done.")]), ("user", "More.")]
        provider.say(answered(22))
        await sent(agent, request(*again), **MANAGED)
        assert 13 <= len(provider.arrived[2].json["messages"]) < 60


async def test_a_session_is_observed_before_its_tail_reaches_the_budget(served: Served, provider: Upstream) -> None:
    async with served(6_500) as agent:
        provider.say(answered(20))
        await sent(agent, request(*history(20), ("user", "Sum up.")), **MANAGED)
        await stored(agent, SESSION, 82)
        provider.say(answered(21))
        await sent(agent, request(*LONGER), **MANAGED)
        [session] = (await agent.get(f"/v1/sessions?external_id={SESSION}")).json()["sessions"]
        await until(
            agent, f"/v1/sessions/{session['id']}/memory", lambda shown: shown["counters"]["observed_messages"] >= 82
        )
