"""pi: the MCP server in mcp.json, hooks as an extension."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, Part, Place
from esker.server.agents.install.json_file import JsonFile
from esker.server.agents.install.whole_file import WholeFile

NAME = "pi"


def _folder(place: Place) -> Path:
    return place.home / ".pi" / "agent"


def _parts(place: Place) -> list[Part]:
    server = {"url": place.mcp_url, **place.headers(f"${{{KEY_VARIABLE}}}")}
    return [
        JsonFile(_folder(place) / "mcp.json", NAME, members={("mcpServers", SERVER): server}),
        WholeFile(_folder(place) / "extensions" / "esker.ts", place.plugin(NAME)),
    ]


CLIENT = Client(NAME, _folder, _parts)
