"""The tools that a caller needs and its key may use: others are not listed, so that no model tries them."""

import asyncio
from typing import Any, cast

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.types import ListToolsResult
from starlette.requests import Request

from esker.server.core.errors import EskerError
from esker.server.tools.backend import Backend
from esker.server.tools.briefing_tool import BRIEFING

SCOPES = {
    "recall_memory": "read",
    "expand_memory": "read",
    "memory_status": "read",
    BRIEFING: "read",
    "remember": "write",
    "forget_memory": "forget",
}
"""The scope that a tool needs."""
# The address that the installer gives to clients with hooks has this; their hooks bring what a session starts with.
_HOOKS = ("hooks", "yes")
# How long a client waits for its list before it gets all tools.
_SECONDS = 3.0


class NeededTools(ServerMiddleware[Any]):
    """Lists the tools that the caller needs and its key may use; if the server cannot be asked, those of any key."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and shorten the list of tools."""
        result = await call_next(ctx)
        if ctx.method != "tools/list" or result is None:
            return result
        needed = set(SCOPES) - ({BRIEFING} if _has_hooks(ctx.request) else set())
        try:
            async with asyncio.timeout(_SECONDS):
                scopes = await self._backend.scopes(ctx.request)
            needed = {name for name in needed if SCOPES[name] in scopes}
        except (EskerError, TimeoutError):
            pass  # a client must get its list of tools in any case
        if isinstance(result, dict):
            return result | {"tools": [tool for tool in result["tools"] if tool["name"] in needed]}
        listed = cast("ListToolsResult", result).tools
        return result.model_copy(update={"tools": [tool for tool in listed if tool.name in needed]})


def _has_hooks(request: Any) -> bool:
    """Return whether the caller's address says that its hooks work; a request on stdio has no address."""
    name, value = _HOOKS
    return isinstance(request, Request) and request.query_params.get(name) == value
