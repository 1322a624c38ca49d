"""A filter before the MCP library: it cleans and limits bodies, and answers requests that the library mishandles."""

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
# Bytes up to which parsing takes less time than starting a thread.
_SMALL = 64 * 1024


class McpRoute:
    """ASGI middleware for the tools: it cleans the JSON, and refuses GET, whose stream would stay empty."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a cleaned request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
        elif scope["method"] != "POST":
            refused = problem(405, "Use POST: every call is answered at once, and there is no stream to listen to.")
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
        body, refused = _cleaned(body) if len(body) < _SMALL else await asyncio.to_thread(_cleaned, body)
        if refused is not None:
            await JSONResponse(refused, 400)(scope, receive, send)
            return
        headers = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
        scope["headers"] = [*headers, (b"content-length", str(len(body)).encode())]
        delivered = False

        async def deliver() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, deliver, send)


def _cleaned(body: bytes) -> tuple[bytes, dict[str, Any] | None]:
    """Return a cleaned body, and the refusal if it is not a JSON-RPC message."""
    return clean_document(body), refusal(body)


async def _body(receive: Receive) -> bytes:
    """Return the body of a call. Raises TooLarge."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MOST_BYTES:
            raise TooLarge(f"A call must have at most {_MOST_BYTES:,} bytes.")
        if not message.get("more_body"):
            return bytes(body)
