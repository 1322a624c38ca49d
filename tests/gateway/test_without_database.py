"""While Postgres is away, requests pass through the gateway with the pack that they had, and are kept afterwards."""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import httpx2
import pytest

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from tests.gateway.test_manage import MANAGED, history, kept
from tests.gateway.test_messages import SESSION, request, sent, stored, text
from tests.support.api import until
from tests.support.impatience import wait_hardly, wait_long
from tests.support.serving import serving_app
from tests.support.silent_network import SilentNetwork, silent_network
from tests.support.upstream import Said, Upstream, messages_stream
from tests.support.waiting import PATIENCE


@dataclass(frozen=True, slots=True)
class Setting:
    """A client of a server whose gateway leads to the provider, and the network to its database."""

    parts: Parts
    agent: httpx2.AsyncClient
    network: SilentNetwork

    def cut(self) -> None:
        """Stop Postgres."""
        wait_hardly(self.parts.database)
        self.network.refuses = True
        self.network.break_connections()

    def mend(self) -> None:
        """Start it again."""
        wait_long(self.parts.database)
        self.network.refuses = False


@pytest.fixture
async def setting(database_url: str, provider: Upstream, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Setting]:
    """A server whose gateway tries again sooner than usual."""
    monkeypatch.setattr("esker.server.gateway.keeping._PAUSES", (0.05,) * 200)
    environment = {"ESKER_EMBEDDER": "none", "ESKER_GATEWAY_UPSTREAMS": f"model={provider.url}"}
    environment |= {"ESKER_GATEWAY_HISTORY_TOKENS": "4000"}
    async with silent_network(database_url) as network:
        database = Database(network.url, connections=4, answer_seconds=0.3)
        parts = make_parts(Settings.from_environment(environment), database, system_clock)
        async with serving_app(make_app(parts)) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as agent:
            made = Setting(parts, agent, network)
            yield made
            made.mend()


async def test_a_session_keeps_its_pack_and_its_turns_through_an_outage(setting: Setting, provider: Upstream) -> None:
    await setting.agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    provider.say(Said(messages_stream(text("Hello."))))
    await sent(setting.agent, request(("user", "Hi.")))
    await stored(setting.agent, SESSION, 2)
    setting.cut()
    provider.say(Said(messages_stream(text("Noon."), number=2)))
    history = [("user", "Hi."), ("assistant", [text("Hello.")]), ("user", "When does it close?")]
    answer = await sent(setting.agent, request(*history))
    assert answer.status_code == 200
    first, second = (arrived.json["system"] for arrived in provider.arrived)
    assert first == second
    assert "deploys on Fridays" in second[1]["text"]
    setting.mend()
    assert [each["text"] for each in await stored(setting.agent, SESSION, 4)][2:] == ["When does it close?", "Noon."]


async def test_a_session_that_begins_in_an_outage_passes_as_it_came_and_is_kept_in_order_afterwards(
    setting: Setting, provider: Upstream
) -> None:
    # The server knows its owner by an earlier request.
    provider.say(Said(messages_stream(text("Hello."))))
    await sent(setting.agent, request(("user", "Hi.")))
    await stored(setting.agent, SESSION, 2)
    setting.cut()
    other = {"x-claude-code-session-id": "0b6f1c1e-0000-4000-8000-000000000002"}
    body = json.dumps(request(("user", "Who are you?"))).encode()
    assert (await sent(setting.agent, body, **other)).status_code == 200
    assert provider.arrived[1].body == body
    provider.say(Said(messages_stream(text("Noon."), number=2)))
    longer = [("user", "Who are you?"), ("assistant", [text("Hello.")]), ("user", "When does it close?")]
    await sent(setting.agent, request(*longer), **other)
    # The client has rewound its history.
    provider.say(Said(messages_stream(text("At nine."), number=3)))
    await sent(setting.agent, request(*longer[:2], ("user", "When does it open?")), **other)
    setting.mend()
    kept = await stored(setting.agent, other["x-claude-code-session-id"], 6)
    said = ["Who are you?", "Hello.", "When does it close?", "Noon.", "When does it open?", "At nine."]
    assert [each["text"] for each in kept] == said
    path = f"/v1/sessions?external_id={other['x-claude-code-session-id']}"
    [session] = (await setting.agent.get(path)).json()["sessions"]
    shown = f"/v1/sessions/{session['id']}/memory"
    await until(setting.agent, shown, lambda memory: (memory["usage"] or {}).get("calls") == 3)


async def test_a_managed_history_stays_cut_through_an_outage(setting: Setting, provider: Upstream) -> None:
    await kept(setting.agent, provider, 20)
    longer = [*history(20), ("user", "Sum up."), ("assistant", [text("Part 20 is done.")]), ("user", "And now?")]
    provider.say(Said(messages_stream(text("Part 21 is done."), number=21)))
    await sent(setting.agent, request(*longer), **MANAGED)
    setting.cut()
    await sent(setting.agent, request(*longer), **MANAGED)
    before, after = (arrived.body for arrived in provider.arrived[1:3])
    assert before == after
    assert len(provider.arrived[2].json["messages"]) < 40


async def test_a_key_of_a_project_gets_no_pack_of_another_one_in_an_outage(
    setting: Setting, provider: Upstream
) -> None:
    await setting.agent.post("/v1/memories", json={"content": "The shop deploys on Fridays.", "kind": "manual"})
    provider.say(Said(messages_stream(text("Hello."))))
    whole = await create_key(setting.parts, name="whole", pool="default", scopes=["read", "write"])
    bound = await create_key(
        setting.parts, name="bound", pool="default", scopes=["read", "write"], project="acme/other"
    )
    body = request(("user", "Hi."))
    await sent(setting.agent, body, **{"x-esker-key": bound.key, "x-claude-code-session-id": "its-own"})
    await sent(setting.agent, body, **{"x-esker-key": whole.key, "x-esker-project": "acme/shop"})
    assert b"deploys on Fridays" in provider.arrived[-1].body
    setting.cut()
    await sent(setting.agent, body, **{"x-esker-key": bound.key})
    assert b"deploys on Fridays" not in provider.arrived[-1].body
