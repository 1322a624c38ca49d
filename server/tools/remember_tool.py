"""The tools `remember` and `forget_memory`: what an agent writes into memory, and takes out of it."""

from datetime import datetime
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from esker.server.core.counts import counted
from esker.server.core.records import Category, Priority, SourcedMemory
from esker.server.core.reports import Receipt
from esker.server.tools.backend import Backend
from esker.server.tools.errors import exact_id, told_to_the_model
from esker.server.usecases.correct import Correction
from esker.server.usecases.remember import MAX_CHARACTERS, Note

_ID_HINT = (
    "Give one id exactly as recall_memory or expand_memory shows it (mem_ or psg_, and 26 characters); nothing is"
    " forgotten by what it says. Call recall_memory to find the id."
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
        project: Annotated[str | None, Field(description="The project that it is about; without it, all.")] = None,
        priority: Annotated[
            Priority | None, Field(description="high for what must not be missed; without it medium.")
        ] = None,
        category: Annotated[Category | None, Field(description="Without it fact.")] = None,
        tags: Annotated[list[str] | None, Field(max_length=64)] = None,
        kind: Annotated[
            Literal["note", "manual"],
            Field(description="manual pins it to the top of every pack: only when the user asks for that."),
        ] = "note",
        session_id: Annotated[str | None, Field(description="Our id (ses_…) of the session it belongs to.")] = None,
        said_at: Annotated[datetime | None, Field(description="When it was said; without it, now.")] = None,
        replaces: Annotated[
            str | None,
            Field(description="The exact id (mem_…) of a memory that this corrects; its project and session stay."),
        ] = None,
    ) -> CallToolResult:
        """Keep something for later sessions of all agents that share this memory.

        Use it when the user asks to remember something, or states a lasting preference, decision or correction. What
        the conversation itself says is observed anyway, so do not write down what you did. Saying the same again
        changes nothing; what corrects an older memory names it in replaces, and that is kept as superseded.
        """
        request = ctx.request_context.request
        if replaces is not None:
            if project or session_id or said_at or kind == "manual":
                raise ToolError("What replaces a memory keeps its project, session and kind, and is said now.")
            correction, exact = Correction(content, priority, category, tags), exact_id(replaces, _ID_HINT)
            with told_to_the_model(_ID_HINT):
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
        with told_to_the_model():
            return _remembered(await backend.remember(request, note))


def _remembered(row: SourcedMemory) -> CallToolResult:
    where = f"project {row.project}" if row.project else "all projects"
    return CallToolResult(
        content=[TextContent(type="text", text=f"Remembered as {row.id}, for {where}.")],
        structured_content={"id": row.id, "content": row.content, "project": row.project, "kind": row.kind},
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
        memory_id: Annotated[str, Field(min_length=1, description="One exact id as it was shown: mem_… or psg_…")],
        messages: Annotated[
            bool, Field(description="Whether the words that it came from go as well; a passage's always do.")
        ] = False,
    ) -> CallToolResult:
        """Delete one memory for good, with everything that says the same or was drawn from it.

        Use it only when the user asks for it, on an id from recall_memory that you have shown them. To correct
        something, use remember with what is right and replaces.
        """
        exact = exact_id(memory_id, _ID_HINT)
        with told_to_the_model(_ID_HINT):
            receipt = await backend.forget(ctx.request_context.request, exact, messages)
        return CallToolResult(
            content=[TextContent(type="text", text=_said(receipt))],
            structured_content={name: getattr(receipt, name) for name in _COUNTED} | {"id": receipt.id},
        )


_COUNTED = {
    "memories": ("memory", "memories"),
    "reflections": ("of them a reflection", "of them reflections"),
    "vectors": ("vector", "vectors"),
    "packs": (
        "pack, which is made anew when it is next asked for",
        "packs, which are made anew when they are next asked for",
    ),
    "messages": ("message, whose words are gone", "messages, whose words are gone"),
    "restored": ("memory came back that had been replaced", "memories came back that had been replaced"),
}
"""What a receipt counts, in words for one and for several."""


def _said(receipt: Receipt) -> str:
    went = [counted(count, *words) for name, words in _COUNTED.items() if (count := getattr(receipt, name))]
    return f"Forgotten: {receipt.id} ({'; '.join(went)})."
