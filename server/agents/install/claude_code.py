"""Claude Code: hooks in its settings, the MCP server in the file beside them; for a user or a project."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, PROJECT, SERVER, USER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile, grouped
from esker.server.core.json_input import Json

NAME = "claude-code"


def _folder(place: InstallTarget) -> Path:
    return place.folder("CLAUDE_CONFIG_DIR", ".claude")


def hooks(place: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks. Timeouts are in seconds; what only sends a transcript does not keep the agent waiting."""

    def hook(event: str, how: dict[str, Json], **group: Json) -> Hook:
        return grouped(event, {"type": "command", "command": place.command(NAME, event), **how}, **group)

    return (
        hook("SessionStart", {"timeout": 10}, matcher="startup|resume|clear|compact|fork"),
        hook("UserPromptSubmit", {"timeout": 10}),
        hook("Stop", {"async": True}),
        hook("SubagentStop", {"async": True}),
        hook("PreCompact", {"timeout": 30}),
        hook("SessionEnd", {"timeout": 30}),
    )


def server(place: InstallTarget) -> dict[str, Json]:
    """Return the MCP server's entry."""
    return {"type": "http", "url": place.mcp_url, **place.headers(f"${{{KEY_VARIABLE}}}")}


def _parts(place: InstallTarget) -> list[ManagedFile]:
    if place.scope == PROJECT:
        settings, servers = place.cwd / ".claude" / "settings.json", place.cwd / ".mcp.json"
    else:
        # Without a folder of its own the file with the servers lies in the home, beside the folder.
        settings = _folder(place) / "settings.json"
        servers = place.folder("CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json")
    return [
        JsonFile(servers, NAME, members={("mcpServers", SERVER): server(place)}),
        JsonFile(settings, NAME, hooks=hooks(place)),
    ]


CLIENT = Client(NAME, _folder, _parts, scopes=(USER, PROJECT))
