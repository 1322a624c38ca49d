"""The scripted model over HTTP, in a thread of this process."""

import json
import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from types import ModuleType
from typing import Any

from tests.clients.exchanges import Exchange
from tests.clients.http import Handler
from tests.clients.model import chat, gemini, messages, responses
from tests.clients.model.script import Said

# Requests with this word and with tools, as those of a conversation have, get the failures that are waiting.
_STUMBLES, _TOOLS = b"STUMBLE", b'"tools"'
# Seconds for which a model that was told to stop waits for its client to go.
_HELD_SECONDS = 60
# The error of each protocol for a status: the type and the words of the Messages API, and the status of Gemini's.
_FAILURES = {
    401: ("authentication_error", "invalid x-api-key", "UNAUTHENTICATED"),
    429: ("rate_limit_error", "This request would exceed your rate limit.", "RESOURCE_EXHAUSTED"),
}
_MODELS = {"object": "list", "data": [{"id": "scripted", "object": "model"}], "models": []}


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is an error; with the status 200 an answer that is cut off in the middle."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class ModelAsked:
    """The address of the model, the requests that it has answered, and what it said.

    `exchanges` are all requests as they came. `failures` are given one by one to requests of a conversation that say
    STUMBLE, and `refuses` to every request. The model sets `holds` when it has stopped in the middle of an answer, and
    `let_go` when the client then went away.
    """

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    said: list[Said] = field(default_factory=list[Said])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    failures: list[Failure] = field(default_factory=list[Failure])
    refuses: Failure | None = None
    holds: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

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

    class Asked(_Handler):
        model = asked

    server = ThreadingHTTPServer(("127.0.0.1", 0), Asked)
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


class _Handler(Handler):
    model: ModelAsked
    exchange: Exchange

    def answer(self, exchange: Exchange) -> None:
        """Answer a question for models, or a request in the protocol of its path."""
        self.exchange = exchange
        self.model.exchanges.append(exchange)
        if exchange.method != "POST":
            return self._json(200, None if exchange.method == "HEAD" else _MODELS)
        raw = exchange.body
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            return self._json(200, {"input_tokens": len(raw) // 4, "totalTokens": len(raw) // 4})
        protocol = _protocol(path)
        if protocol is None:
            return self._json(404, {"error": {"type": "not_found_error", "message": path}})
        stumbles = self.model.failures and _STUMBLES in raw and _TOOLS in raw
        failure = self.model.refuses or (self.model.failures.pop(0) if stumbles else None)
        if failure and failure.status != HTTPStatus.OK:
            return self._fail(failure)
        body: dict[str, Any] = json.loads(raw or b"{}")
        self.model.bodies.append(body)
        said: Said = protocol.answer(body)
        self.model.said.append(said)
        number = len(self.model.bodies)
        if body.get("stream") or "stream" in path:
            return self._stream([*_written(protocol.events(said, body, number), protocol)], said, is_cut=bool(failure))
        return self._json(200, protocol.whole(said, body, number))

    def _fail(self, failure: Failure) -> None:
        kind, words, status = _FAILURES.get(failure.status, ("overloaded_error", "Overloaded", "UNAVAILABLE"))
        names = {"type": kind, "message": words, "code": failure.status, "status": status}
        self._json(failure.status, {"type": "error", "error": names}, failure.headers)

    def _json(self, status: int, value: Any, headers: Iterable[tuple[str, str]] = ()) -> None:
        data = b"" if value is None else json.dumps(value).encode()
        self.exchange.status, self.exchange.answer = status, data
        self.send_response(status)
        for name, text in (("Content-Type", "application/json"), *headers, ("Content-Length", str(len(data)))):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)
        self.exchange.is_whole = True

    def _stream(self, events: list[bytes], said: Said, *, is_cut: bool) -> None:
        self.exchange.status = 200
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        half = (len(events) + 1) // 2
        self._send_events(events[:half])
        if said.held:
            self.model.holds.set()
            if self.client_is_gone(_HELD_SECONDS):
                self.model.let_go.set()
                is_cut = True
        if is_cut:
            self.close_connection = True
            return
        self._send_events(events[half:])
        self.exchange.is_whole = True
        self.send_chunk(b"")

    def _send_events(self, events: list[bytes]) -> None:
        for event in events:
            self.exchange.answer += event
            self.send_chunk(event)


def _written(events: Iterable[tuple[str, Any]], protocol: ModuleType) -> Iterator[bytes]:
    for name, value in events:
        head = f"event: {name}\n" if name else ""
        yield f"{head}data: {json.dumps(value)}\n\n".encode()
    if protocol is chat:
        yield b"data: [DONE]\n\n"
