"""The tool `memory_status`: the contents of memory, and what is not searchable yet."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import TypeAdapter

from esker.server.core.reports import PoolStatus, status_text
from esker.server.tools.backend import Backend
from esker.server.tools.errors import tool_errors

_STATUS = TypeAdapter(PoolStatus)


def add_status(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server the tool `memory_status`."""

    @mcp.tool(
        title="Memory status",
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
    async def memory_status(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
    ) -> CallToolResult:
        """Show how much is remembered, and what is not ready: unobserved messages, rows without vectors, failed jobs.
        Use it when recall returns less than you expect, or when the user asks about memory itself.
        """
        with tool_errors():
            found = await backend.status(ctx.request_context.request)
        return CallToolResult(
            content=[TextContent(type="text", text=status_text(found))],
            structured_content=_STATUS.dump_python(found, mode="json"),
        )
