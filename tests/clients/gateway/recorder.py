"""A proxy between the clients and Esker that records each request to the gateway and its answer."""

import http.client
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer

from tests.clients.exchanges import TRIAL, Exchange
from tests.clients.http import Handler

# RFC 9110, 7.6.1: they concern one connection.
_OF_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "content-length")
_PAUSE = 0.2


@dataclass(slots=True)
class Recorder:
    """The address of the proxy, and the exchanges with the gateway in the order in which they began."""

    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list[Exchange])


@contextmanager
def recorder(port: int) -> Generator[Recorder]:
    """Run a proxy to the server at a port of this machine while the block runs."""
    found = Recorder()

    class Recording(_Recording):
        recorded = found
        target = port

    server = ThreadingHTTPServer(("127.0.0.1", 0), Recording)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


class _Recording(Handler):
    recorded: Recorder
    target: int

    def answer(self, exchange: Exchange) -> None:
        """Pass a request on and its answer back."""
        if exchange.path.startswith("/gateway/"):
            self.recorded.exchanges.append(exchange)
            exchange.trial = str(len(self.recorded.exchanges))
        connection = http.client.HTTPConnection("127.0.0.1", self.target)
        try:
            self._send_on(connection, exchange)
            self._send_back(connection, exchange)
        except (OSError, http.client.HTTPException):
            # The client sees the end of the connection, as it would without this proxy.
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            connection.close()

    def _send_on(self, connection: http.client.HTTPConnection, exchange: Exchange) -> None:
        connection.putrequest(exchange.method, exchange.path, skip_host=True, skip_accept_encoding=True)
        for name, value in exchange.headers:
            if name not in _OF_CONNECTION:
                connection.putheader(name, value)
        connection.putheader("Content-Length", str(len(exchange.body)))
        connection.putheader("Connection", "close")
        if exchange.trial:
            connection.putheader(TRIAL, exchange.trial)
        connection.endheaders(exchange.body)

    def _send_back(self, connection: http.client.HTTPConnection, exchange: Exchange) -> None:
        ended = threading.Event()
        watch = threading.Thread(target=self._watch, args=(connection.sock, ended), daemon=True)
        watch.start()
        try:
            answer = connection.getresponse()
            exchange.status = answer.status
            exchange.answer_headers = [(name.lower(), value) for name, value in answer.getheaders()]
            self.send_response_only(answer.status)
            for name, value in exchange.answer_headers:
                if name not in _OF_CONNECTION:
                    self.send_header(name, value)
            self._send_body(answer, exchange)
        finally:
            ended.set()
            watch.join()

    def _send_body(self, answer: http.client.HTTPResponse, exchange: Exchange) -> None:
        if exchange.method == "HEAD":
            self.send_header("Content-Length", answer.headers.get("Content-Length") or "0")
            self.end_headers()
        else:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while data := answer.read1():
                exchange.answer += data
                self.send_chunk(data)
            self.send_chunk(b"")
        exchange.is_whole = True

    def _watch(self, upstream: socket.socket, ended: threading.Event) -> None:
        """Close the connection to the gateway as soon as the client has closed its own."""
        while not ended.is_set():
            if self.client_is_gone(_PAUSE):
                with suppress(OSError):
                    upstream.shutdown(socket.SHUT_RDWR)
                return
