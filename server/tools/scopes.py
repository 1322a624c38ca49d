"""The tools that a key may use: others are not listed, so that no model tries them."""

import asyncio
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.types import ListToolsResult

from esker.server.core.errors import EskerError
from esker.server.tools.backend import Backend

SCOPES = {
    "recall_memory": "read",
    "expand_memory": "read",
    "memory_status": "read",
    "remember": "write",
    "forget_memory": "forget",
}
"""The scope that a tool needs."""
# How long a client waits for its list before it gets all tools.
_SECONDS = 3.0


class ToolsByScope(ServerMiddleware[Any]):
    """Lists the tools that the caller's key may use; all of them if the server cannot be asked."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and shorten the list of tools."""
        result = await call_next(ctx)
        if ctx.method != "tools/list" or result is None:
            return result
        try:
            async with asyncio.timeout(_SECONDS):
                scopes = await self._backend.scopes(ctx.request)
        except (EskerError, TimeoutError):
            return result
        if isinstance(result, dict):
            return result | {"tools": [tool for tool in result["tools"] if SCOPES[tool["name"]] in scopes]}
        listed = cast("ListToolsResult", result).tools
        return result.model_copy(update={"tools": [tool for tool in listed if SCOPES[tool.name] in scopes]})
