"""A server that speaks OpenAI's embeddings API over a real socket; it can be told to refuse texts or to be down."""

import hashlib
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
class EmbeddingServer:
    """The scripted embedder. `refuses` are parts of texts that it answers with 400; `status` is its mood."""

    url: str = ""
    dimension: int = 8
    status: int = 200
    refuses: set[str] = field(default_factory=set[str])
    asked: list[list[str]] = field(default_factory=list[list[str]])
    keys: set[str | None] = field(default_factory=set[str | None])

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        texts: list[str] = json.loads(await request.body())["input"]
        self.asked.append(texts)
        self.keys.add(request.headers.get("authorization"))
        if self.status != 200:
            return JSONResponse({"error": "scripted"}, self.status)
        if any(part in text for part in self.refuses for text in texts):
            return JSONResponse({"error": "a text is refused"}, 400)
        return JSONResponse({"data": [self._item(place, text) for place, text in enumerate(texts)]})

    def _item(self, place: int, text: str) -> dict[str, Any]:
        return {"index": place, "embedding": word_vector(text, self.dimension)}


def word_vector(text: str, dimension: int) -> list[float]:
    """Return a vector that counts the words of a text into buckets, so that shared words mean nearness.

    No language is known to it, so what is found by it is `weak`.
    """
    vector = [0.01] * dimension
    for word in text.lower().split():
        vector[hashlib.sha256(word.encode()).digest()[0] % dimension] += 1.0
    return vector


@asynccontextmanager
async def embedding_server(dimension: int = 8) -> AsyncGenerator[EmbeddingServer]:
    """Run a scripted embedder while the block runs; `url` is what ESKER_EMBEDDER takes."""
    server = EmbeddingServer(dimension=dimension)
    app = Starlette(routes=[Route("/v1/embeddings", server.answer, methods=["POST"])])
    async with serving_app(app) as url:
        server.url = f"{url}/v1"
        yield server
