"""Cursor: the MCP server in mcp.json, hooks in hooks.json. No hook at prompts, since it could not add context."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile
from esker.server.core.json_input import Json

NAME = "cursor"

# Timeouts of hooks, in seconds.
_TIMEOUTS = {"sessionStart": 10, "stop": 10, "preCompact": 30, "sessionEnd": 10}
_VERSION = 1


def _folder(target: InstallTarget) -> Path:
    return target.home / ".cursor"


def hooks(target: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks, which are in the lists of their events without groups."""
    handlers: dict[str, dict[str, Json]] = {
        event: {"command": target.command(NAME, event), "timeout": timeout} for event, timeout in _TIMEOUTS.items()
    }
    return tuple(Hook(event, handler, handler) for event, handler in handlers.items())


def _parts(target: InstallTarget) -> list[ManagedFile]:
    server = {"url": target.mcp_url, **target.headers(f"${{env:{KEY_VARIABLE}}}")}
    return [
        JsonFile(_folder(target) / "mcp.json", NAME, members={("mcpServers", SERVER): server}),
        JsonFile(_folder(target) / "hooks.json", NAME, hooks=hooks(target), needed={"version": _VERSION}),
    ]


CLIENT = Client(NAME, _folder, _parts)
