"""The tools `remember` and `forget_memory`: an agent writes a memory, or deletes one."""

from datetime import datetime
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from esker.server.core.counts import counted
from esker.server.core.facts.forgetting import Receipt
from esker.server.core.records import Category, Priority, SourcedMemory
from esker.server.core.text.fencing import fenced, neutral_object
from esker.server.tools.backend import Backend
from esker.server.tools.errors import exact_id, tool_errors
from esker.server.usecases.correct import Correction
from esker.server.usecases.remember import MAX_CHARACTERS, Note

_ID_HINT = (
    "Give one id exactly as recall_memory or expand_memory shows it (mem_ or psg_, and 26 characters); memories cannot"
    " be named by their content. Call recall_memory to find the id."
)


def add_remember(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server the tool `remember`."""

    @mcp.tool(
        title="Remember",
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
    async def remember(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
        content: Annotated[
            str,
            Field(
                min_length=1,
                max_length=MAX_CHARACTERS,
                description="One fact, in a sentence that makes sense by itself, with names and dates spelt out.",
            ),
        ],
        project: Annotated[
            str | None, Field(description="The project that it is about; default: all projects.")
        ] = None,
        priority: Annotated[
            Priority | None, Field(description="high for what must not be missed; default: medium.")
        ] = None,
        category: Annotated[Category | None, Field(description="Default: fact.")] = None,
        tags: Annotated[list[str] | None, Field(max_length=64, description="Words to filter by.")] = None,
        kind: Annotated[
            Literal["note", "manual"],
            Field(description="manual pins it to the top of every pack: only when the user asks for that."),
        ] = "note",
        session_id: Annotated[str | None, Field(description="The id (ses_…) of the session it belongs to.")] = None,
        said_at: Annotated[datetime | None, Field(description="When it was said; default: now.")] = None,
        replaces: Annotated[
            str | None,
            Field(
                description="The exact id (mem_…) of a memory that this corrects, whose project and session it keeps."
            ),
        ] = None,
    ) -> CallToolResult:
        """Keep something for later sessions of all agents that share this memory.

        Use it when the user asks to remember something, or states a lasting preference, decision or correction. The
        conversation itself is observed anyway, so do not write down what you did. Repeating a memory changes nothing.
        To correct an older memory, name it in replaces; the old one is kept as superseded.
        """
        request = ctx.request_context.request
        if replaces is not None:
            if project or session_id or said_at or kind == "manual":
                raise ToolError("With replaces, leave out project, session_id, said_at and kind.")
            correction, exact = Correction(content, priority, category, tags), exact_id(replaces, _ID_HINT)
            with tool_errors(_ID_HINT):
                return _remembered(await backend.correct(request, exact, correction))
        note = Note(
            content,
            manual=kind == "manual",
            priority=priority or "medium",
            category=category or "fact",
            tags=tags or (),
            project=project,
            session_id=session_id,
            said_at=said_at,
        )
        with tool_errors():
            return _remembered(await backend.remember(request, note))


def _remembered(row: SourcedMemory) -> CallToolResult:
    where = f"project {fenced(row.project)}" if row.project else "all projects"
    return CallToolResult(
        content=[TextContent(type="text", text=f"Remembered as {row.id}, for {where}.")],
        structured_content=neutral_object(
            {"id": row.id, "content": row.content, "project": row.project, "kind": row.kind}
        ),
    )


def add_forget(mcp: MCPServer[Any], backend: Backend) -> None:
    """Give an MCP server the tool `forget_memory`."""

    @mcp.tool(
        title="Forget memory",
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
        ),
    )
    async def forget_memory(  # pyright: ignore[reportUnusedFunction] - the decorator registers it
        ctx: Context[Any],
        memory_id: Annotated[str, Field(min_length=1, description="One id exactly as shown: mem_… or psg_…")],
        messages: Annotated[
            bool, Field(description="Also delete the words of its source messages; for a passage that is always done.")
        ] = False,
    ) -> CallToolResult:
        """Delete one memory permanently, with its duplicates and everything that was drawn from it.

        Use it only when the user asks for it, on an id from recall_memory that you have shown them. To correct
        something, use remember with the corrected content and replaces.
        """
        exact = exact_id(memory_id, _ID_HINT)
        with tool_errors(_ID_HINT):
            receipt = await backend.forget(ctx.request_context.request, exact, messages)
        return CallToolResult(
            content=[TextContent(type="text", text=_receipt_text(exact, receipt))],
            structured_content={name: getattr(receipt, name) for name in _COUNTED} | {"id": receipt.id},
        )


_COUNTED = {
    "memories": ("memory", "memories"),
    "reflections": ("of them a reflection", "of them reflections"),
    "vectors": ("vector", "vectors"),
    "packs": (
        "pack, to be rebuilt at the next request",
        "packs, to be rebuilt at the next request",
    ),
    "messages": ("message emptied", "messages emptied"),
    "restored": ("replaced memory restored", "replaced memories restored"),
}
"""The counts of a receipt, with their singular and plural."""


def _receipt_text(text_id: str, receipt: Receipt) -> str:
    parts = [counted(count, *words) for name, words in _COUNTED.items() if (count := getattr(receipt, name))]
    return f"Forgotten: {text_id} ({'; '.join(parts)})."
