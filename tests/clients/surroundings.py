"""The surroundings of a trial: a server with a memory, and a client in a home of its own; both are gone after it."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.agent import Agent
from tests.clients.homes import environment, make_home
from tests.clients.installing import Clients
from tests.clients.memory import MemoryServer
from tests.clients.promises import seed


@contextmanager
def seeded_server(**settings: str) -> Generator[MemoryServer]:
    """Run a server that has a memory."""
    folder = Path(tempfile.mkdtemp(prefix="esker-clients-"))
    server = MemoryServer(folder, **settings)
    try:
        server.start()
        seed(server)
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def agent_at_home(name: str, clients: Clients, model_url: str, url: str) -> Generator[Agent]:
    """Make a home for a client; `url` is the address of Esker. Processes that it leaves behind are ended."""
    # Codex refuses a home in the folder for temporary files.
    root = Path(tempfile.mkdtemp(prefix=f"home-{name}-", dir=clients.folder))
    home, work = root / "home", root / "shop"
    make_home(home, work, model_url)
    environ = environment(home, model_url, clients.path())
    # OpenCode takes PWD for its working directory.
    environ |= {"PWD": str(work), "ESKER_URL": url, "ESKER_STATE_DIR": str(root / "state")}
    agent = Agent(name, home, work, environ)
    try:
        yield agent
    finally:
        agent.end()
        shutil.rmtree(root, ignore_errors=True)
