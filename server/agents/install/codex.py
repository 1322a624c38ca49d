"""Codex: the MCP server in config.toml, hooks in hooks.json."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import Hook, JsonFile, grouped
from esker.server.agents.install.toml_file import TomlFile
from esker.server.core.json_input import Json

NAME = "codex"

# Seconds. Codex gives the end of a session three at most, whatever is asked for.
_TIMEOUTS = {"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "SubagentStop": 10, "PreCompact": 30}
_END_TIMEOUT = 3
_TRUST = (
    "Codex runs hooks only when they are trusted and skips others without a word: start it, type /hooks and trust"
    " those of Esker."
)


def _folder(place: InstallTarget) -> Path:
    return place.folder("CODEX_HOME", ".codex")


def hooks(place: InstallTarget) -> tuple[Hook, ...]:
    """Return the hooks."""

    def hook(event: str, timeout: int) -> Hook:
        handler: dict[str, Json] = {"type": "command", "command": place.command(NAME, event), "timeout": timeout}
        return grouped(event, handler)

    return (*(hook(event, timeout) for event, timeout in _TIMEOUTS.items()), hook("SessionEnd", _END_TIMEOUT))


def _parts(place: InstallTarget) -> list[ManagedFile]:
    key = {"bearer_token_env_var": KEY_VARIABLE} if place.with_key else {}
    return [
        TomlFile(_folder(place) / "config.toml", {"url": place.mcp_url, **key}),
        JsonFile(_folder(place) / "hooks.json", NAME, hooks=hooks(place)),
    ]


CLIENT = Client(NAME, _folder, _parts, notes=(_TRUST,))
