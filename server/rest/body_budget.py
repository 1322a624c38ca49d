"""How many bytes of request bodies a server has in memory at once: a large body waits for its place, or is refused.

A body takes several times its size while it is parsed and stored. `docs/decisions/load.md` has the figures.
"""

import asyncio
import random
from collections import deque
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server.core.errors import TooManyRequests
from esker.server.rest.problems import problem_of

WAIT_SECONDS = 5.0
"""The most seconds that a body waits for its place."""
_SMALL = 256 * 1024
"""Bytes of a body that are read without a place, however many bodies there are."""
# Seconds of Retry-After, drawn at random: the largest body takes some ten seconds.
_RETRY_AFTER = (5.0, 15.0)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A body that waits for its place; `admitted` ends with it."""

    size: int
    admitted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class BodyBudget:
    """The bytes of large bodies that are received or worked on, at most `most` together, in order of arrival.

    A body that is larger than all of `most` gets its place alone.
    """

    def __init__(self, most: int, wait_seconds: float = WAIT_SECONDS) -> None:
        self._most = most
        self.wait_seconds = wait_seconds
        self.held = 0
        self._queue: deque[_Waiting] = deque()

    async def take(self, size: int) -> None:
        """Wait for a place; `give_back` must follow. Raises TooManyRequests if the wait is too long."""
        if not self._queue and self._fits(size):
            self.held += size
            return
        waiting = _Waiting(size)
        self._queue.append(waiting)
        try:
            await asyncio.wait([waiting.admitted], timeout=self.wait_seconds)
        except asyncio.CancelledError:
            self._give_up(waiting)
            raise
        if not waiting.admitted.done():
            self._give_up(waiting)
            raise TooManyRequests(
                "The server has as many large bodies as it has memory for; nothing was changed.",
                seconds=random.uniform(*_RETRY_AFTER),  # noqa: S311 - only to spread the retries
                hint="Wait as many seconds as Retry-After says, or send smaller batches.",
            )

    def give_back(self, size: int) -> None:
        """End the place of a body, and give what is free to those that wait."""
        self.held -= size
        while self._queue and self._fits(self._queue[0].size):
            waiting = self._queue.popleft()
            self.held += waiting.size
            waiting.admitted.set_result(None)

    def _fits(self, size: int) -> bool:
        return self.held == 0 or self.held + size <= self._most

    def _give_up(self, waiting: _Waiting) -> None:
        if waiting.admitted.done():
            self.give_back(waiting.size)
        else:
            self._queue.remove(waiting)
            # Those behind it may be small enough for what is free.
            self.give_back(0)


class BoundedBodies:
    """ASGI middleware that continues to read a large body only when there is memory for it.

    A route that waits for others calls `scope["state"]["body_is_read"]` before, which gives the place back.
    """

    def __init__(self, app: ASGIApp, budget: BodyBudget, max_body_bytes: int) -> None:
        """`max_body_bytes` counts for a large body that does not tell its length."""
        self._app = app
        self._budget = budget
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on. `receive` raises TooManyRequests in the reader of a body that got no place in time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        size = int(Headers(scope=scope).get("content-length") or self._max_body_bytes)
        read, held, has_more = 0, 0, True

        async def receive_bounded() -> Message:
            nonlocal read, held, has_more
            if has_more and not held and read > _SMALL:
                await self._budget.take(size)
                held = size
            message = await receive()
            read += len(message.get("body", b""))
            has_more = message.get("more_body", False)
            return message

        def give_back() -> None:
            nonlocal held
            if held:
                self._budget.give_back(held)
            held = 0

        scope.setdefault("state", {})["body_is_read"] = give_back
        try:
            await self._app(scope, receive_bounded, send)
        except TooManyRequests as error:
            await problem_of(error)(scope, receive, send)
        finally:
            give_back()
