"""Cursor: the MCP server in mcp.json, hooks in hooks.json. A prompt's hook could add nothing, so there is none."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile
from esker.server.core.json_input import Json

NAME = "cursor"

# Seconds.
_TIMEOUTS = {"sessionStart": 10, "stop": 10, "preCompact": 30, "sessionEnd": 10}
_VERSION = 1


def _folder(place: InstallTarget) -> Path:
    return place.home / ".cursor"


def hooks(place: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks, which stand in the lists of their events without groups."""
    handlers: dict[str, dict[str, Json]] = {
        event: {"command": place.command(NAME, event), "timeout": timeout} for event, timeout in _TIMEOUTS.items()
    }
    return tuple(Hook(event, handler, handler) for event, handler in handlers.items())


def _parts(place: InstallTarget) -> list[ManagedFile]:
    server = {"url": place.mcp_url, **place.headers(f"${{env:{KEY_VARIABLE}}}")}
    return [
        JsonFile(_folder(place) / "mcp.json", NAME, members={("mcpServers", SERVER): server}),
        JsonFile(_folder(place) / "hooks.json", NAME, hooks=hooks(place), needed={"version": _VERSION}),
    ]


CLIENT = Client(NAME, _folder, _parts)
