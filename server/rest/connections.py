"""HTTP connections: who is at the other end, and how long a request may take to arrive, and an answer to leave."""

import asyncio
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from esker.server.rest.peers import Peer

HEADER_SECONDS = 15.0
"""Seconds from the opening of a connection, or from the first byte of a later request, to the end of its headers."""

SEND_SECONDS = 30.0
"""Seconds in which a client must take the next 64 KiB of an answer."""


def server_config(app: ASGIApp, **settings: Any) -> uvicorn.Config:
    """Return the configuration of an HTTP server whose requests have `scope["state"]["peer"]`.

    Addresses are those of the connections: a header could claim any other.
    """
    return uvicorn.Config(
        app, http=TimedConnection, ws="none", log_config=None, proxy_headers=False, server_header=False, **settings
    )


class TimedConnection(H11Protocol):
    """A connection that is closed if a request's headers do not arrive in time, or if its answer is not read.

    Bodies are timed by `Access`.
    """

    _waiting: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        if self.client and self.server and self.server[1] is not None:
            self.app_state = {**self.app_state, "peer": Peer(self.client, (self.server[0], self.server[1]))}
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        cycle = self.cycle
        is_between = not cycle or cycle.response_complete
        if is_between and self._waiting is None:
            self._wait_for_headers()
        super().data_received(data)
        if self.cycle is not cycle:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        self._stop_sending()
        super().connection_lost(exc)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: Codex asks for a WebSocket first, and the answer says that there is none."""

    def pause_writing(self) -> None:
        """Give the client a time in which it must read."""
        super().pause_writing()
        self._sending = self._sending or self.loop.call_later(SEND_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Send more of the answer."""
        self._stop_sending()
        super().resume_writing()

    def _stop_sending(self) -> None:
        if self._sending:
            self._sending.cancel()
            self._sending = None

    def _wait_for_headers(self) -> None:
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.cycle or self.cycle.response_complete:
            self.transport.abort()
