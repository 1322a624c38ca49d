"""pi: the MCP server in mcp.json, hooks as an extension."""

from pathlib import Path

from esker.server.agents.install.client import CONNECT_SECONDS, KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import JsonFile
from esker.server.agents.install.whole_file import WholeFile
from esker.server.core.json_input import Json

NAME = "pi"


def _folder(target: InstallTarget) -> Path:
    return target.home / ".pi" / "agent"


def _parts(target: InstallTarget) -> list[ManagedFile]:
    # pi declares no tool by default: a model finds tools from scripts. This declares recall, for some 450 tokens, and
    # lets the model look for the rest. The limit is for connecting and for calls, in seconds.
    tools: dict[str, Json] = {
        "exposure": "deferred",
        "toolExposure": {"recall_memory": "direct"},
        "timeout": CONNECT_SECONDS,
    }
    server: dict[str, Json] = {"url": target.mcp_url, **tools, **target.headers(f"${{{KEY_VARIABLE}}}")}
    return [
        JsonFile(_folder(target) / "mcp.json", NAME, members={("mcpServers", SERVER): server}),
        WholeFile(_folder(target) / "extensions" / "esker.ts", target.plugin(NAME)),
    ]


CLIENT = Client(NAME, _folder, _parts)
