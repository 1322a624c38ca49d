"""A provider of models that answers as a transcript did, and counts cached tokens as Anthropic does.

A request reads from the cache what stands before the last of its blocks that an earlier request has marked; blocks up
to its own last mark are written, the rest is plain input. Prefixes of fewer than 1,024 tokens are not cached, and those
that were not used for five minutes are gone; times are those of the transcript. Source: Anthropic's documentation of
prompt caching.
"""

import hashlib
import json
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from esker.server.core.config.prices import Price, cost
from esker.server.core.context.usage import CACHE_LIFE
from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.records import TokenUse

_LEAST_TOKENS = 1_024
_INPUT_ONLY = Price(1_000_000, 0)
"""A price at which a plain input token costs one."""
_NO_TIME = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Account:
    """The tokens of one session's requests, and their cost as a number of plain input tokens.

    `marked` are the hashes of the prefixes in the cache, with the time of their last use.
    """

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    largest: int = 0
    marked: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def count(self, document: dict[str, Any], at: datetime | None = None) -> TokenUse:
        """Count a request, and return the usage that the provider reports. Without a time, nothing is ever gone."""
        now = at or max(self.marked.values(), default=_NO_TIME)
        read = written = total = 0
        digest = hashlib.sha256()
        used_marks: set[str] = set()
        for block in _blocks(document):
            bare = {name: value for name, value in block.items() if name != "cache_control"}
            digest.update(json.dumps(bare, sort_keys=True).encode())
            total += content_tokens([bare])
            prefix = digest.hexdigest()
            if prefix in self.marked and now - self.marked[prefix] <= CACHE_LIFE:
                read = total
                used_marks.add(prefix)
            if "cache_control" in block and total >= _LEAST_TOKENS:
                written = total
                used_marks.add(prefix)
        self.marked |= dict.fromkeys(used_marks, now)
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
    """A provider with its next answer, its counts and its clock."""

    def __init__(self) -> None:
        self.url = ""
        self.account = Account()
        self.answer: list[dict[str, Any]] = []
        self.last: dict[str, Any] = {}
        self.now: datetime | None = None

    def answered(self, body: bytes) -> dict[str, Any]:
        """Return the answer to a request."""
        self.last = json.loads(body)
        used = self.account.count(self.last, self.now)
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
