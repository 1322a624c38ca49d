"""The MCP resources, which a client reads by address, and a prompt that the user can choose."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from pydantic import Field

from esker.server.core.errors import NotFound
from esker.server.core.recall.rendering import resource_text
from esker.server.tools.backend import Backend
from esker.server.tools.errors import resource_errors

ADDRESSES = "Valid addresses are memory://pack/{session} (ses_…) and memory://memory/{id} (mem_… or psg_…)."
"""The valid addresses, for error messages."""


def add_resources(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server `memory://pack/{session}`, `memory://memory/{id}` and the prompt `recall`."""

    @mcp.resource("memory://pack/{session}", title="Context pack", mime_type="text/plain")
    async def pack(session: str, ctx: Context[Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """The frozen text that goes before the messages of a session (ses_…)."""
        with resource_errors():
            return await backend.pack(ctx.request_context.request, _id_of(session))

    @mcp.resource("memory://memory/{memory_id}", title="Memory", mime_type="text/plain")
    async def memory(memory_id: str, ctx: Context[Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        """One memory (mem_…) or passage (psg_…), fenced as data."""
        with resource_errors():
            return resource_text(await backend.read(ctx.request_context.request, _id_of(memory_id)))

    @mcp.prompt(title="Recall")
    def recall(  # pyright: ignore[reportUnusedFunction]
        about: Annotated[str, Field(description="What to look for in memory.")],
    ) -> str:
        """Have the assistant look something up in memory before it answers."""
        return (
            f"Look in memory for what is known about the following, with recall_memory: {about}\nAnswer from what it"
            " returns and name the dates. Use expand_memory if the exact words matter. If it returns nothing"
            " relevant, say so and do not guess."
        )


def _id_of(row_id: str) -> str:
    """Return the id in an address. Raises NotFound if it is blank."""
    if not row_id.strip():
        raise NotFound("The address has no id.", hint=ADDRESSES)
    return row_id
