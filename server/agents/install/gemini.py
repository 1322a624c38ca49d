"""Gemini CLI: hooks and the MCP server, both in its settings."""

from pathlib import Path

from esker.server.agents.install.client import CONNECT_SECONDS, KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile, grouped

NAME = "gemini-cli"

# Timeouts of hooks, in milliseconds.
_TIMEOUTS = {
    "SessionStart": 10_000,
    "BeforeAgent": 10_000,
    "AfterAgent": 10_000,
    "SessionEnd": 10_000,
}


def _folder(target: InstallTarget) -> Path:
    return target.home / ".gemini"


def hooks(target: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks of Gemini CLI, each in a group of its event."""
    return tuple(
        grouped(event, {"type": "command", "command": target.command(NAME, event), "timeout": timeout})
        for event, timeout in _TIMEOUTS.items()
    )


def _parts(target: InstallTarget) -> list[ManagedFile]:
    # One limit for connecting and for calls, in milliseconds.
    limits = {"timeout": CONNECT_SECONDS * 1000}
    server = {"httpUrl": target.mcp_url, **limits, **target.headers(f"${{{KEY_VARIABLE}}}")}
    settings = _folder(target) / "settings.json"
    return [JsonFile(settings, NAME, members={("mcpServers", SERVER): server}, hooks=hooks(target))]


CLIENT = Client(NAME, _folder, _parts)
