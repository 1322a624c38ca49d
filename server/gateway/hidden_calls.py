"""Calls of `recall_memory` that clients have not seen: the gateway puts them into later requests again.

A model that has looked something up needs the result as long as it works on. The client has no part of the call, so
its history is valid with and without it; call and result come before the answer that they led to, in the same bytes
in each request. They are in the database, so that another server and one that was started anew put them back, too.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from esker.server.core.conversation.hidden_calls import HiddenCalls
from esker.server.core.errors import EskerError, NotFound
from esker.server.core.json_input import Json
from esker.server.core.records import Principal
from esker.server.gateway.backlog import key_of
from esker.server.gateway.history import BEFORE_ANSWERS, senders_of
from esker.server.gateway.identity import place_of
from esker.server.gateway.json_spans import items, members, with_items
from esker.server.gateway.keeping import Keeper
from esker.server.gateway.reading import ModelRequest
from esker.server.usecases.binding import parts_for
from esker.server.usecases.hidden_calls import hidden_calls_at, keep_hidden_calls
from esker.server.usecases.open_session import SessionRequest
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

# Seconds that a request, or the end of an answer, waits for the database.
_SECONDS = 1.0
_MOST_BYTES = 16 * 1024 * 1024
# Bytes that a place takes besides its items.
_OVERHEAD = 200


class RecentCalls:
    """The items at the places that were asked for last: for the time in which the database is away."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._items: OrderedDict[str, Sequence[str]] = OrderedDict()
        self._bytes = 0

    def note(self, place: str, written: Sequence[str]) -> None:
        """Remember what is at a place."""
        self.drop(place)
        self._items[place] = written
        self._bytes += _size(written)
        while self._bytes > self._most_bytes:
            self.drop(next(iter(self._items)))

    def at(self, place: str) -> Sequence[str] | None:
        """Return the items at a place; None if it is not known."""
        return self._items.get(place)

    def drop(self, place: str) -> None:
        """Remember nothing at a place."""
        if place in self._items:
            self._bytes -= _size(self._items.pop(place))


class CallKeeper:
    """Keeps hidden calls, and puts them back."""

    def __init__(self, parts: Parts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper
        self._recent = RecentCalls()

    async def keep(
        self,
        who: Principal,
        asked: SessionRequest | None,
        request: ModelRequest,
        place: str,
        hidden: Sequence[Json],
        shown: Collection[str],
    ) -> None:
        """Keep what was hidden before an answer, before the client has its end. `shown` are the ids in its results.

        Without the session (None), or if the database was away when the request came or is now, only this process
        remembers it, until the database answers: then nobody could tell it from what was forgotten.
        """
        written = [json.dumps(item) for item in hidden]
        self._recent.note(place, written)
        if asked is None or request.forgetting is None:
            return
        try:
            async with asyncio.timeout(_SECONDS):
                session = await self._keeper.session(who, asked)
                calls = HiddenCalls(place, written, shown, request.forgetting)
                if not await keep_hidden_calls(parts_for(self._parts, who), who.pool_id, session.id, calls):
                    self._recent.drop(place)
        except NotFound:
            # The session was deleted.
            self._keeper.forget(key_of(who, asked))
            self._recent.drop(place)
        except (EskerError, TimeoutError) as error:
            log.warning("A recall of %s is known to this process alone: %s", asked.client, error or "it took too long")

    async def put_back(self, who: Principal, sender: str, request: ModelRequest) -> ModelRequest:
        """Return a request with what was hidden before its answers. Raises ValueError for one of another form.

        The turns of the request are known.
        """
        places = {
            number: place_of(sender, turn.history)
            for number, turn in enumerate(request.turns)
            if number and turn.role == "assistant"
        }
        request = replace(request, forgetting=await self._look_up(who, places.values()))
        found = {number: known for number, place in places.items() if (known := self._recent.at(place))}
        return with_hidden(request, found)

    async def _look_up(self, who: Principal, places: Collection[str]) -> str | None:
        """Read what is at some places; return what tells the pool's latest forgetting, None without the database.

        All are read each time: what is known may be forgotten meanwhile, and another server may have stored more.
        """
        try:
            async with asyncio.timeout(_SECONDS):
                stored = await hidden_calls_at(parts_for(self._parts, who), who.pool_id, places)
        except (EskerError, TimeoutError) as error:
            log.warning("Earlier recalls are known as far as this process remembers them: %s", error or "no answer")
            return None
        for place in places:
            if written := stored.items.get(place):
                self._recent.note(place, written)
            else:
                self._recent.drop(place)
        return stored.forgetting


def with_hidden(request: ModelRequest, found: Mapping[int, Sequence[str]]) -> ModelRequest:
    """Return a request with items before its answers: `found` has them by the number of the answer's first turn.

    Raises ValueError for a request of another form.
    """
    if not found:
        return request
    start = members(request.text)[request.protocol.history].start
    senders = senders_of(span.value for span in items(request.text, start))
    turns = request.turns
    placed = {_index(senders, turns[number - 1].item + 1, turns[number].item): found[number] for number in found}

    def moved(item: int) -> int:
        return item + sum(len(more) for index, more in placed.items() if index <= item)

    said = [replace(turn, item=moved(turn.item)) for turn in request.conversation.turns]
    known = [replace(turn, item=moved(turn.item)) for turn in turns]
    text = with_items(request.text, start, placed)
    return replace(request, text=text, conversation=replace(request.conversation, turns=said), turns=known)


def _index(senders: Sequence[Json], behind: int, answer: int) -> int:
    """Return where an answer begins, which may be with thoughts, between the turn before it and its first turn."""
    while behind < answer and senders[behind] in BEFORE_ANSWERS:
        behind += 1
    return behind


def _size(written: Sequence[str]) -> int:
    return _OVERHEAD + sum(map(len, written))
