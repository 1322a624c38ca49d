"""Copilot CLI: the MCP server in mcp-config.json, hooks in a file of their own.

The server is `esker mcp`, a process of this machine: Copilot CLI would wait forever for an HTTP server that hangs.
"""

from pathlib import Path

from esker.server.agents.install.client import CALL_SECONDS, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile
from esker.server.core.json_input import Json

NAME = "copilot"

# Timeouts of hooks, in seconds.
_TIMEOUTS = {"sessionStart": 10, "userPromptSubmitted": 10, "agentStop": 10, "preCompact": 30, "sessionEnd": 10}
_VERSION = 1


def _folder(target: InstallTarget) -> Path:
    return target.folder("COPILOT_HOME", ".copilot")


def hooks(target: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks, which are in the lists of their events without groups."""
    handlers: dict[str, dict[str, Json]] = {
        event: {"type": "command", "command": target.command(NAME, event), "timeoutSec": timeout}
        for event, timeout in _TIMEOUTS.items()
    }
    return tuple(Hook(event, handler, handler) for event, handler in handlers.items())


def _parts(target: InstallTarget) -> list[ManagedFile]:
    # The process has the environment of Copilot CLI, and with it ESKER_KEY. The timeout is in milliseconds.
    server: dict[str, Json] = {
        "type": "local",
        "command": target.program,
        "args": ["mcp"],
        "env": {"ESKER_URL": target.url.rstrip("/"), "ESKER_STATE_DIR": str(target.state_dir.absolute())},
        "tools": ["*"],
        "timeout": CALL_SECONDS * 1000,
    }
    return [
        JsonFile(_folder(target) / "mcp-config.json", NAME, members={("mcpServers", SERVER): server}),
        JsonFile(_folder(target) / "hooks" / "esker.json", NAME, hooks=hooks(target), needed={"version": _VERSION}),
    ]


CLIENT = Client(NAME, _folder, _parts)
