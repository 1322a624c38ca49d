"""Drives clients through the gateway, each in each mode, with a server, a recorder and a model for all of them."""

import secrets
from dataclasses import replace

from tests.clients.agent import Agent
from tests.clients.gateway.homes import prefix, through_gateway, variables
from tests.clients.gateway.recorder import recorder
from tests.clients.gateway.trial import GatewayTrial
from tests.clients.installing import Clients
from tests.clients.model.server import ModelAsked, scripted_model
from tests.clients.progress import Progress
from tests.clients.promises import Outcome
from tests.clients.surroundings import agent_at_home, seeded_server

MODES = ("off", "watch", "pack", "manage")
_HISTORY_TOKENS = "4000"


def try_through_gateway(
    clients: Clients, names: list[str], modes: list[str], progress: Progress
) -> dict[str, list[Outcome]]:
    """Return what holds for each client, and show each outcome as it comes."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    with scripted_model() as model, seeded_server(**_settings(model)) as server, recorder(server.port) as recorded:
        for name in names:
            for mode in modes:
                progress.begin(f"{name} through the gateway, {mode}")
                key = f"sk-{secrets.token_hex(8)}"
                with agent_at_home(name, clients, model.url, recorded.url) as agent:
                    led = _led_through(agent, mode, recorded.url, key)
                    trial = GatewayTrial(mode, led, server, model, recorded)
                    outcomes[name] += progress.shown(trial.run(key))
    return outcomes


def _settings(model: ModelAsked) -> dict[str, str]:
    upstreams = ",".join(f"{name}={model.url}" for name in ("anthropic", "openai", "gemini"))
    return {"ESKER_GATEWAY_UPSTREAMS": upstreams, "ESKER_GATEWAY_HISTORY_TOKENS": _HISTORY_TOKENS}


def _led_through(agent: Agent, mode: str, url: str, key: str) -> Agent:
    """Return a client that goes through the gateway at an address."""
    through_gateway(agent.name, agent.home, agent.work, url, mode, key)
    environ = variables(agent.name, {**agent.environ}, agent.work, url, mode, key)
    return replace(agent, environ=environ, prefix=prefix(agent.name, mode))
