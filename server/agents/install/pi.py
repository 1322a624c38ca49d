"""pi: the MCP server in mcp.json, hooks as an extension."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import JsonFile
from esker.server.agents.install.whole_file import WholeFile

NAME = "pi"


def _folder(place: InstallTarget) -> Path:
    return place.home / ".pi" / "agent"


def _parts(place: InstallTarget) -> list[ManagedFile]:
    server = {"url": place.mcp_url, **place.headers(f"${{{KEY_VARIABLE}}}")}
    return [
        JsonFile(_folder(place) / "mcp.json", NAME, members={("mcpServers", SERVER): server}),
        WholeFile(_folder(place) / "extensions" / "esker.ts", place.plugin(NAME)),
    ]


CLIENT = Client(NAME, _folder, _parts)
