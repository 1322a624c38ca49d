"""Applies a reranker's scores to the first hits of an answer."""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.core.recall.answer import Hit
from esker.server.core.text.tokens import trim_to_tokens

FIRST = 20
"""How many hits a reranker reads; its time is proportional to them."""
# Maximum tokens of each hit: cross-encoders read a few hundred of a question and a text together; some refuse more.
_SHOWN_TOKENS = 300


def shown(hits: Sequence[Hit]) -> list[str]:
    """Return the texts of the first hits, cut for a reranker."""
    return [trim_to_tokens(hit.content, _SHOWN_TOKENS) for hit in hits[:FIRST]]


def reordered(hits: Sequence[Hit], scores: Sequence[float]) -> list[Hit]:
    """Return the hits with the first `len(scores)` of them ordered by score; ties keep their order.

    The scale of a reranker's scores depends on the model and has no floor, so each position keeps its own score: the
    new first hit gets the score of the former first one, and so on.
    """
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    first = [_at(hits[old], hits[new].score, scores[old]) for new, old in enumerate(order)]
    return [*first, *hits[len(scores) :]]


def _at(hit: Hit, score: float, rerank: float) -> Hit:
    parts = hit.parts and replace(hit.parts, rerank=round(rerank, 4))
    return replace(hit, score=score, parts=parts)
