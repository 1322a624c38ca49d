"""An endpoint for reranking, of the shape that many servers share: a question and documents in, scores out."""

import math
from collections.abc import Sequence

import httpx2

from server.core.errors import Misconfigured, RerankerDown
from server.providers.addresses import is_plain


class RemoteReranker:
    """Scores over HTTP."""

    lanes = 4
    busy = False  # a call that is cancelled is closed

    def __init__(self, base_url: str, model: str, api_key: str | None) -> None:
        """`base_url` is what stands before `/rerank`. Raises Misconfigured when it is none, or has credentials."""
        if not is_plain(base_url):
            raise Misconfigured(
                "ESKER_RERANKER names no plain http(s) address, or has credentials in it.",
                hint="Write http:https://host/v1#model, and put the key into ESKER_RERANKER_API_KEY.",
            )
        self.name = model
        self._url = f"{base_url.rstrip('/')}/rerank"
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(headers=headers, timeout=60.0)

    async def load(self) -> None:
        """Do nothing: whether it answers is seen when it is asked."""

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, higher where it answers better. Raises RerankerDown."""
        request = {"model": self.name, "query": query, "documents": list(texts)}
        try:
            answer = await self._client.post(self._url, json=request)
        except httpx2.HTTPError as error:
            raise RerankerDown(f"The reranker cannot be reached: {error or type(error).__name__}.") from error
        if answer.status_code != 200:
            raise RerankerDown(f"The reranker answered {answer.status_code}.")
        return _scores(answer, len(texts))

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._client.aclose()


def _scores(answer: httpx2.Response, count: int) -> list[float]:
    """Return the scores in the order of the texts, whatever order they come in. Raises RerankerDown."""
    try:
        found = {item["index"]: float(item["relevance_score"]) for item in answer.json()["results"]}
        scores = [found[place] for place in range(count)]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise RerankerDown(f"The reranker's answer cannot be read ({type(error).__name__}: {error}).") from error
    if not all(map(math.isfinite, scores)):
        raise RerankerDown("The reranker's answer has a score that is no number.")
    return scores
