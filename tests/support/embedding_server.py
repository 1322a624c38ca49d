"""A server that speaks OpenAI's embeddings API over a real socket; it can refuse texts, break on them, or be down."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from esker.server.core.records import Space
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.usecases.embed import make_space, register
from esker.server.usecases.parts import Parts
from tests.support.serving import serving_app

Fault = Literal["500", "403", "429", "null", "missing", "dimension", "drop", "hang"]


@dataclass(slots=True)
class EmbeddingServer:
    """The scripted embedder. `status` is its mood.

    `refuses` are parts of texts that it answers with 400; `breaks` are parts of texts and how it fails on them.
    After `down_after` requests it answers 503. It hangs until `released` is set or the client leaves, and counts in
    `hanging` how often it does.
    """

    url: str = ""
    dimension: int = 8
    status: int = 200
    down_after: int | None = None
    refuses: set[str] = field(default_factory=set[str])
    breaks: dict[str, Fault] = field(default_factory=dict[str, Fault])
    hanging: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    released: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[list[str]] = field(default_factory=list[list[str]])
    keys: set[str | None] = field(default_factory=set[str | None])

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        texts: list[str] = json.loads(await request.body())["input"]
        self.asked.append(texts)
        self.keys.add(request.headers.get("authorization"))
        status = 503 if self.down_after is not None and len(self.asked) > self.down_after else self.status
        if status != 200:
            return JSONResponse({"error": "scripted"}, status)
        if any(part in text for part in self.refuses for text in texts):
            return JSONResponse({"error": "a text is refused"}, 400)
        for part, fault in self.breaks.items():
            if any(part in text for text in texts):
                return await self._fail(request, fault, texts)
        return JSONResponse({"data": [self._item(place, text) for place, text in enumerate(texts)]})

    async def _fail(self, request: Request, fault: Fault, texts: list[str]) -> Response:
        match fault:
            case "null":
                return JSONResponse({"data": [{"index": place, "embedding": None} for place in range(len(texts))]})
            case "missing":
                return JSONResponse({"data": [self._item(place, text) for place, text in enumerate(texts[:-1])]})
            case "dimension":
                return JSONResponse({"data": [{"index": 0, "embedding": [1.0, 2.0]}]})
            case "drop":
                # The server closes the connection after an answer that is shorter than announced.
                return Response(b"{", headers={"Content-Length": "1000"})
            case "hang":
                self.hanging.release()
                leaving, released = asyncio.ensure_future(request.receive()), asyncio.create_task(self.released.wait())
                await asyncio.wait([leaving, released], return_when=asyncio.FIRST_COMPLETED)
                leaving.cancel()
                released.cancel()
                return JSONResponse({"error": "too late"}, 500)
            case _:
                return JSONResponse({"error": "a text is too much"}, int(fault))

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


@asynccontextmanager
async def asked_at(endpoint: EmbeddingServer, model: str = "scripted") -> AsyncGenerator[RemoteEmbedder]:
    """An embedder that uses a model of an endpoint."""
    made = RemoteEmbedder(endpoint.url, model, None, f"openai:{endpoint.url}#{model}")
    try:
        yield made
    finally:
        await made.close()


async def known_space(parts: Parts, embedder: RemoteEmbedder) -> Space:
    """Return the space of an embedder, after every pool has it."""
    space = await embedder.load()
    await make_space(parts, space)
    await register(parts, space, or_retired=False)
    return space
