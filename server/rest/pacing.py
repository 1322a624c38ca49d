"""Pacing: an import goes on at full speed when the server has nothing else to do, and else gets half of its time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from esker.server.core.errors import TooManyRequests

_MOST_WAITING = 4
"""The most parts of imports that wait for their turn, with their bodies in memory."""
_RETRY_SECONDS = 5.0
_LOOK_SECONDS = 0.02


class Pacing:
    """Turns of work that must not slow others: one at a time, with a rest after each while others are served.

    A rest is as long as the turn before it was, and ends as soon as nobody else is served.
    """

    def __init__(self, others: Callable[[], int]) -> None:
        """`others` returns how many other requests are at work or wait."""
        self._others = others
        self._turn = asyncio.Lock()
        self._coming = 0
        self._rest_until = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Run the block when it is its turn. Raises TooManyRequests if too many wait for theirs."""
        if self._coming > _MOST_WAITING:
            raise TooManyRequests(
                "Too many imports are running.", seconds=_RETRY_SECONDS, hint="Wait until another one has ended."
            )
        self._coming += 1
        try:
            async with self._turn:
                await self._rest()
                began = _now()
                try:
                    yield
                finally:
                    self._rest_until = _now() + (_now() - began)
        finally:
            self._coming -= 1

    async def _rest(self) -> None:
        while _now() < self._rest_until and self._others():  # noqa: ASYNC110 - a poll costs less than a signal a request
            await asyncio.sleep(_LOOK_SECONDS)


def _now() -> float:
    return asyncio.get_running_loop().time()
