"""Admission: how many requests a server works on at a time, and who waits for a turn or is refused.

Without it, each of five hundred requests would get a five-hundredth of the processor and of the connections to
Postgres, and all of them would fail together. `docs/decisions/load.md` has the figures.
"""

import asyncio
import itertools
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.datastructures import Headers, QueryParams
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server.core.errors import TooManyRequests
from esker.server.core.records import Principal
from esker.server.rest.problems import problem_of

WAIT_SECONDS = 3.0
"""The most seconds that a request waits for its turn."""
NOT_COUNTED = frozenset({"/livez", "/readyz", "/metrics"})
"""Paths that are always answered."""
GATEWAY = "/gateway/"
"""The prefix of the paths of requests to models."""
_PACED = "/v1/import"
"""The path of imports, which have turns of their own (`pacing.py`)."""
_JOBS = re.compile(r"/(?:observe|reflect)$")
# Seconds of Retry-After, drawn at random, so that the refused requests do not come back together.
_RETRY_AFTER = (1.0, 3.0)


class Caller(NamedTuple):
    """Whose request it is: the pool, and the key in it."""

    pool: str
    key: str


@dataclass(slots=True, eq=False)
class _Turn:
    """A request that waits; `admitted` ends with its turn, or with its refusal."""

    caller: Caller
    number: int
    admitted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Admission:
    """The requests at work and those that wait, both bounded.

    The next turn belongs to the pool with the fewest requests at work, and in it to the key with the fewest. When the
    queue is full, a request replaces the last one of the caller that has most; so a caller with many requests neither
    delays nor displaces one with few.
    """

    def __init__(self, at_work: int, waiting: int, wait_seconds: float = WAIT_SECONDS) -> None:
        """`at_work` and `waiting` are the most requests of each kind."""
        self._most_at_work = at_work
        self._most_waiting = waiting
        self._wait_seconds = wait_seconds
        self._pools: Counter[str] = Counter()
        self._callers: Counter[Caller] = Counter()
        self._queue: list[_Turn] = []
        self.admitted = 0
        """How many requests got a turn so far."""
        self._numbers = itertools.count()

    @property
    def at_work(self) -> int:
        """The number of requests at work."""
        return self._callers.total()

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a turn."""
        return len(self._queue)

    async def enter(self, caller: Caller) -> None:
        """Wait for a turn; `leave` must follow. Raises TooManyRequests if the queue is full, or the wait too long."""
        if self.at_work < self._most_at_work and not self._queue:
            self._begin(caller)
            return
        if len(self._queue) >= self._most_waiting:
            self._make_room(caller)
        turn = _Turn(caller, next(self._numbers))
        self._queue.append(turn)
        try:
            await asyncio.wait([turn.admitted], timeout=self._wait_seconds)
        except asyncio.CancelledError:
            self._give_up(turn)
            raise
        if not turn.admitted.done():
            self._queue.remove(turn)
            raise too_many()
        turn.admitted.result()

    def leave(self, caller: Caller) -> None:
        """End a request that was at work, and give its place to another."""
        self._pools -= Counter([caller.pool])
        self._callers -= Counter([caller])
        if self._queue:
            turn = min(self._queue, key=self._share)
            self._queue.remove(turn)
            self._begin(turn.caller)
            turn.admitted.set_result(None)

    def _begin(self, caller: Caller) -> None:
        self.admitted += 1
        self._pools[caller.pool] += 1
        self._callers[caller] += 1

    def _share(self, turn: _Turn) -> tuple[int, int, int]:
        return self._pools[turn.caller.pool], self._callers[turn.caller], turn.number

    def _give_up(self, turn: _Turn) -> None:
        """Take back a turn whose request was cancelled while it waited."""
        if turn in self._queue:
            self._queue.remove(turn)
        elif turn.admitted.done() and turn.admitted.exception() is None:
            self.leave(turn.caller)

    def _make_room(self, caller: Caller) -> None:
        """Refuse the last request of the caller that has most. Raises TooManyRequests if the caller would have as
        many."""
        if not self._queue:
            raise too_many()
        pools = self._pools + Counter(turn.caller.pool for turn in self._queue)
        callers = self._callers + Counter(turn.caller for turn in self._queue)
        last = max(self._queue, key=lambda turn: (pools[turn.caller.pool], callers[turn.caller], turn.number))
        if last.caller.pool == caller.pool:
            more = callers[last.caller] - callers[caller]
        else:
            more = pools[last.caller.pool] - pools[caller.pool]
        if more <= 1:
            raise too_many()
        self._queue.remove(last)
        last.admitted.set_exception(too_many())


class Admitted:
    """ASGI middleware that admits a request once its body has arrived, until its answer begins.

    A client that sends or reads slowly takes nobody's turn. Health checks and metrics are always answered. An import is
    not counted, nor is a request that waits for a job (`wait=true`) or a model: the job runner limits jobs.
    """

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when it is its turn, or refuse it."""
        principal: Principal | None = scope.get("state", {}).get("principal")
        # Health checks and signing in to the page have no caller.
        if principal is None or scope["path"] in {*NOT_COUNTED, _PACED} or _waits(scope):
            await self._app(scope, receive, send)
            return
        turn = _Admittance(self._admission, Caller(principal.pool_id, principal.actor))

        async def receive_all() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                await turn.take()
            return message

        async def send_all(message: Message) -> None:
            if message["type"] == "http.response.start":
                turn.give_back()
            await send(message)

        try:
            if not _has_body(scope):
                await turn.take()
            await self._app(scope, receive_all, send_all)
        except TooManyRequests as error:
            await problem_of(error)(scope, receive, send)
        finally:
            turn.give_back()


class _Admittance:
    """The turn of one request, which it takes once and gives back once."""

    def __init__(self, admission: Admission, caller: Caller) -> None:
        self._admission = admission
        self._caller = caller
        self._has_begun = False
        self._leave: Callable[[], None] | None = None

    async def take(self) -> None:
        """Wait for the turn, unless it was taken already. Raises TooManyRequests."""
        if self._has_begun:
            return
        self._has_begun = True
        await self._admission.enter(self._caller)
        self._leave = lambda: self._admission.leave(self._caller)

    def give_back(self) -> None:
        """Leave, if the turn was taken and not given back yet."""
        leave, self._leave = self._leave, None
        if leave:
            leave()


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _waits(scope: Scope) -> bool:
    """Return whether a request waits for something other than this server: for a job, or for a model."""
    if scope["path"].startswith(GATEWAY):
        return True
    return bool(_JOBS.search(scope["path"])) and "wait" in QueryParams(scope["query_string"])


def too_many() -> TooManyRequests:
    """Return the refusal of a request that the server cannot answer soon."""
    return TooManyRequests(
        "The server has more requests than it can answer now; nothing was changed.",
        seconds=random.uniform(*_RETRY_AFTER),  # noqa: S311 - only to spread the retries
        hint="Wait as many seconds as Retry-After says.",
    )
