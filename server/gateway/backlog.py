"""The exchanges that passed through the gateway and are not stored yet: bounded in bytes, the newest stay."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from esker.server.core.context.usage import UNCHANGED, RequestChange
from esker.server.core.records import Principal
from esker.server.gateway.identity import KnownTurn
from esker.server.gateway.records import ModelAnswer
from esker.server.usecases.open_session import SessionRequest

MOST_BYTES = 64 * 1024 * 1024
# Bytes that an exchange takes besides its turns.
_OVERHEAD = 4_096

Key = tuple[str, str | None, str, str]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its answer. `turns` are those of both, and came in `size` bytes.

    `is_fork`: it may begin with turns of another session. `change` is what the gateway changed in the request.
    """

    who: Principal
    session: SessionRequest
    turns: Sequence[KnownTurn]
    is_fork: bool
    answer: ModelAnswer | None
    size: int
    change: RequestChange = UNCHANGED

    @property
    def key(self) -> Key:
        """The key of its session."""
        return key_of(self.who, self.session)


class Waiting(NamedTuple):
    """An exchange that waits, and its number."""

    number: int
    exchange: Exchange


class Backlog:
    """The exchanges that wait, by session in their order.

    Each request repeats the conversation so far. So an exchange whose conversation the next one continues waits
    without its turns, and a session of any length takes the bytes of its latest request.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._exchanges: OrderedDict[int, Exchange] = OrderedDict()
        self._sessions: dict[Key, deque[int]] = {}
        self._number = 0
        self.bytes = 0
        """About how many bytes the exchanges take."""

    def __len__(self) -> int:
        return len(self._exchanges)

    def add(self, exchange: Exchange) -> int:
        """Add the latest exchange; return how many of the oldest ones were dropped for it."""
        numbers = self._sessions.setdefault(exchange.key, deque())
        if numbers and _continues(exchange, latest := self._exchanges[numbers[-1]]):
            self._put(numbers[-1], replace(latest, turns=(), size=0, answer=_usage(latest.answer)))
            # The turns that it leaves to the next one may be another session's.
            exchange = replace(exchange, is_fork=exchange.is_fork or latest.is_fork)
        self._number += 1
        numbers.append(self._number)
        self._put(self._number, exchange)
        dropped = 0
        while self.bytes > self._most_bytes and len(self._exchanges) > 1:
            self.remove(next(iter(self._exchanges)))
            dropped += 1
        return dropped

    def first(self, key: Key) -> Waiting | None:
        """Return the oldest exchange of a session; None if there is none."""
        numbers = self._sessions.get(key)
        return Waiting(numbers[0], self._exchanges[numbers[0]]) if numbers else None

    def remove(self, number: int) -> None:
        """Remove the oldest exchange of a session, unless it was dropped meanwhile."""
        exchange = self._exchanges.pop(number, None)
        if exchange is None:
            return
        self.bytes -= _OVERHEAD + exchange.size
        numbers = self._sessions[exchange.key]
        numbers.popleft()
        if not numbers:
            del self._sessions[exchange.key]

    def _put(self, number: int, exchange: Exchange) -> None:
        before = self._exchanges.get(number)
        self.bytes += exchange.size - before.size if before else exchange.size + _OVERHEAD
        self._exchanges[number] = exchange


def key_of(who: Principal, session: SessionRequest) -> Key:
    """Return what tells sessions apart. A key of a project never gets what is remembered of another one."""
    return who.pool_id, who.project, session.client, session.external_id


def _continues(exchange: Exchange, earlier: Exchange) -> bool:
    """Return whether the turns of an exchange contain those of an earlier one."""
    return not earlier.turns or any(turn.history == earlier.turns[-1].history for turn in exchange.turns)


def _usage(answer: ModelAnswer | None) -> ModelAnswer | None:
    return replace(answer, turns=()) if answer else None
