"""Fits the hits of an answer into a token budget."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from esker.server.core.recall.answer import Hit
from esker.server.core.recall.rendering import recalled_line
from esker.server.core.text.tokens import estimate_tokens, trim_to_tokens

# The fewest tokens to which the first hit is cut; if even they do not fit, it is left out.
_LEAST_CONTENT = 8


def fitting(
    hits: Sequence[Hit], limit: int, max_tokens: int | None, shown_in: Mapping[str, str] | None = None
) -> list[Hit]:
    """Return the first `limit` hits whose lines fit into `max_tokens`, in order; one that does not fit is skipped.

    The first is the best answer, so it is cut rather than skipped. A memory that is `shown_in` a passage (ids) is left
    out if that passage is returned, and does not count.
    """
    if not hits:
        return []
    first = hits[0] if max_tokens is None else _cut(hits[0], max_tokens)
    return [*_fitting((first, *hits[1:]), limit, math.inf if max_tokens is None else max_tokens, shown_in or {})]


def _fitting(hits: Sequence[Hit], limit: int, budget: float, shown_in: Mapping[str, str]) -> Iterator[Hit]:
    shown: set[str] = set()
    tried = 0
    for hit in hits:
        if shown_in.get(hit.id) in shown:
            continue
        if tried == limit:
            return
        tried += 1
        cost = 0 if budget == math.inf else estimate_tokens(recalled_line(hit))
        if cost <= budget:
            budget -= cost
            shown.add(hit.id)
            yield hit


def _cut(hit: Hit, budget: int) -> Hit:
    excess = estimate_tokens(recalled_line(hit)) - budget
    if excess <= 0:
        return hit
    cut = replace(hit, content="", truncated=True)
    room = budget - estimate_tokens(recalled_line(cut))
    return replace(cut, content=trim_to_tokens(hit.content, room)) if room >= _LEAST_CONTENT else hit
