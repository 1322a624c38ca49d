"""Fits the hits of an answer into a token budget."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from esker.server.core.recall.answer import Hit
from esker.server.core.recall.rendering import recalled_line
from esker.server.core.text.tokens import estimate_tokens, trim_to_tokens

# The fewest tokens to which the first hit is cut; if even they do not fit, it is left out.
_LEAST_CONTENT = 8


def fitting(hits: Sequence[Hit], max_tokens: int | None) -> list[Hit]:
    """Return the hits whose lines fit into `max_tokens`, in order; one that does not fit is skipped.

    The first is the best answer, so it is cut rather than skipped.
    """
    if max_tokens is None or not hits:
        return list(hits)
    return [*_fitting((_cut(hits[0], max_tokens), *hits[1:]), max_tokens)]


def _fitting(hits: Sequence[Hit], budget: int) -> Iterator[Hit]:
    for hit in hits:
        cost = estimate_tokens(recalled_line(hit))
        if cost <= budget:
            budget -= cost
            yield hit


def _cut(hit: Hit, budget: int) -> Hit:
    excess = estimate_tokens(recalled_line(hit)) - budget
    if excess <= 0:
        return hit
    cut = replace(hit, content="", truncated=True)
    room = budget - estimate_tokens(recalled_line(cut))
    return replace(cut, content=trim_to_tokens(hit.content, room)) if room >= _LEAST_CONTENT else hit
