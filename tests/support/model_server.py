"""A server that speaks the Messages API and chat completions over a real socket; its answers are scripted."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from esker.server.core.records import TokenUse
from tests.support.serving import serving_app


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """One scripted answer; `raw` is a body that need not be a message."""

    text: str = ""
    stop_reason: str = "end_turn"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    wait_for: asyncio.Event | None = None
    raw: str | None = None


Script = Callable[[dict[str, Any]], ScriptedAnswer]


@dataclass(slots=True)
class ModelServer:
    """The scripted model: what it was asked, and what it says next. The last answer is given again and again."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    answers: list[ScriptedAnswer | Script] = field(default_factory=list[ScriptedAnswer | Script])
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    awaited: list[asyncio.Event] = field(default_factory=list[asyncio.Event])

    def say(self, *answers: ScriptedAnswer | Script | dict[str, Any] | str) -> None:
        """Set the answers; a dict is said as JSON."""
        self.answers = [
            ScriptedAnswer(json.dumps(a)) if isinstance(a, dict) else ScriptedAnswer(a) if isinstance(a, str) else a
            for a in answers
        ]

    def forget(self) -> None:
        """Forget every request and answer."""
        self.asked.clear()
        self.headers.clear()
        self.answers.clear()
        self.arrived = asyncio.Event()

    def release(self) -> None:
        """Give every answer that waits; a server that still answers would end late."""
        for event in self.awaited:
            event.set()

    def environment(self) -> dict[str, str]:
        """Return the settings of a server that asks this model."""
        return {"ESKER_EMBEDDER": "none", "ESKER_LLM_BASE_URL": self.url, "ESKER_LLM_API_KEY": "sk-scripted"}

    def prompt(self, number: int = -1) -> str:
        """Return the text of the messages of a request."""
        parts: list[str] = []
        for message in self.asked[number]["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            parts += [block.get("text", f"[{block['type']}]") for block in blocks]
        return "\n".join(parts)

    async def answer(self, request: Request) -> Response:
        """Answer one request of the Messages API."""
        scripted, body = await self._scripted(request)
        if response := _unusual(scripted):
            return response
        return JSONResponse(
            {
                "id": f"msg_{len(self.asked)}",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [{"type": "text", "text": scripted.text}],
                "stop_reason": scripted.stop_reason,
                "stop_sequence": None,
                "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 7},
            }
        )

    async def complete(self, request: Request) -> Response:
        """Answer one request of chat completions, with the same words and the same token use."""
        scripted, body = await self._scripted(request)
        if response := _unusual(scripted):
            return response
        refused = scripted.stop_reason == "refusal"
        message = {"role": "assistant", "content": None if refused else scripted.text}
        finish = {"end_turn": "stop", "max_tokens": "length", "refusal": "stop"}[scripted.stop_reason]
        return JSONResponse(
            {
                "id": f"chatcmpl-{len(self.asked)}",
                "object": "chat.completion",
                "created": 1,
                "model": body["model"],
                "choices": [
                    {
                        "index": 0,
                        "message": message | ({"refusal": scripted.text} if refused else {}),
                        "finish_reason": finish,
                    }
                ],
                "usage": {
                    "prompt_tokens": 107,
                    "completion_tokens": 20,
                    "total_tokens": 127,
                    "prompt_tokens_details": {"cached_tokens": 7},
                },
            }
        )

    async def _scripted(self, request: Request) -> tuple[ScriptedAnswer, dict[str, Any]]:
        """Record a request, and return the next answer when it may be given."""
        body = json.loads(await request.body())
        self.asked.append(body)
        self.headers.append(dict(request.headers))
        self.arrived.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        scripted = answer if isinstance(answer, ScriptedAnswer) else answer(body)
        if scripted.wait_for:
            self.awaited.append(scripted.wait_for)
            await scripted.wait_for.wait()
        return scripted, body


def _unusual(scripted: ScriptedAnswer) -> Response | None:
    """Return the response of an answer that is an error or a body of its own."""
    if scripted.raw is not None:
        return Response(scripted.raw, media_type="application/json")
    if scripted.status == 200:
        return None
    error = {"type": "error", "error": {"type": "scripted_error", "message": scripted.text or "scripted"}}
    return JSONResponse(error, scripted.status, scripted.headers)


class Unmetered:
    """Allows every call and counts none."""

    async def reserve(self, model: str, most: TokenUse) -> str:
        """Allow it."""
        return ""

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Record nothing."""


@asynccontextmanager
async def model_server() -> AsyncGenerator[ModelServer]:
    """Run a scripted model while the block runs."""
    server = ModelServer()
    routes = [
        Route("/v1/messages", server.answer, methods=["POST"]),
        Route("/v1/chat/completions", server.complete, methods=["POST"]),
    ]
    app = Starlette(routes=routes)
    async with serving_app(app) as url:
        server.url = url
        yield server
        server.release()
