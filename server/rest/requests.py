"""The outer edge of every request: its id, the answer to a fault, and the answer when the server stops."""

import asyncio
import logging
import re
import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server.core.config.logs import LOG_IDS
from esker.server.core.tracing import Attribute, Span, span
from esker.server.rest.problems import problem

log = logging.getLogger(__name__)

HEADER = "x-request-id"
"""The header of every answer. A request may carry it, too: its id is then kept."""
_GIVEN = re.compile(r"[A-Za-z0-9._:-]{1,64}")
# The readiness check logs its changes itself, so its answers are not logged here.
_UNLOGGED = frozenset({"/readyz"})


class Requests:
    """ASGI middleware that gives each request an id, and answers it even if the app behind it fails.

    The id is in `scope["state"]["request_id"]`, in the answer's header, in problem documents and in the log.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. A fault is answered with 500, and a request that the stopping server ends with 503."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["request_id"] = request_id = _id_of(scope)
        # Each request has its own task, so the context variable ends with the request.
        LOG_IDS.set({"request": request_id})
        about: dict[str, Attribute] = {"http.request.method": scope["method"], "esker.request_id": request_id}
        with span(scope["method"], "SERVER", about) as opened:
            await self._answered(scope, receive, send, opened)

    async def _answered(self, scope: Scope, receive: Receive, send: Send, opened: Span) -> None:
        has_started = False

        async def tagged(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                # A model's answer has the id that its provider gave it.
                MutableHeaders(scope=message).setdefault(HEADER, scope["state"]["request_id"])
                _trace(scope, message["status"], opened)
                _log(scope, message["status"])
            await send(message)

        try:
            await self._app(scope, receive, tagged)
        except asyncio.CancelledError:
            if has_started:
                raise
            stopping = problem(503, "The server is stopping; the request was not completed.", hint="Send it again.")
            await stopping(scope, receive, tagged)
        except Exception:
            if has_started:
                raise  # the connection is closed and the error logged
            log.exception("%s %s failed", scope["method"], scope["path"])
            failed = problem(500, "An internal error occurred in Esker; the server's log has the details.")
            await failed(scope, receive, tagged)


def _id_of(scope: Scope) -> str:
    given = Headers(scope=scope).get(HEADER, "")
    return given if _GIVEN.fullmatch(given) else f"req_{secrets.token_hex(12)}"


def _trace(scope: Scope, status: int, opened: Span) -> None:
    """Put the answer into the span of a request, which is named by the route, since a path has ids."""
    if route := getattr(scope.get("route"), "path", None):
        opened.rename(f"{scope['method']} {route}")
        opened.set({"http.route": route})
    opened.set({"http.response.status_code": status})
    if status >= 500:
        opened.fail(str(status))


def _log(scope: Scope, status: int) -> None:
    """Log an answer that says that the server or a part of it has failed; the reason is in its problem document."""
    if status >= 500 and scope["path"] not in _UNLOGGED:
        reason = scope["state"].get("problem", "no reason was given")
        log.warning("%s %s was answered with %d: %s", scope["method"], scope["path"], status, reason)
