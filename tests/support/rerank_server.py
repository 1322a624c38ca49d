"""A scripted reranking server on a real socket; it can delay its answer, be down or answer nonsense."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.support.serving import serving_app


@dataclass(slots=True)
class RerankServer:
    """The scripted reranker. `likes` are words by what they are worth; answers come worst first.

    `holds` keeps every answer back until it is set; `says` is a body in place of an answer.
    """

    url: str = ""
    likes: dict[str, float] = field(default_factory=dict[str, float])
    status: int = 200
    says: str | None = None
    holds: asyncio.Event | None = None
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str | None] = field(default_factory=list[str | None])

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        body = json.loads(await request.body())
        self.asked.append(body)
        self.keys.append(request.headers.get("authorization"))
        if self.holds:
            await self.holds.wait()
        if self.says is not None:
            return Response(self.says, self.status, media_type="application/json")
        items = [{"index": place, "relevance_score": self._worth(text)} for place, text in enumerate(body["documents"])]
        items.sort(key=lambda item: item["relevance_score"])
        return JSONResponse({"model": body["model"], "results": items}, self.status)

    def _worth(self, text: str) -> float:
        return sum(worth for word, worth in self.likes.items() if word in text)


@asynccontextmanager
async def rerank_server() -> AsyncGenerator[RerankServer]:
    """Run a scripted reranker while the block runs; `url` is what ESKER_RERANKER takes before its model."""
    server = RerankServer()
    app = Starlette(routes=[Route("/v1/rerank", server.answer, methods=["POST"])])
    async with serving_app(app) as url:
        server.url = f"{url}/v1"
        yield server
