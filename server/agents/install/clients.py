"""The clients that can be set up."""

from esker.server.agents.install import claude_code, codex, copilot, cursor, gemini, opencode, pi
from esker.server.agents.install.client import Client
from esker.server.core.errors import NotFound

CLIENTS: dict[str, Client] = {
    module.CLIENT.name: module.CLIENT for module in (claude_code, codex, gemini, opencode, pi, copilot, cursor)
}


def client_of(name: str) -> Client:
    """Return a client. Raises NotFound."""
    if name not in CLIENTS:
        raise NotFound(f"Unknown client {name!r}.", hint=f"Use {', '.join(CLIENTS)}, or --all.")
    return CLIENTS[name]
