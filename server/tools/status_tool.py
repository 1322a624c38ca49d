"""The tool `memory_status`: the contents of memory, and what is not searchable yet."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import TypeAdapter

from esker.server.core.counts import counted
from esker.server.core.reports import PoolStatus
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


def status_text(found: PoolStatus) -> str:
    """Return a status as text."""
    kinds = ", ".join(f"{count:,} of kind {kind}" for kind, count in sorted(found.memories.items()))
    held = f"{counted(sum(found.memories.values()), 'memory')}{f' ({kinds})' if kinds else ''}"
    last = f", the last received at {found.last_message_at:%Y-%m-%d %H:%M} UTC" if found.last_message_at else ""
    lines = [
        f"Pool {found.pool}: {held}, {found.superseded:,} superseded, {counted(found.passages, 'passage')}.",
        f"{counted(found.messages, 'message')} of {counted(found.sessions, 'session')}{last}.",
    ]
    if found.unobserved_tokens:
        waiting = counted(found.unobserved_tokens, "token of messages is", "tokens of messages are")
        lines.append(f"{waiting} not observed yet.")
    if found.model is None:
        lines.append(f"Nothing can be found by meaning: no embedding model is in use (embedder: {found.embedder}).")
    elif found.pending:
        lines.append(f"{counted(found.pending, 'text')} cannot be found by meaning yet.")
    else:
        lines.append(f"Everything can be found by meaning ({found.model}).")
    if found.jobs or found.failed_jobs:
        jobs = counted(found.jobs, "job waits or runs", "jobs wait or run")
        lines.append(f"{jobs}, {found.failed_jobs:,} failed permanently (see `esker doctor`).")
    lines.append(f"Observer {found.observer}, reflector {found.reflector}.")
    return "\n".join(lines)
