"""A provider of models behind the gateway, on a real socket: it records what arrives and says what it is told."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from tests.support.serving import serving_app


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request as the provider got it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body as a document."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer in chunks; those after the first one wait for `gate`, if there is one, and so does a single one."""

    chunks: Sequence[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    gate: asyncio.Event | None = None


@dataclass(slots=True)
class Upstream:
    """The provider: what arrived, and what it says next. The last answer is given again and again."""

    url: str = ""
    arrived: list[Arrived] = field(default_factory=list[Arrived])
    answers: list[Said] = field(default_factory=list[Said])
    came: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def say(self, *answers: Said) -> None:
        """Set the answers."""
        self.answers = [*answers]

    def forget(self) -> None:
        """Forget every request and answer."""
        self.arrived.clear()
        self.answers.clear()
        self.came, self.gone = asyncio.Event(), asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Record a request and answer it."""
        request = Request(scope, receive)
        path = scope["raw_path"].decode() + (f"?{scope['query_string'].decode()}" if scope["query_string"] else "")
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"]]
        self.arrived.append(Arrived(request.method, path, headers, await request.body()))
        self.came.set()
        said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if len(said.chunks) == 1:
            if said.gate:
                await said.gate.wait()
            await Response(said.chunks[0], said.status, said.headers)(scope, receive, send)
            return
        await StreamingResponse(self._chunks(said), said.status, said.headers)(scope, receive, send)

    async def _chunks(self, said: Said) -> AsyncGenerator[bytes]:
        try:
            for place, chunk in enumerate(said.chunks):
                if place and said.gate:
                    await said.gate.wait()
                yield chunk
        except BaseException:
            self.gone.set()
            raise


@asynccontextmanager
async def upstream() -> AsyncGenerator[Upstream]:
    """Run a provider while the block runs."""
    provider = Upstream()
    async with serving_app(provider) as url:
        provider.url = url
        yield provider


def messages_stream(*blocks: dict[str, Any], number: int = 1, **usage: int) -> list[bytes]:
    """Return the events of the Messages API for an answer, one event a chunk."""
    used = {"input_tokens": 100, "output_tokens": 1, **usage}
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": []}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start | {"usage": used}}]
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            begun = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            begun = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        events += [
            {"type": "content_block_start", "index": index, "content_block": begun},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    events += [
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
        {"type": "message_stop"},
    ]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
