"""Rerank the first hits with a model that reads the question together with each hit, if it answers in time."""

from collections.abc import Sequence

from esker.server.core.errors import RerankerDown, RerankerLate
from esker.server.core.recall.answer import Hit, ModelStepOutcome
from esker.server.core.recall.reranking import reordered, shown
from esker.server.providers.reranking import Reranking


async def rerank(reranking: Reranking | None, query: str, hits: Sequence[Hit]) -> tuple[list[Hit], ModelStepOutcome]:
    """Return the hits and the outcome of reranking; unless it is "ok", they keep their order."""
    if reranking is None or len(hits) < 2:
        return list(hits), "off"
    try:
        scores = await reranking.scores(query, shown(hits))
    except RerankerLate:
        return list(hits), "late"
    except RerankerDown:
        return list(hits), "failed"
    return reordered(hits, scores), "ok"
