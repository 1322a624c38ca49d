"""What stands between the wire and the MCP library, which refuses what clients do send."""

import asyncio
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server.core.errors import EskerError, TooLarge
from esker.server.core.json_input import clean_document
from esker.server.core.jsonrpc import refusal
from esker.server.rest.problems import problem, problem_of

PATH = "/mcp"
_MOST_BYTES = 1024 * 1024
# Below this a call is parsed faster than a thread starts.
_SMALL = 64 * 1024


class McpRoute:
    """ASGI middleware for the tools: it cleans the JSON, and keeps no stream open that nothing will ever be sent on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, cleaned, or answer it."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
        elif scope["method"] != "POST":
            refused = problem(405, "Every call is a POST and is answered at once; there is no stream to listen to.")
            refused.headers["Allow"] = "POST"
            await refused(scope, receive, send)
        else:
            await self._call(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _body(receive)
        except EskerError as error:
            await problem_of(error)(scope, receive, send)
            return
        body, refused = _looked_at(body) if len(body) < _SMALL else await asyncio.to_thread(_looked_at, body)
        if refused is not None:
            await JSONResponse(refused, 400)(scope, receive, send)
            return
        kept = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        scope["headers"] = [*kept, (b"content-length", str(len(body)).encode())]
        given = False

        async def give() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, give, send)


def _looked_at(body: bytes) -> tuple[bytes, dict[str, Any] | None]:
    """Return a body cleaned, and the answer to one that is no message."""
    return clean_document(body), refusal(body)


async def _body(receive: Receive) -> bytes:
    """Return the body of a call. Raises TooLarge."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MOST_BYTES:
            raise TooLarge(f"A call of a tool has at most {_MOST_BYTES:,} bytes.")
        if not message.get("more_body"):
            return bytes(body)
