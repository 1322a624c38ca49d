"""Reword: other wordings of a question from a language model, if it is in time and the pool may pay for it."""

from esker.server.core.errors import ModelFailed, ModelTooSlow, SpendCapReached
from esker.server.core.recall.answer import RerankOutcome
from esker.server.usecases.parts import Parts
from esker.server.usecases.spending import PoolMeter


async def reword(parts: Parts, pool_id: str, query: str) -> tuple[list[str], RerankOutcome]:
    """Return other wordings of a question, and whether they were to be had."""
    if parts.paraphrases is None:
        return [], "off"
    try:
        return await parts.paraphrases.of(pool_id, query, PoolMeter(parts, pool_id, "recall")), "ok"
    except SpendCapReached:
        return [], "off"
    except ModelTooSlow:
        return [], "late"
    except ModelFailed:
        return [], "failed"
