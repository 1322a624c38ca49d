"""Access control: checks every request before any route, so that a new route is closed by default.

It refuses, in this order: a foreign Host (a page of another site that resolves to this server), a foreign Origin, a
body over the limit, an address with a NUL, and a missing or insufficient key. Only the health checks need no key.
"""

import ipaddress
import re
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server.core.errors import EskerError, Forbidden, TooLarge, Unauthorized
from esker.server.core.records import Principal
from esker.server.rest.problems import ProblemResponse, problem, problem_of

OPEN_PATHS = frozenset({"/livez", "/readyz"})
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
# POSTs that only read; MCP tools that write check the key's scope themselves.
_READING_POSTS = re.compile(r"/v1/recall|/mcp|/v1/sessions/[^/]+/context")


Authenticate = Callable[[str | None], Awaitable[Principal]]


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """ASGI middleware that passes a request on with `scope["state"]["principal"]` set, or refuses it."""

    def __init__(
        self, app: ASGIApp, authenticate: Authenticate, hosts: frozenset[str] | None, max_body_bytes: int
    ) -> None:
        """`hosts` are the accepted Host names; None accepts any."""
        self._app = app
        self._authenticate = authenticate
        self._hosts = hosts
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if refused := self._foreign_address(headers):
            await refused(scope, receive, send)
            return
        if int(headers.get("content-length") or 0) > self._max_body_bytes:
            await problem_of(self._too_large())(scope, receive, send)
            return
        if "\0" in scope["path"] or b"%00" in scope["query_string"]:
            await problem(404, "The address contains a NUL.")(scope, receive, send)
            return
        if scope["path"] not in OPEN_PATHS:
            try:
                principal = await self._authenticate(_bearer(headers))
                _check_scope(principal, scope["method"], scope["path"])
            except EskerError as error:
                await problem_of(error)(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, self._limited(receive), send)

    def _limited(self, receive: Receive) -> Receive:
        """Return a `receive` that counts bytes, for bodies without a length. It raises TooLarge in the reader."""
        read = 0

        async def count() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._max_body_bytes:
                raise self._too_large()
            return message

        return count

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The body is larger than {self._max_body_bytes:,} bytes; nothing was changed.")

    def _foreign_address(self, headers: Headers) -> ProblemResponse | None:
        """Return the answer to a foreign Host or a foreign Origin."""
        host = headers.get("host", "")
        if self._hosts is not None and _host_name(host) not in self._hosts:
            hint = "If this is a name of the server, add it to ESKER_ALLOWED_HOSTS."
            return problem(421, "This server does not accept that Host name.", hint=hint)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            hint = "Call it from a program, or from a page of this server."
            return problem(403, "Pages of other sites may not use this server.", hint=hint)
        return None


def hosts_for(listen: str, allowed: tuple[str, ...]) -> frozenset[str] | None:
    """Return the accepted Host names: the configured ones, else loopback names on loopback, else None (any)."""
    if allowed:
        return frozenset(name.lower() for name in allowed)
    return _LOOPBACK_NAMES | {listen.lower()} if is_loopback(listen) else None


def _host_name(host: str) -> str:
    """Return a Host header without its port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _bearer(headers: Headers) -> str | None:
    given = headers.get("authorization")
    if given is None:
        return None
    kind, _, key = given.partition(" ")
    if kind.lower() != "bearer" or not key.strip():
        raise Unauthorized("The Authorization header must be 'Bearer <key>'.")
    return key.strip()


def _check_scope(principal: Principal, method: str, path: str) -> None:
    reading = method in ("GET", "HEAD", "OPTIONS") or _READING_POSTS.fullmatch(path) is not None
    needed = "read" if reading else "write"
    if needed not in principal.scopes:
        hint = f"`esker key create NAME --pool {principal.pool_name} --scopes read,write` creates one that does."
        raise Forbidden(f"This key does not have the scope '{needed}'.", hint=hint)
