"""Paraphrase a question with a language model, if it answers in time and the daily cap allows it."""

from esker.server.core.errors import ModelFailed, ModelTooSlow, SpendCapReached
from esker.server.core.recall.answer import ModelStepOutcome
from esker.server.usecases.parts import Parts
from esker.server.usecases.spending import PoolMeter


async def paraphrase(parts: Parts, pool_id: str, query: str) -> tuple[list[str], ModelStepOutcome]:
    """Return paraphrases of a question and the outcome of asking for them; there are none unless it is "ok"."""
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
