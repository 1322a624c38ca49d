"""The tool `expand_memory`: from a memory to the messages it was drawn from."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, TypeAdapter

from esker.server.core.recall.expansion import Expansion
from esker.server.core.recall.expansion_fit import MIN_TOKENS
from esker.server.core.recall.expansion_text import expansion_text
from esker.server.core.text.fencing import neutral_object
from esker.server.tools.backend import Backend
from esker.server.tools.errors import exact_id, tool_errors
from esker.server.usecases.expand import MAX_AROUND, MAX_TOKENS, ExpandRequest

_EXPANSION = TypeAdapter(Expansion)
_ID_HINT = (
    "Give one id exactly as recall_memory or expand_memory shows it (mem_ or psg_, and 26 characters); call"
    " recall_memory to find one."
)


def add_expand(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server the tool `expand_memory`."""

    @mcp.tool(
        title="Expand memory",
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
    async def expand_memory(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
        memory_id: Annotated[str, Field(min_length=1, description="An id exactly as shown: mem_… or psg_…")],
        around: Annotated[
            int, Field(ge=0, le=MAX_AROUND, description="Number of messages to show before and after each source.")
        ] = 2,
        max_tokens: Annotated[
            int, Field(ge=MIN_TOKENS, le=MAX_TOKENS, description="Maximum number of tokens to return.")
        ] = 2_000,
    ) -> CallToolResult:
        """Show the sources of a memory: the verbatim messages it was drawn from, with those around them.

        Use it on an id from recall_memory when the exact wording, the reasons or the circumstances matter, when two
        memories contradict each other, or before you rely on a detail that a memory only summarizes.
        """
        expand_request = ExpandRequest(exact_id(memory_id, _ID_HINT), around, max_tokens)
        with tool_errors(_ID_HINT):
            found = await backend.expand(ctx.request_context.request, expand_request)
        return CallToolResult(
            content=[TextContent(type="text", text=expansion_text(found))], structured_content=_lean(found)
        )


def _lean(found: Expansion) -> dict[str, Any]:
    """Return an expansion as structured content, without fields that are useless to a model."""
    memory = {"id", "content", "kind", "author", "said_at", "project", "trust", "superseded_by"}
    row = {"memory": memory, **dict.fromkeys(("age", "depth", "source_of", "truncated"), True)}
    passage = dict.fromkeys(("id", "session_id", "project", "first_seq", "last_seq", "trust", "said_at"), True)
    shown = {"expanded": row | passage, "drawn_from": {"__all__": row}, "excerpts": True, "left_out": True}
    return neutral_object(_EXPANSION.dump_python(found, mode="json", include=shown))
