"""OpenCode: the MCP server in its configuration, hooks as a plugin."""

from pathlib import Path

from esker.server.agents.install.client import CONNECT_SECONDS, KEY_VARIABLE, SERVER, Client, InstallTarget, ManagedFile
from esker.server.agents.install.json_file import JsonFile
from esker.server.agents.install.whole_file import WholeFile

NAME = "opencode"


def _folder(target: InstallTarget) -> Path:
    return target.folder("XDG_CONFIG_HOME", ".config/opencode", "opencode")


def _configuration(target: InstallTarget) -> Path:
    """Return the configuration file that exists; if both do, OpenCode reads both."""
    plain, commented = (_folder(target) / f"opencode.{suffix}" for suffix in ("json", "jsonc"))
    return commented if commented.exists() and not plain.exists() else plain


def _parts(target: InstallTarget) -> list[ManagedFile]:
    # One limit for connecting and for calls, in milliseconds. OpenCode connects in two ways, one after the other.
    where = {"type": "remote", "url": target.mcp_url, "enabled": True, "timeout": CONNECT_SECONDS * 1000}
    server = {**where, **target.headers(f"{{env:{KEY_VARIABLE}}}")}
    return [
        JsonFile(_configuration(target), NAME, members={("mcp", SERVER): server}),
        WholeFile(_folder(target) / "plugins" / "esker.ts", target.plugin(NAME)),
    ]


CLIENT = Client(NAME, _folder, _parts)
