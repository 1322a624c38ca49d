"""pi: the MCP server in mcp.json, hooks as an extension."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import JsonFile
from esker.server.agents.install.whole_file import WholeFile

NAME = "pi"


def _folder(target: InstallTarget) -> Path:
    return target.home / ".pi" / "agent"


def _parts(target: InstallTarget) -> list[ManagedFile]:
    server = {"url": target.mcp_url, **target.headers(f"${{{KEY_VARIABLE}}}")}
    return [
        JsonFile(_folder(target) / "mcp.json", NAME, members={("mcpServers", SERVER): server}),
        WholeFile(_folder(target) / "extensions" / "esker.ts", target.plugin(NAME)),
    ]


CLIENT = Client(NAME, _folder, _parts)
