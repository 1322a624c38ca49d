"""A reranking endpoint in the common shape: a question and documents in, scores out."""

import json
import math
from collections.abc import Sequence

import httpx2

from esker.server.core.errors import Misconfigured, RerankerDown
from esker.server.providers.addresses import is_plain

# Maximum bytes of a body: scores of a few texts take a few kilobytes; a longer body is not read to its end.
_MOST_BYTES = 1024 * 1024


class RemoteReranker:
    """Scores over HTTP."""

    lanes = 4
    busy = False  # a cancelled call is closed

    def __init__(self, base_url: str, model: str, api_key: str | None) -> None:
        """`base_url` is the URL without `/rerank`. Raises Misconfigured if it is not a URL or has credentials."""
        if not is_plain(base_url):
            raise Misconfigured(
                "ESKER_RERANKER does not name a plain http(s) URL, or contains credentials.",
                hint="Write http:https://host/v1#model, and put the key into ESKER_RERANKER_API_KEY.",
            )
        self.name = model
        self._url = f"{base_url.rstrip('/')}/rerank"
        # Uncompressed, so that the limit applies to the bytes on the wire.
        headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        self._client = httpx2.AsyncClient(headers=headers, timeout=60.0)

    async def load(self) -> None:
        """Do nothing: errors show at the first call."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, higher where it answers better. Raises RerankerDown."""
        request = {"model": self.name, "query": query, "documents": list(texts)}
        try:
            async with self._client.stream("POST", self._url, json=request) as answer:
                if answer.status_code != 200:
                    raise RerankerDown(f"The reranker answered {answer.status_code}.")
                body = await _read(answer)
        except httpx2.HTTPError as error:
            raise RerankerDown(f"The reranker cannot be reached: {str(error) or type(error).__name__}.") from error
        return _scores(body, len(texts))

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._client.aclose()


async def _read(answer: httpx2.Response) -> bytes:
    """Return the body of an answer. Raises RerankerDown if it is too long to be scores."""
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise RerankerDown(f"The reranker's answer has more than {_MOST_BYTES:,} bytes, so it was not read.")
    return bytes(body)


def _scores(body: bytes, count: int) -> list[float]:
    """Return the scores in the order of the texts. Raises RerankerDown."""
    try:
        found = {item["index"]: float(item["relevance_score"]) for item in json.loads(body)["results"]}
        scores = [found[place] for place in range(count)]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RerankerDown(f"The reranker's answer cannot be read ({type(error).__name__}: {error}).") from error
    if not all(map(math.isfinite, scores)):
        raise RerankerDown("The reranker's answer has a score that is not a number.")
    return scores
