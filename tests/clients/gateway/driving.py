"""Drives clients through the gateway, each in each mode, with a server, a recorder and a model for all of them."""

import secrets
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.agent import Agent
from tests.clients.gateway.homes import prefix, through_gateway, variables
from tests.clients.gateway.recorder import Recorder, recorder
from tests.clients.gateway.trial import GatewayTrial
from tests.clients.homes import environment, make_home
from tests.clients.installing import Clients
from tests.clients.memory import MemoryServer
from tests.clients.model.server import ModelAsked, scripted_model
from tests.clients.promises import Outcome, seed

MODES = ("off", "watch", "pack", "manage")
_HISTORY_TOKENS = "4000"


def try_through_gateway(clients: Clients, names: list[str], modes: list[str]) -> dict[str, list[Outcome]]:
    """Return what holds for each client."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    with scripted_model() as model, _server(model) as server, recorder(server.port) as recorded:
        for name in names:
            for mode in modes:
                print(f"{name}, {mode} …", file=sys.stderr)
                key = f"sk-{secrets.token_hex(8)}"
                with _agent(name, mode, clients, model, recorded, key) as agent:
                    outcomes[name] += GatewayTrial(mode, agent, server, model, recorded).run(key)
    return outcomes


@contextmanager
def _server(model: ModelAsked) -> Generator[MemoryServer]:
    folder = Path(tempfile.mkdtemp(prefix="esker-clients-"))
    upstreams = ",".join(f"{name}={model.url}" for name in ("anthropic", "openai", "gemini"))
    settings = {"ESKER_GATEWAY_UPSTREAMS": upstreams, "ESKER_GATEWAY_HISTORY_TOKENS": _HISTORY_TOKENS}
    server = MemoryServer(folder, **settings)
    try:
        server.start()
        seed(server)
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _agent(name: str, mode: str, clients: Clients, model: ModelAsked, recorded: Recorder, key: str) -> Generator[Agent]:
    # Codex refuses a home in the folder for temporary files.
    root = Path(tempfile.mkdtemp(prefix=f"home-{name}-", dir=clients.folder))
    home, work = root / "home", root / "shop"
    make_home(home, work, model.url)
    through_gateway(name, home, work, recorded.url, mode, key)
    environ = environment(home, model.url, clients.path())
    environ = variables(name, environ, work, recorded.url, mode, key)
    environ |= {"PWD": str(work), "ESKER_URL": recorded.url, "ESKER_STATE_DIR": str(root / "state")}
    agent = Agent(name, home, work, environ, prefix(name, mode))
    try:
        yield agent
    finally:
        agent.end()
        shutil.rmtree(root, ignore_errors=True)
