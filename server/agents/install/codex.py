"""Codex: the MCP server in config.toml, hooks in hooks.json."""

from pathlib import Path

from esker.server.agents.install.client import (
    CALL_SECONDS,
    CONNECT_SECONDS,
    KEY_VARIABLE,
    Client,
    InstallTarget,
    ManagedFile,
)
from esker.server.agents.install.json_file import Hook, JsonFile, grouped
from esker.server.agents.install.toml_file import TomlFile
from esker.server.core.json_input import Json

NAME = "codex"

# Timeouts of hooks, in seconds. Codex allows at most 3 at the end of a session.
_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "SubagentStop": 10, "PreCompact": 30}
_END_TIMEOUT = 3
_TRUST = "Codex silently skips hooks that are not trusted: start it, type /hooks and trust those of Esker."


def _folder(target: InstallTarget) -> Path:
    return target.folder("CODEX_HOME", ".codex")


def hooks(target: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks of Codex, each in a group of its event."""

    def hook(event: str, timeout: int) -> Hook:
        handler: dict[str, Json] = {"type": "command", "command": target.command(NAME, event), "timeout": timeout}
        return grouped(event, handler)

    return (*(hook(event, timeout) for event, timeout in _TIMEOUTS.items()), hook("SessionEnd", _END_TIMEOUT))


def _parts(target: InstallTarget) -> list[ManagedFile]:
    key = {"bearer_token_env_var": KEY_VARIABLE} if target.with_key else {}
    limits = {"startup_timeout_sec": CONNECT_SECONDS, "tool_timeout_sec": CALL_SECONDS}
    return [
        TomlFile(_folder(target) / "config.toml", {"url": target.mcp_url, **limits, **key}),
        JsonFile(_folder(target) / "hooks.json", NAME, hooks=hooks(target)),
    ]


CLIENT = Client(NAME, _folder, _parts, notes=(_TRUST,))
