"""Claude Code: hooks in its settings, the MCP server in the file beside them; for a user or a project."""

from pathlib import Path

from esker.server.agents.install.client import (
    CALL_SECONDS,
    KEY_VARIABLE,
    PROJECT,
    SERVER,
    USER,
    Client,
    InstallTarget,
    ManagedFile,
)
from esker.server.agents.install.json_file import Hook, JsonFile, grouped
from esker.server.core.json_input import Json

NAME = "claude-code"


def _folder(target: InstallTarget) -> Path:
    return target.folder("CLAUDE_CONFIG_DIR", ".claude")


def hooks(target: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks of Claude Code. Timeouts are in seconds; hooks that only send a transcript are asynchronous."""

    def hook(event: str, options: dict[str, Json], **group: Json) -> Hook:
        return grouped(event, {"type": "command", "command": target.command(NAME, event), **options}, **group)

    return (
        hook("SessionStart", {"timeout": 10}, matcher="startup|resume|clear|compact|fork"),
        hook("UserPromptSubmit", {"timeout": 10}),
        hook("Stop", {"async": True}),
        hook("SubagentStop", {"async": True}),
        hook("PreCompact", {"timeout": 30}),
        hook("SessionEnd", {"timeout": 30}),
    )


def server(target: InstallTarget) -> dict[str, Json]:
    """Return the MCP server's entry. The timeout is in milliseconds and for calls; connecting has one of its own."""
    entry: dict[str, Json] = {"type": "http", "url": target.mcp_url, "timeout": CALL_SECONDS * 1000}
    return entry | target.headers(f"${{{KEY_VARIABLE}}}")


def _parts(target: InstallTarget) -> list[ManagedFile]:
    if target.scope == PROJECT:
        settings, servers = target.cwd / ".claude" / "settings.json", target.cwd / ".mcp.json"
    else:
        # Without CLAUDE_CONFIG_DIR the file with the servers is beside the folder, not in it.
        settings = _folder(target) / "settings.json"
        servers = target.folder("CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json")
    return [
        JsonFile(servers, NAME, members={("mcpServers", SERVER): server(target)}),
        JsonFile(settings, NAME, hooks=hooks(target)),
    ]


CLIENT = Client(NAME, _folder, _parts, scopes=(USER, PROJECT))
