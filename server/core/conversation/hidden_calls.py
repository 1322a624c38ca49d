"""Calls of `recall_memory` that the gateway answered and that its client has not seen."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HiddenCalls:
    """The calls and results before one answer of a conversation, each item as JSON.

    `place` is a hash of the sender and of the conversation up to that answer. `shown_ids` are the ids of the memories
    and passages in the results. `forgetting` tells the pool's latest forgetting when their request came.
    """

    place: str
    items: Sequence[str]
    shown_ids: Collection[str]
    forgetting: str


@dataclass(frozen=True, slots=True)
class EarlierCalls:
    """The items of hidden calls by their place, and what tells the pool's latest forgetting."""

    items: Mapping[str, Sequence[str]]
    forgetting: str
