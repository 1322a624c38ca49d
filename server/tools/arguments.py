"""Arguments that a tool does not have are refused: a misspelt filter would be no filter."""

from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, TextContent


class KnownArguments(ServerMiddleware[Any]):
    """Answers a call that has an unknown argument with an error that names those that there are."""

    def __init__(self, mcp: MCPServer[Any]) -> None:
        self._mcp = mcp

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, or answer it."""
        params = ctx.params or {}
        given = params.get("arguments")
        if ctx.method == "tools/call" and isinstance(given, dict):
            known = await self._known(params.get("name"))
            names = cast("dict[str, Any]", given).keys()
            if known is not None and (unknown := sorted(names - known)):
                text = f"There is no argument {unknown[0][:80]!r}; there are {', '.join(sorted(known)) or 'none'}."
                return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
        return await call_next(ctx)

    async def _known(self, name: object) -> set[str] | None:
        tool = next((tool for tool in await self._mcp.list_tools() if tool.name == name), None)
        return set(tool.input_schema.get("properties", {})) if tool else None
