"""The scripted model over HTTP, in a thread of this process."""

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from tests.clients.model import chat, gemini, messages, responses
from tests.clients.model.script import Said

_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []}


@dataclass(slots=True)
class ModelAsked:
    """The address of the model, the requests that it has answered, and what it said."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    said: list[Said] = field(default_factory=list[Said])

    def texts_since(self, count: int) -> list[str]:
        """Return the requests after the first `count`, each as one text without JSON's escapes of quotes and lines."""
        return ["\n".join(_strings(body)) for body in self.bodies[count:]]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _strings(each)


@contextmanager
def scripted_model() -> Generator[ModelAsked]:
    """Run the model while the block runs."""
    asked = ModelAsked()

    class Handler(_Handler):
        model = asked

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    asked.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield asked
    finally:
        server.shutdown()
        server.server_close()


def _protocol(path: str) -> ModuleType | None:
    if path.endswith("/messages"):
        return messages
    if path.endswith("/responses"):
        return responses
    if path.endswith("/chat/completions"):
        return chat
    return gemini if path.lower().endswith("generatecontent") else None


class _Handler(BaseHTTPRequestHandler):
    model: ModelAsked
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Write nothing."""

    def do_GET(self) -> None:
        """Answer a question for models."""
        self._json(200, _MODELS)

    def do_HEAD(self) -> None:
        """Answer that the model is there."""
        self._json(200, None)

    def do_POST(self) -> None:
        """Answer a request in the protocol of its path."""
        raw = self._body()
        body: dict[str, Any] = json.loads(raw or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            return self._json(200, {"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        protocol = _protocol(path)
        if protocol is None:
            return self._json(404, {"error": {"type": "not_found_error", "message": path}})
        self.model.bodies.append(body)
        said: Said = protocol.answer(body)
        self.model.said.append(said)
        number = len(self.model.bodies)
        if body.get("stream") or "stream" in path:
            return self._stream(protocol.events(said, body, number), ends=protocol is chat)
        return self._json(200, protocol.whole(said, body, number))

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        raw = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw

    def _json(self, status: int, value: Any) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[tuple[str, Any]], *, ends: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, value in events:
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {json.dumps(value)}\n\n".encode())
        if ends:
            self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True
