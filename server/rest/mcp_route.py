"""What stands between the wire and the MCP library, which refuses what clients do send."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.core.errors import EskerError
from server.core.json_input import clean_document
from server.rest.problems import problem, problem_of

PATH = "/mcp"


class McpRoute:
    """ASGI middleware for the tools: it cleans the JSON, and keeps no stream open that nothing will ever be sent on."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, cleaned, or answer it."""
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
        elif scope["method"] == "GET":
            refused = problem(405, "Every call is answered at once; there is no stream to listen to.")
            refused.headers["Allow"] = "POST"
            await refused(scope, receive, send)
        else:
            await self._call(scope, receive, send)

    async def _call(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = clean_document(await _body(receive))
        except EskerError as error:
            await problem_of(error)(scope, receive, send)
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


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)
