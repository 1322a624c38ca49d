"""A provider of models that answers as a transcript did, and counts cached tokens as Anthropic does.

A request reads from the cache what stands before the last of its blocks that an earlier request has marked; blocks up
to its own last mark are written, the rest is plain input. Prefixes of fewer than 1,024 tokens are not cached. The pause
between two requests is taken to be shorter than five minutes. Source: Anthropic's documentation of prompt caching.
"""

import hashlib
import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from esker.server.core.config.prices import Price, cost
from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.records import TokenUse

_LEAST_TOKENS = 1_024
_INPUT_ONLY = Price(1_000_000, 0)
"""A price at which a plain input token costs one."""


@dataclass(slots=True)
class Account:
    """The tokens of one session's requests, and their cost in the price of plain input tokens."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    largest: int = 0
    marked: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, document: dict[str, Any]) -> TokenUse:
        """Count a request, and return the usage that the provider reports."""
        read = written = total = 0
        digest = hashlib.sha256()
        marks: dict[str, int] = {}
        for block in _blocks(document):
            bare = {name: value for name, value in block.items() if name != "cache_control"}
            digest.update(json.dumps(bare, sort_keys=True).encode())
            total += content_tokens([bare])
            prefix = digest.hexdigest()
            if prefix in self.marked:
                read = total
            if "cache_control" in block and total >= _LEAST_TOKENS:
                marks[prefix] = written = total
        self.marked |= marks
        used = TokenUse(
            input_tokens=total - max(read, written),
            cache_write_tokens=max(0, written - read),
            cache_read_tokens=read,
        )
        self.requests += 1
        self.tokens += total
        self.cost += cost(used, _INPUT_ONLY)
        self.largest = max(self.largest, total)
        return used


def _blocks(document: dict[str, Any]) -> Sequence[dict[str, Any]]:
    return [*document["system"], *(block for message in document["messages"] for block in message["content"])]


class Provider:
    """A provider with its next answer and its counts."""

    def __init__(self) -> None:
        self.url = ""
        self.account = Account()
        self.answer: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}

    def answered(self, body: bytes) -> dict[str, Any]:
        """Return the answer to a request."""
        self.last = json.loads(body)
        used = self.account.count(self.last)
        usage = {
            "input_tokens": used.input_tokens,
            "output_tokens": content_tokens(self.answer),
            "cache_creation_input_tokens": used.cache_write_tokens,
            "cache_read_input_tokens": used.cache_read_tokens,
        }
        return {
            "id": f"msg_{id(self.account)}_{self.account.requests}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-5",
            "content": self.answer,
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }


@contextmanager
def running_provider() -> Generator[Provider]:
    """Run a provider on a free port of this machine while the block runs."""
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer a request."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(provider.answered(body)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library names it
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    provider.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
