"""Calls of `recall_memory` that clients have not seen: the gateway puts them into later requests again.

A model that has looked something up needs the result as long as it works on. The client has no part of the call, so
its history is valid with and without it; call and result come before the answer that they led to, in the same bytes
in each request.
"""

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from esker.server.core.json_input import Json
from esker.server.gateway.history import BEFORE_ANSWERS, senders_of
from esker.server.gateway.identity import KnownTurn
from esker.server.gateway.json_spans import items, members, with_items
from esker.server.gateway.reading import ModelRequest

_MOST_BYTES = 16 * 1024 * 1024


class HiddenCalls:
    """The hidden items of the answers that were used last, by their sender and the conversation up to the answer."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._items: OrderedDict[tuple[str, str], tuple[str, ...]] = OrderedDict()
        self._bytes = 0

    def note(self, sender: str, history: str, hidden: Sequence[Json]) -> None:
        """Remember what was hidden before an answer; `history` is that of the first turn of the answer."""
        self._drop((sender, history))
        written = tuple(map(json.dumps, hidden))
        self._items[sender, history] = written
        self._bytes += _size(written)
        while self._bytes > self._most_bytes:
            self._drop(next(iter(self._items)))

    def put_back(self, sender: str, request: ModelRequest, turns: Sequence[KnownTurn]) -> ModelRequest:
        """Return a request with what was hidden before its answers. Raises ValueError for one of another form."""
        found = {
            number: self._items[key]
            for number, turn in enumerate(turns)
            if number and turn.role == "assistant" and (key := (sender, turn.history)) in self._items
        }
        if not found:
            return request
        for number in found:
            self._items.move_to_end((sender, turns[number].history))
        start = members(request.text)[request.protocol.history].start
        senders = senders_of(span.value for span in items(request.text, start))
        placed = {_place(senders, turns[number - 1].item + 1, turns[number].item): found[number] for number in found}
        moved = [
            replace(turn, item=turn.item + sum(len(more) for place, more in placed.items() if place <= turn.item))
            for turn in request.conversation.turns
        ]
        text = with_items(request.text, start, placed)
        return replace(request, text=text, conversation=replace(request.conversation, turns=moved))

    def _drop(self, key: tuple[str, str]) -> None:
        self._bytes -= _size(self._items.pop(key, ()))


def _place(senders: Sequence[Json], behind: int, answer: int) -> int:
    """Return where an answer begins, which may be with thoughts, between the turn before it and its first turn."""
    while behind < answer and senders[behind] in BEFORE_ANSWERS:
        behind += 1
    return behind


def _size(written: Sequence[str]) -> int:
    return sum(map(len, written))
