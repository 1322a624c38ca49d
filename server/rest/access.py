"""Access control: checks every request before any route, so that a new route is closed by default.

It refuses, in this order: a foreign Host (a page of another site that resolves to this server), a foreign Origin, a
body over the limit, an address with a NUL, too many requests, and a missing, insufficient or bound key. Only the
health checks and the way to sign in to the page need no key. `docs/decisions/local-access.md` says when the owner
server needs none.
"""

import asyncio
import hashlib
import hmac
import ipaddress
import re
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError, TooLarge, TooSlow, Unauthorized, Unavailable, UnknownKey
from esker.server.core.records import Principal
from esker.server.rest.admission import GATEWAY, NOT_COUNTED, too_many
from esker.server.rest.bound_keys import check_binding
from esker.server.rest.limits import Limits
from esker.server.rest.peers import Peer
from esker.server.rest.problems import ProblemResponse, problem, problem_of
from esker.server.usecases.authenticate import check_scope

_METRICS = "/metrics"
_GATEWAY_KEY = "x-esker-key"
"""The header for Esker's key in a request to a model, whose other headers are for the provider."""
_MOST_WATCHERS = 100
OPEN_PATHS = frozenset({"/livez", "/readyz"})
COOKIE = "esker_key"
"""The cookie in which a browser keeps the key for the page. Nothing but the page accepts it."""
_PAGE = re.compile(r"/|/docs|/ui(?:/.*)?")
# Signing in, and the documentation, which is the same for everyone.
_FOR_EVERYONE = re.compile(r"/ui/(?:log(?:in|out)|link/[^/]+|static/[^/]+)|/help(?:/.*)?")
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
# POSTs that only read; MCP tools that write check the key's scope themselves.
_READING_POSTS = re.compile(r"/v1/recall|/mcp|/v1/sessions/[^/]+/context|/v1/login-links")
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_FORGETTING = re.compile(r"/v1/(?:forget|quarantines|retention)|/ui/(?:memories/[^/]+|bulk)/forget")
# It searches every text, and answers whether some words are stored.
_PROOF = re.compile(r"/v1/forget/[^/]+")
# Only a person who runs a pool says what is a person's word.
_OF_OPERATORS = re.compile(r"/v1/audit|/(?:v1|ui)/memories/[^/]+/confirm|/ui/bulk/confirm")
# Headers of proxies: such a request may come from anywhere.
_FORWARDED = re.compile(r"forwarded|via|x-real-ip|x-forwarded-.*")

_BODY_SECONDS = 30.0
"""Seconds that a body may take however small it is; a larger one may take longer, as long as it keeps coming."""
_BODY_BYTES_PER_SECOND = 16 * 1024
_SILENT_SECONDS = 10.0
"""Seconds after which the rest of a body is no longer waited for, if nothing comes."""


class Authenticate(Protocol):
    """Returns the caller; `is_owner` says that it is the user who runs the server. Raises EskerError."""

    async def __call__(self, key: str | None, *, is_owner: bool) -> Principal:
        """Return the caller."""
        ...


class Refuse(Protocol):
    """Returns the answer to a request that is refused."""

    def __call__(self, scope: Scope, error: EskerError) -> Response:
        """Return the answer."""
        ...


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached only from this machine."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Access:
    """ASGI middleware that passes a request on with `scope["state"]["principal"]` set, or refuses it."""

    def __init__(
        self,
        app: ASGIApp,
        authenticate: Authenticate,
        settings: Settings,
        local_token: str | None,
        refuse_page: Refuse,
    ) -> None:
        """`local_token` is the owner's; None if there is none. `refuse_page` answers what a browser may not see."""
        self._app = app
        self._authenticate = authenticate
        self._refuse_page = refuse_page
        self._hosts = hosts_for(settings.host, settings.allowed_hosts)
        self._max_body_bytes = settings.max_body_bytes
        self._checked, self._most_checked = 0, settings.requests_at_work + settings.requests_waiting
        self._trusted_proxies = settings.trusted_proxies
        self._limits = Limits.of(settings)
        self._local_token = local_token
        # Callers, by a hash of their key, that are served while the database is away: for metrics, and for models.
        self._watchers: OrderedDict[bytes, Principal] = OrderedDict()

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
        if not is_open(scope["path"]):
            try:
                with self._checking(scope["path"]):
                    principal = await self._known_principal(scope, headers)
                check_scope(principal, needed_scope(scope["method"], scope["path"]))
                check_binding(principal, scope["method"], scope["path"])
            except EskerError as error:
                is_page = _PAGE.fullmatch(scope["path"])
                refusal = self._refuse_page(scope, error) if is_page else problem_of(error)
                await refusal(scope, receive, send)
                return
            scope.setdefault("state", {})["principal"] = principal
        await self._app(scope, self._limited(receive), send)

    async def _known_principal(self, scope: Scope, headers: Headers) -> Principal:
        """Return the caller as `_principal` does; for metrics and models also while the database is away."""
        if scope["path"] != _METRICS and not scope["path"].startswith(GATEWAY):
            return await self._principal(scope, headers)
        header = "authorization" if scope["path"] == _METRICS else _GATEWAY_KEY
        given = headers.get(header) or ""
        watcher = hashlib.sha256(f"{header} {given}".encode()).digest()
        try:
            principal = await self._principal(scope, headers)
        except Unavailable:
            if watcher in self._watchers and (given or await self._is_owner(scope, headers, None)):
                return self._watchers[watcher]
            raise
        except EskerError:
            self._watchers.pop(watcher, None)
            raise
        self._watchers[watcher] = principal
        if len(self._watchers) > _MOST_WATCHERS:
            self._watchers.popitem(last=False)
        return principal

    @contextmanager
    def _checking(self, path: str) -> Generator[None]:
        """Count a request whose key is checked, which takes a connection. Raises TooManyRequests for one too many.

        Keys share the server fairly only after this check: until then, a caller could invent a key for each request.
        """
        if self._checked >= self._most_checked and path not in NOT_COUNTED:
            raise too_many()
        self._checked += 1
        try:
            yield
        finally:
            self._checked -= 1

    async def _principal(self, scope: Scope, headers: Headers) -> Principal:
        """Return the caller of a request, which is counted unless the owner makes it. Raises EskerError.

        A request with a valid key counts for the key, every other one for its address.
        """
        key = _key(scope, headers)
        if await self._is_owner(scope, headers, key):
            return await self._authenticate(key, is_owner=True)
        if key is None:
            self._limits.addresses.take(self._address(scope, headers), "Too many requests came from this address.")
            return await self._authenticate(None, is_owner=False)
        try:
            principal = await self._authenticate(key, is_owner=False)
        except UnknownKey:
            self._count_wrong_key(self._address(scope, headers))
            raise
        self._limits.keys.take(principal.actor, "Too many requests came with this key.")
        return principal

    def _count_wrong_key(self, address: str) -> None:
        """Count a key after its lookup, so that guessing does not shut out callers with a valid key at that address."""
        self._limits.addresses.take(address, "Too many requests came from this address.")
        self._limits.wrong_keys.take(address, "Too many wrong keys came from this address.")

    async def _is_owner(self, scope: Scope, headers: Headers, key: str | None) -> bool:
        """Return whether the user who runs the server makes a request, by the local token or by its connection."""
        if key is not None:
            return self._local_token is not None and hmac.compare_digest(key.encode(), self._local_token.encode())
        peer: Peer | None = scope.get("state", {}).get("peer")
        return peer is not None and not any(map(_FORWARDED.fullmatch, headers)) and await peer.is_owner()

    def _address(self, scope: Scope, headers: Headers) -> str:
        """Return the address that a request comes from, as limits count it.

        A proxy adds an address to the end of the header, or a header after those that the client sent.
        """
        address: str = (scope.get("client") or ("unknown",))[0]
        for forwarded in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
            if not self._is_trusted(address) or not forwarded.strip():
                break
            address = forwarded.strip()
        return _network(address)

    def _is_trusted(self, address: str) -> bool:
        parsed = _parsed(address)
        return parsed is not None and any(parsed in network for network in self._trusted_proxies)

    def _limited(self, receive: Receive) -> Receive:
        """Return a `receive` that counts bytes and time. It raises TooLarge and TooSlow in the reader."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        read, has_more = 0, True

        async def count() -> Message:
            nonlocal read, has_more
            if not has_more:
                return await receive()
            latest = began + _BODY_SECONDS + read / _BODY_BYTES_PER_SECOND
            try:
                async with asyncio.timeout_at(min(latest, loop.time() + _SILENT_SECONDS)):
                    message = await receive()
            except TimeoutError as error:
                raise TooSlow from error
            has_more = message.get("more_body", False)
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


def _key(scope: Scope, headers: Headers) -> str | None:
    """Return the key of a request. Raises Unauthorized for an Authorization header that is not one."""
    if scope["path"].startswith(GATEWAY):
        return headers.get(_GATEWAY_KEY)
    return _bearer(headers) or (_cookie(scope) if _PAGE.fullmatch(scope["path"]) else None)


def _cookie(scope: Scope) -> str | None:
    """Return the key that the browser keeps for the page."""
    return HTTPConnection(scope).cookies.get(COOKIE)


def is_open(path: str) -> bool:
    """Return whether a path needs no key."""
    return path in OPEN_PATHS or _FOR_EVERYONE.fullmatch(path) is not None


def _network(address: str) -> str:
    """Return an address; of an IPv6 one its network, since one machine has billions of them."""
    parsed = _parsed(address)
    if parsed is None:
        return address
    return str(ipaddress.ip_network((parsed, 64), strict=False)) if parsed.version == 6 else str(parsed)


def _parsed(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address; an IPv4 one that a socket for both families writes as IPv6 (`::ffff:…`) is IPv4 again."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return (parsed.ipv4_mapped or parsed) if parsed.version == 6 else parsed


def needed_scope(method: str, path: str) -> str:
    """Return the scope that a request needs."""
    if _OF_OPERATORS.fullmatch(path):
        return "admin"
    if _PROOF.fullmatch(path):
        return "forget"
    if method in _READING or _READING_POSTS.fullmatch(path):
        return "read"
    return "forget" if method == "DELETE" or _FORGETTING.fullmatch(path) else "write"
