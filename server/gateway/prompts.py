"""The part of memory in a request: the session's pack goes in, and turns that are observed are left out."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from esker.server.core.context.prefix import HINT
from esker.server.core.context.usage import RequestChange
from esker.server.core.errors import NotFound, Unavailable
from esker.server.core.records import Principal
from esker.server.gateway.backlog import key_of
from esker.server.gateway.cache_life import CacheLife
from esker.server.gateway.history import (
    BEFORE_ANSWERS,
    head_length,
    new_start,
    senders_of,
    starts,
    tail_tokens,
    tokens_of,
    uncounted_characters,
)
from esker.server.gateway.identity import KnownTurn
from esker.server.gateway.json_spans import items, members, without_items
from esker.server.gateway.keeping import Keeper, KnownSession
from esker.server.gateway.reading import ModelRequest
from esker.server.gateway.records import Protocol
from esker.server.usecases.binding import parts_for
from esker.server.usecases.eviction import last_evicted, observed_among
from esker.server.usecases.open_session import SessionRequest
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.receive_event import receive_event

# Seconds that a request waits for what memory adds to it.
_SECONDS = 1.0
_MOST_SESSIONS = 500

# The share of the budget from which on the session is observed, so that a move can leave it out.
_NEAR_SHARE = 0.75
# The share of the budget from which on the tail moves after a pause in which the provider's cache has ended.
_COLD_SHARE = 0.5

# Characters up to which their tokens are counted in less time than another thread takes to begin.
_FEW_CHARACTERS = 8_192

_Value = TypeVar("_Value")


class _Remembered(OrderedDict[str, _Value], Generic[_Value]):
    """Values of the sessions that were used last, by the id of the session: one that was deleted is another one."""

    def note(self, session: str, value: _Value) -> None:
        """Remember a value."""
        self[session] = value
        self.move_to_end(session)
        if len(self) > _MOST_SESSIONS:
            self.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Remade:
    """The text of a request with what memory adds, and the tokens of the change."""

    text: str
    change: RequestChange


class _Pack(NamedTuple):
    """A pack's text and its tokens."""

    text: str
    tokens: int


class _Omitted(NamedTuple):
    """The tokens of the turns that are left out before the turn `start`."""

    start: str
    tokens: int


class Prompts:
    """Adds to requests what memory knows."""

    def __init__(self, parts: Parts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper
        # For the time in which the database is away.
        self._packs: _Remembered[_Pack] = _Remembered()
        # The id of the turn with which the tail of each session begins; None if its whole history is sent.
        self._starts: _Remembered[str | None] = _Remembered()
        self._omitted: _Remembered[_Omitted] = _Remembered()
        self._cache_life = CacheLife(parts.clock)
        # The beginning of the tail for which a session was last asked to be observed.
        self._observing: _Remembered[str] = _Remembered()

    async def with_memory(
        self, who: Principal, request: ModelRequest, asked: SessionRequest, turns: Sequence[KnownTurn]
    ) -> Remade | None:
        """Return a request with its session's pack, and in the mode `manage` without observed turns.

        None means that there is nothing to add. `turns` are needed in that mode alone. Raises EskerError, TimeoutError,
        and ValueError for a request without the usual members.
        """
        start, session_id, pack = await self._frozen(who, request, asked, turns)
        if not pack.text:
            return None
        text, added, omitted = request.text, pack.text, 0
        if start is not None:
            text = without_middle(request.protocol, text, turns, start)
            added = f"{pack.text}\n\n{HINT}"
            omitted = self._omitted_tokens(session_id, turns, start)
        remade = request.protocol.with_pack(text, added)
        return Remade(remade, RequestChange(omitted, pack.tokens)) if remade else None

    def _omitted_tokens(self, session_id: str, turns: Sequence[KnownTurn], start: int) -> int:
        """Return the tokens of the turns that are left out, counted once for each move."""
        known = self._omitted.get(session_id)
        if known is None or known.start != turns[start].id:
            known = _Omitted(turns[start].id, sum(tokens_of(turns[head_length(turns) : start])))
            self._omitted.note(session_id, known)
        return known.tokens

    async def _frozen(
        self, who: Principal, request: ModelRequest, asked: SessionRequest, turns: Sequence[KnownTurn]
    ) -> tuple[int | None, str, _Pack]:
        """Return where the tail begins, the session, and its pack; the former ones while the database is away."""
        session: KnownSession | None = None
        try:
            async with asyncio.timeout(_SECONDS):
                session = await self._keeper.session(who, asked)
                if not session.is_ours:
                    return None, session.id, _Pack("", 0)
                try:
                    return await self._current(who, request, session, turns)
                except NotFound:
                    # The session was deleted, and begins again.
                    self._keeper.forget(key_of(who, asked))
                    session = await self._keeper.session(who, asked)
                    return await self._current(who, request, session, turns)
        except (Unavailable, TimeoutError):
            if session is None or session.id not in self._packs:
                raise
            return _place_of(turns, self._starts.get(session.id)), session.id, self._packs[session.id]

    async def _current(
        self, who: Principal, request: ModelRequest, session: KnownSession, turns: Sequence[KnownTurn]
    ) -> tuple[int | None, str, _Pack]:
        parts = parts_for(self._parts, who)
        start = await self._start(parts, who, session, request, turns) if request.mode == "manage" else None
        frozen = await get_pack(parts, who.pool_id, session.id)
        pack = _Pack(frozen.text, frozen.tokens)
        self._packs.note(session.id, pack)
        return start, session.id, pack

    async def _start(
        self, parts: Parts, who: Principal, session: KnownSession, request: ModelRequest, turns: Sequence[KnownTurn]
    ) -> int | None:
        """Return where the tail of a history begins, moved forward if it has grown over the budget.

        Each move is an event of the session: its pack is frozen anew, with the observations of the turns left out.
        Before it, the session is observed, since only observed turns are left out.
        """
        if session.id not in self._starts:
            self._starts.note(session.id, await last_evicted(parts, who.pool_id, session.id))
        start = _place_of(turns, self._starts[session.id])
        budget = parts.settings.gateway_history_tokens
        is_quick = uncounted_characters(turns[start or 0 :]) <= _FEW_CHARACTERS
        tail = tail_tokens(turns, start or 0) if is_quick else await asyncio.to_thread(tail_tokens, turns, start or 0)
        is_cold = self._cache_life.has_ended(session.id, request.text)
        if tail > (_COLD_SHARE * budget if is_cold else budget):
            observed = await _observed(parts, who, session, turns, start or 0)
            moved = new_start(turns, observed, budget, start or 0, is_free=is_cold)
            if moved is not None:
                await receive_event(parts, who.pool_id, session.id, "evicted", turns[moved].id)
                self._starts.note(session.id, turns[moved].id)
                return moved
        if tail > _NEAR_SHARE * budget and self._observing.get(session.id) != (first := turns[start or 0].id):
            report = await receive_event(parts, who.pool_id, session.id, "compaction_pending")
            if report.observing:
                self._observing.note(session.id, first)
        return start


async def _observed(
    parts: Parts, who: Principal, session: KnownSession, turns: Sequence[KnownTurn], start: int
) -> set[str]:
    """Return the ids of the turns before `start`, which are left out already, and of those that are observed."""
    stored = {turn.id: session.stored.get(turn.id, turn.id) for turn in turns[start:]}
    among = await observed_among(parts, who.pool_id, session.id, {*stored.values()})
    return {own for own, kept in stored.items() if kept in among} | {turn.id for turn in turns[:start]}


def _place_of(turns: Sequence[KnownTurn], start: str | None) -> int | None:
    """Return the place of a turn at which a tail may begin; None if the client has left it out or rewound it."""
    return next((place for place in starts(turns) if turns[place].id == start), None) if start else None


def without_middle(protocol: Protocol, text: str, turns: Sequence[KnownTurn], start: int) -> str:
    """Return a request without the turns between its head and `start`. Raises ValueError.

    All that comes before the first answer stays. The tail begins with the reasoning of its first answer, or with what
    was injected before its first prompt, and has no part of an answer before that.
    """
    history = members(text)[protocol.history]
    head = head_length(turns)
    senders = senders_of(span.value for span in items(text, history.start))
    first = turns[head - 1].item + 1 if head else 0
    while first < turns[head].item and senders[first] in BEFORE_ANSWERS:
        first += 1
    end = turns[start - 1].item + 1
    if turns[start].role == "user":
        behind, end = end, turns[start].item
        while end > behind and senders[end - 1] in BEFORE_ANSWERS:
            end -= 1
    return without_items(text, history.start, first, end)
