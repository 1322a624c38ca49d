"""The clients that can be set up."""

from esker.server.agents.install import claude_code, codex, copilot, cursor, gemini, opencode, pi
from esker.server.agents.install.client import Client

CLIENTS: dict[str, Client] = {
    module.CLIENT.name: module.CLIENT for module in (claude_code, codex, gemini, opencode, pi, copilot, cursor)
}
