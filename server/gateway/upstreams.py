"""Sending requests to the providers that the settings name, and to no others."""

import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache

import httpx2

from esker.server.core.errors import InvalidInput, NotFound, Unavailable
from esker.server.gateway.encodings import accepted

Header = tuple[bytes, bytes]

_CONNECT_SECONDS = 10.0
_KEPT_CONNECTIONS = 64
_MOST_CLOSED = 2
"""Maximum kept connections that a request finds closed; behind a restarted provider, all of them are."""
_CLOSED = (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError)
# RFC 9110, 7.6.1: they concern one connection.
_OF_CONNECTION = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    " upgrade".split()
)
# They are written anew, or say who is behind a proxy in front of Esker.
_NOT_SENT_ON = frozenset({"host", "content-length", "expect", "forwarded", "via", "x-real-ip"})
_PREFIXES_NOT_SENT_ON = ("x-esker-", "x-forwarded-")
_NOT_SENT_BACK = frozenset({"date"})


class Upstreams:
    """The providers by name, and the connections to them."""

    def __init__(self, addresses: Mapping[str, str]) -> None:
        """`addresses` have no slash at their end."""
        self._addresses = addresses
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=_KEPT_CONNECTIONS)
        # A model may think for many minutes; the client gives up when it wants to.
        timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
        self._http = httpx2.AsyncClient(
            verify=_trusted(), limits=limits, timeout=timeout, trust_env=False, follow_redirects=False
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    def address(self, name: str, path: str, query: bytes) -> str:
        """Return the address of a path at a provider. Raises NotFound for a provider that is not named."""
        if name not in self._addresses:
            known = ", ".join(sorted(self._addresses))
            raise NotFound(
                f"The gateway knows no provider {name[:40]!r}; it knows {known}.",
                hint="ESKER_GATEWAY_UPSTREAMS adds providers.",
            )
        question = f"?{query.decode('latin-1')}" if query else ""
        return f"{self._addresses[name]}/{path}{question}"

    @asynccontextmanager
    async def sent(
        self, method: str, address: str, headers: Sequence[Header], body: bytes
    ) -> AsyncGenerator[httpx2.Response]:
        """Send a request; the answer's bytes are read with `aiter_raw`.

        Raises Unavailable if the provider does not answer, and InvalidInput for an address that cannot be written.
        """
        try:
            answer = await self._answered(method, address, headers, body)
        except httpx2.InvalidURL as error:
            raise InvalidInput(f"The gateway cannot send a request to this address: {error}.") from error
        except httpx2.TransportError as error:
            reason = str(error).rstrip(".") or type(error).__name__
            raise Unavailable(f"The gateway got no answer from {httpx2.URL(address).host}: {reason}.") from error
        try:
            yield answer
        finally:
            await answer.aclose()

    async def _answered(self, method: str, address: str, headers: Sequence[Header], body: bytes) -> httpx2.Response:
        """Return the beginning of an answer.

        A request to which nothing comes on a kept connection is sent again: the provider closed that connection, which
        it may do at any time, and has not read the request.
        """
        for closed_before in range(_MOST_CLOSED + 1):
            opened: list[str] = []

            async def note(event: str, _: Mapping[str, object], opened: list[str] = opened) -> None:
                if event == "connection.connect_tcp.started":
                    opened.append(event)

            # Not by the client's methods, which would add headers of their own.
            request = httpx2.Request(method, address, headers=[*headers], content=body, extensions={"trace": note})
            try:
                return await self._http.send(request, stream=True)
            except _CLOSED:
                if opened or closed_before == _MOST_CLOSED:
                    raise
        raise AssertionError("the last try has returned or raised")


@cache
def _trusted() -> ssl.SSLContext:
    """Return the certificates of the system by which providers prove who they are; reading them takes 25 ms."""
    return httpx2.create_ssl_context(trust_env=False)


def sent_on(headers: Sequence[Header], *, is_rewritten: bool, is_spliced: bool = False) -> list[Header]:
    """Return the headers that a provider gets. A body that was rewritten is no longer compressed.

    An answer that is spliced with others must not be compressed either, and is not one of a single request.
    """
    named = _named_by_connection(headers)
    kept: list[Header] = []
    for name, value in headers:
        lower = name.decode("latin-1").lower()
        if lower in _OF_CONNECTION or lower in _NOT_SENT_ON or lower in named:
            continue
        if lower.startswith(_PREFIXES_NOT_SENT_ON) or (is_rewritten and lower == "content-encoding"):
            continue
        if lower == "idempotency-key" and is_spliced:
            continue
        if lower == "accept-encoding":
            value = b"identity" if is_spliced else accepted(value.decode("latin-1")).encode()
        kept.append((name, value))
    return kept


def sent_back(headers: Sequence[Header]) -> list[Header]:
    """Return the headers of a provider's answer that the client gets."""
    named = _named_by_connection(headers)
    dropped = _OF_CONNECTION | _NOT_SENT_BACK | named
    return [(name.lower(), value) for name, value in headers if name.decode("latin-1").lower() not in dropped]


def _named_by_connection(headers: Sequence[Header]) -> frozenset[str]:
    """Return the headers that the Connection header says to concern one connection."""
    values = [value.decode("latin-1").lower() for name, value in headers if name.lower() == b"connection"]
    return frozenset(each.strip() for value in values for each in value.split(","))
