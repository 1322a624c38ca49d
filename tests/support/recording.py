"""Requests on the wire: a proxy between a client and Esker that records every request."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.support.waiting import PATIENCE


class Recorder:
    """Every request that passed, and an action between Esker's answer and its delivery to the client."""

    def __init__(self, url: str) -> None:
        self.requests: list[tuple[str, str, str]] = []
        self.messages: list[list[dict[str, Any]]] = []
        self.after_messages: Callable[[], None] = lambda: None
        self.url = ""
        self._there = urlsplit(url)

    def pass_on(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """Ask Esker and return its answer."""
        self.requests.append((method, path, body.decode()))
        connection = HTTPConnection(self._there.hostname or "", self._there.port, timeout=PATIENCE)
        connection.request(method, path, body or None, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        status, text = answer.status, answer.read()
        connection.close()
        if path.endswith("/messages") and method == "POST":
            self.messages.append(json.loads(body)["messages"])
            self.after_messages()
        return status, text

    def sent(self) -> list[str]:
        """Return the external ids of all messages that were sent, in order."""
        return [message["external_id"] for batch in self.messages for message in batch]


@contextmanager
def recording(url: str) -> Generator[Recorder]:
    """Proxy the server at `url` while the block runs; clients use the `url` of the recorder."""
    recorder = Recorder(url)

    class PassingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = recorder.pass_on(self.command, self.path, body)
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
            except OSError:
                self.close_connection = True  # the client is gone

        do_GET = do_POST = _pass_on  # noqa: N815 - the names that http.server looks for

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), PassingHandler) as server:
        server.daemon_threads = True
        recorder.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield recorder
        finally:
            server.shutdown()
            thread.join()
