"""Gemini CLI: hooks and the MCP server, both in its settings."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile, grouped

NAME = "gemini-cli"

# Milliseconds.
_TIMEOUTS = {
    "SessionStart": 10_000,
    "BeforeAgent": 10_000,
    "AfterAgent": 10_000,
    "PreCompress": 30_000,
    "SessionEnd": 10_000,
}


def _folder(place: InstallTarget) -> Path:
    return place.home / ".gemini"


def hooks(place: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks."""
    return tuple(
        grouped(event, {"type": "command", "command": place.command(NAME, event), "timeout": timeout})
        for event, timeout in _TIMEOUTS.items()
    )


def _parts(place: InstallTarget) -> list[ManagedFile]:
    server = {"httpUrl": place.mcp_url, **place.headers(f"${{{KEY_VARIABLE}}}")}
    settings = _folder(place) / "settings.json"
    return [JsonFile(settings, NAME, members={("mcpServers", SERVER): server}, hooks=hooks(place))]


CLIENT = Client(NAME, _folder, _parts)
