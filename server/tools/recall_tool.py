"""The tool `recall_memory`: the memories that answer a question."""

from datetime import datetime
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, TypeAdapter

from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.rendering import recalled_text
from esker.server.core.records import AskedTier, Kind, Priority, Scope
from esker.server.core.text.fencing import neutral_object
from esker.server.tools.backend import Backend
from esker.server.tools.errors import tool_errors
from esker.server.usecases.recall_request import MAX_LIMIT, MIN_TOKENS, RecallRequest

_RECALLED = TypeAdapter(Recalled)


def add_recall(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server the tool `recall_memory`."""

    @mcp.tool(
        title="Recall memory",
        annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False),
    )
    async def recall_memory(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
        query: Annotated[str, Field(description="The question, in plain words.")],
        limit: Annotated[int, Field(ge=1, le=MAX_LIMIT, description="Maximum number of memories to return.")] = 8,
        scope: Annotated[
            Scope | None,
            Field(description="One session, one project (the default if one is named), or the whole pool."),
        ] = None,
        project: Annotated[
            str | None, Field(description="Its name; memories that belong to no project are found too.")
        ] = None,
        session_id: Annotated[str | None, Field(description="The session's id (ses_…), for the scope session.")] = None,
        kinds: Annotated[list[Kind] | None, Field(min_length=1, description="Only memories of these kinds.")] = None,
        tags: Annotated[
            list[str] | None, Field(min_length=1, max_length=64, description="Only memories with all these tags.")
        ] = None,
        min_priority: Annotated[Priority, Field(description="Only memories of at least this priority.")] = "low",
        since: Annotated[
            datetime | None, Field(description="Only memories said, or about a time, from this on.")
        ] = None,
        until: Annotated[datetime | None, Field(description="Only memories said, or about a time, up to this.")] = None,
        as_of: Annotated[datetime | None, Field(description="Answer as of this time.")] = None,
        include_superseded: Annotated[bool, Field(description="Include superseded memories.")] = False,
        tier: Annotated[
            AskedTier, Field(description="memories (facts), passages (verbatim messages), or both.")
        ] = "both",
        max_tokens: Annotated[
            int, Field(ge=MIN_TOKENS, description="Maximum number of tokens of memories to return.")
        ] = 2_000,
        timezone: Annotated[
            str | None, Field(description='Time zone of the user\'s "yesterday", such as Europe/Berlin; default UTC.')
        ] = None,
    ) -> CallToolResult:
        """Find what is remembered about something: earlier decisions, preferences, facts, errors and their causes."""
        recall_request = RecallRequest(
            query,
            limit=limit,
            scope=scope,
            project=project,
            session_id=session_id,
            kinds=kinds,
            tags=tags,
            min_priority=min_priority,
            since=since,
            until=until,
            as_of=as_of,
            include_superseded=include_superseded,
            tier=tier,
            max_tokens=max_tokens,
            timezone=timezone,
        )
        with tool_errors():
            found = await backend.recall(ctx.request_context.request, recall_request)
        return CallToolResult(
            content=[TextContent(type="text", text=recalled_text(found))],
            structured_content=_lean(found),
        )


def _lean(found: Recalled) -> dict[str, Any]:
    """Return an answer as structured content, without fields that are useless to a model.

    Some clients show a model the structured content, too.
    """
    hits = {"__all__": {"id", "content", "age", "said_at", "project", "trust", "score", "truncated"}}
    about = ("semantic", "reason", "abstained", "omitted", "pending", "unknown_project")
    shown = {"hits": hits, **dict.fromkeys(about, True)}
    return neutral_object(_RECALLED.dump_python(found, mode="json", include=shown))
