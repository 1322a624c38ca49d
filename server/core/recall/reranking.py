"""What a reranker changes about an answer: the order of its first hits."""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.core.recall.answer import Hit
from esker.server.core.text.tokens import trim_to_tokens

FIRST = 20
"""How many hits a reranker is shown; what it costs grows with them."""
# Of each hit. Such models read a few hundred tokens of a question and a text together, and some refuse longer ones.
_SHOWN_TOKENS = 300


def shown(hits: Sequence[Hit]) -> list[str]:
    """Return what a reranker reads of the first hits."""
    return [trim_to_tokens(hit.content, _SHOWN_TOKENS) for hit in hits[:FIRST]]


def reordered(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return hits with as many of the first as there are scores in the order of these, of equals as they were.

    Scores of a reranker have another scale in each model and say nothing about the floor, so the first place keeps the
    score of the first place, and so on: a score is how much memory has to say at that place of the answer.
    """
    order = sorted(range(len(scores)), key=lambda place: -scores[place])
    first = [_at(hits[old], hits[new].score, scores[old]) for new, old in enumerate(order)]
    return [*first, *hits[len(scores) :]]


def _at(hit: Hit, score: float, rerank: float) -> Hit:
    parts = hit.parts and replace(hit.parts, rerank=round(rerank, 4))
    return replace(hit, score=score, parts=parts)
