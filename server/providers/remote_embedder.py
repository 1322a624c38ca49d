"""An endpoint that speaks OpenAI's embeddings API."""

import asyncio
import sys
from collections.abc import Mapping, Sequence

import httpx2
import numpy as np

from esker.server.core.arrays import Vectors
from esker.server.core.errors import CallFailed, EmbedderDown, EskerError, Misconfigured, TextRefused
from esker.server.core.records import Space
from esker.server.core.text.splitting import split_text
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.addresses import is_plain
from esker.server.providers.bounded_answers import bounded
from esker.server.providers.vectors import scaled, space_name, storable

_PROBE = "esker"
_PART_TOKENS = 400
"""Maximum estimated tokens of a part: most models read 512, and may count a few more than the estimate."""

_CALL_SECONDS = 10.0
"""Longest time of a call, besides that of its tokens: a model may have to be loaded or woken first."""
_TOKEN_SECONDS = 0.004
"""Longest time of a token: 64 parts of full length may take 112 s in all, on a slow processor."""
# Statuses that say whether the text or the endpoint is at fault; others do not.
_STATUS: Mapping[int, type[EskerError]] = {
    **dict.fromkeys((400, 413, 422), TextRefused),
    **dict.fromkeys((401, 402, 404, 405, 429), EmbedderDown),
}


class RemoteEmbedder:
    """Vectors over HTTP, from a server that embeds rows and questions alike."""

    lanes = 4

    def __init__(self, base_url: str, model: str, api_key: str | None, source: str) -> None:
        """`base_url` is the URL without `/embeddings`; `source` is the setting that names it.

        Raises Misconfigured for credentials in the URL: the setting is stored in the database.
        """
        if not is_plain(base_url):
            raise Misconfigured(
                "The embedder's address is not a plain http(s) URL, or contains credentials.",
                hint="Write openai:https://host/v1#model, and put the key into ESKER_EMBEDDER_API_KEY.",
            )
        self._source = source
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = bounded(httpx2.AsyncClient(headers=headers, timeout=None))
        self._space: Space | None = None

    @property
    def space(self) -> Space | None:
        """Return the space, or None until the endpoint has answered once."""
        return self._space

    @property
    def portion(self) -> int:
        """Return no limit: the endpoint does not get slower by what this machine does."""
        return sys.maxsize

    def be_patient(self, patient: bool) -> None:
        """Do nothing: the model runs elsewhere."""

    async def load(self) -> Space:
        """Request one vector to learn the dimension. Raises EmbedderDown."""
        if self._space is None:
            try:
                dimension = storable(len((await self.embed([_PROBE]))[0]))
            except TextRefused as error:
                raise EmbedderDown(f"The embedder refuses every text: {error}") from error
            name = space_name(self._model, "", dimension, "", "")
            self._space = Space(name, self._model, "", dimension, "", self._source)
        return self._space

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of length 1. Raises EmbedderDown, CallFailed or TextRefused."""
        seconds = longest_call(texts)
        try:
            # The client's own limits hold for each read, not for the whole call.
            async with asyncio.timeout(seconds):
                answer = await self._client.post(self._url, json={"model": self._model, "input": list(texts)})
        except TimeoutError as error:
            raise CallFailed(f"The embedder did not answer within {seconds:.0f} s.") from error
        except httpx2.HTTPError as error:
            kind = EmbedderDown if isinstance(error, httpx2.ConnectError) else CallFailed
            raise kind(f"The embedder cannot be reached: {str(error) or type(error).__name__}.") from error
        if answer.status_code != 200:
            raise _STATUS.get(answer.status_code, CallFailed)(f"The embedder answered {answer.status_code}.")
        return _vectors(answer, len(texts), self._space)

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of length 1. Raises EmbedderDown, CallFailed or TextRefused."""
        return await self.embed(texts)

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return each text in parts that are short enough for most models, by estimated tokens."""
        return [split_text(text, _PART_TOKENS, _estimates) for text in texts]

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._client.aclose()


def longest_call(texts: Sequence[str]) -> float:
    """Return how many seconds a call with these texts may take."""
    return _CALL_SECONDS + _TOKEN_SECONDS * sum(_estimates(texts))


def _estimates(texts: Sequence[str]) -> list[int]:
    return [estimate_tokens(text) for text in texts]


def _vectors(answer: httpx2.Response, count: int, space: Space | None) -> Vectors:
    try:
        items = sorted(answer.json()["data"], key=lambda item: item["index"])
        places = [item["index"] for item in items]
        made = np.array([item["embedding"] for item in items], np.float64)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise CallFailed(f"The embedder's answer cannot be read: {error}") from error
    # A vector at the wrong place would make recall find the wrong text.
    if made.ndim != 2 or places != list(range(count)) or (space and made.shape[1] != space.dimension):
        raise CallFailed("The embedder's answer has not one vector for each text, or another number of dimensions.")
    return scaled(made)
