"""OpenCode: the MCP server in its configuration, hooks as a plugin."""

from pathlib import Path

from esker.server.agents.install.client import KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import JsonFile
from esker.server.agents.install.whole_file import WholeFile

NAME = "opencode"


def _folder(place: InstallTarget) -> Path:
    return place.folder("XDG_CONFIG_HOME", ".config/opencode", "opencode")


def _configuration(place: InstallTarget) -> Path:
    """Return the file that is there; where both kinds are, OpenCode reads both."""
    plain, commented = (_folder(place) / f"opencode.{suffix}" for suffix in ("json", "jsonc"))
    return commented if commented.exists() and not plain.exists() else plain


def _parts(place: InstallTarget) -> list[ManagedFile]:
    server = {"type": "remote", "url": place.mcp_url, "enabled": True, **place.headers(f"{{env:{KEY_VARIABLE}}}")}
    return [
        JsonFile(_configuration(place), NAME, members={("mcp", SERVER): server}),
        WholeFile(_folder(place) / "plugins" / "esker.ts", place.plugin(NAME)),
    ]


CLIENT = Client(NAME, _folder, _parts)
