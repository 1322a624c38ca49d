"""The tool `memory_briefing`: what a session should start with, for clients whose hooks do not bring it."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from esker.server.tools.backend import Backend
from esker.server.tools.errors import tool_errors

BRIEFING = "memory_briefing"


def add_briefing(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server the tool `memory_briefing`."""

    @mcp.tool(
        name=BRIEFING,
        title="Briefing",
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
        structured_output=False,
    )
    async def memory_briefing(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
        project: Annotated[
            str | None,
            Field(max_length=512, description="The project that you work in, such as owner/name of its repository."),
        ] = None,
    ) -> str:
        """Show the most important memories of a project and the state of its latest session. Call it once, before you
        begin; without a project it covers everything.
        """
        with tool_errors():
            return await backend.briefing(ctx.request_context.request, project)
