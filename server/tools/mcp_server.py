"""The MCP server, the same over HTTP and stdio: what it says of itself, its tools, resources and prompt."""

from typing import Any

from mcp.server.mcpserver import MCPServer

from server import VERSION
from server.tools.arguments import KnownArguments
from server.tools.backend import Backend
from server.tools.expand_tool import add_expand
from server.tools.instructions import INSTRUCTIONS, ShortPack
from server.tools.recall_tool import add_recall
from server.tools.remember_tool import add_forget, add_remember
from server.tools.resources import add_resources
from server.tools.status_tool import add_status


def make_mcp(backend: Backend) -> MCPServer[Any]:
    """Return an MCP server whose tools answer through `backend`."""
    mcp: MCPServer[Any] = MCPServer("esker", title="Esker memory", version=VERSION, instructions=INSTRUCTIONS)
    for add in (add_recall, add_expand, add_remember, add_forget, add_status, add_resources):
        add(mcp, backend)
    mcp.middleware.extend([KnownArguments(mcp), ShortPack(backend)])
    return mcp
