"""The tool `recall_memory`: what is remembered about a question."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, TypeAdapter

from server.core.errors import EskerError
from server.core.recalled import Recalled
from server.core.rendering import recalled_line
from server.usecases.recall_request import MAX_LIMIT, MIN_TOKENS, RecallRequest

Recall = Callable[[Any, RecallRequest], Awaitable[Recalled]]
"""Answers a question; the first argument is the HTTP request of the call, None on stdio."""

_RECALLED = TypeAdapter(Recalled)


def add_recall(mcp: MCPServer[Any], recall: Recall) -> None:
    """Give an MCP server the tool `recall_memory`, which answers through `recall`."""

    @mcp.tool(
        title="Recall memory",
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
    async def recall_memory(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
        query: Annotated[str, Field(description="What to find, in plain words.")],
        limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="The most memories to return.")] = 8,
        scope: Annotated[
            Literal["project", "pool"] | None,
            Field(description="One project (the default where one is named), or everything in the pool."),
        ] = None,
        project: Annotated[str | None, Field(description="Its name; what belongs to no project is found too.")] = None,
        max_tokens: Annotated[int, Field(ge=MIN_TOKENS, description="The most tokens of memories to return.")] = 2_000,
        timezone: Annotated[
            str | None, Field(description='Where the user\'s "yesterday" is, such as Europe/Berlin; without it UTC.')
        ] = None,
    ) -> CallToolResult:
        """Find what is remembered about something: earlier decisions, preferences, facts, errors and their causes."""
        asked = RecallRequest(
            query, limit=limit, scope=scope, project=project, max_tokens=max_tokens, timezone=timezone
        )
        try:
            found = await recall(ctx.request_context.request, asked)
        except EskerError as error:
            raise ToolError(" ".join(filter(None, (str(error), error.hint)))) from error
        return CallToolResult(
            content=[TextContent(type="text", text=told(found))],
            structured_content=_lean(found),
        )


def _lean(found: Recalled) -> dict[str, Any]:
    """Return an answer in structure, which some clients show their model too, so without what a model cannot use."""
    hits = {"__all__": {"id", "content", "age", "said_at", "project", "trust", "score", "truncated"}}
    shown = {"hits": hits, **dict.fromkeys(("semantic", "reason", "abstained", "omitted", "pending"), True)}
    return _RECALLED.dump_python(found, mode="json", include=shown)


def told(found: Recalled) -> str:
    """Return an answer as a model reads it: fenced as data, a line for each memory with its age and project."""
    lines = [recalled_line(hit) for hit in found.hits]
    if found.abstained:
        lines.append("Nothing in memory is about this.")
        if found.unobserved_tokens:
            lines.append("(The latest messages have not been turned into memories yet.)")
    elif found.omitted:
        lines.append(f"({found.omitted} more are not shown; ask for more, or more narrowly.)")
    if found.semantic == "degraded":
        lines.append(f"(Found by keyword only: {found.reason}.)")
    elif found.semantic == "weak":
        lines.append(f"(Found mostly by keyword: {found.reason}.)")
    return "\n".join(["<recalled_memories>", *lines, "</recalled_memories>"])
