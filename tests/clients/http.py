"""Handling of HTTP for the recorder and the scripted model: whole requests, and the end of a client."""

import select
import socket
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.clients.exchanges import TRIAL, Exchange, Headers


class Handler(BaseHTTPRequestHandler):
    """Reads requests of HTTP/1.1 and sends answers in chunks."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Write nothing."""

    def do_GET(self) -> None:
        """Answer a GET request."""
        self.answer(self._received())

    def do_HEAD(self) -> None:
        """Answer a HEAD request."""
        self.answer(self._received())

    def do_POST(self) -> None:
        """Answer a POST request."""
        self.answer(self._received())

    def do_DELETE(self) -> None:
        """Answer a DELETE request."""
        self.answer(self._received())

    def answer(self, exchange: Exchange) -> None:
        """Answer a request."""
        raise NotImplementedError

    def _received(self) -> Exchange:
        headers: Headers = [(name.lower(), value) for name, value in self.headers.items()]
        known = next((value for name, value in headers if name == TRIAL), "")
        headers = [(name, value) for name, value in headers if name != TRIAL]
        return Exchange(known, self.command, self.path, headers, self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        raw = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def send_chunk(self, data: bytes) -> None:
        """Send a part of an answer; an empty one is its end."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def client_is_gone(self, seconds: float) -> bool:
        """Wait for `seconds` at most, and return whether the client has closed the connection."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True
