"""Pacing: an import runs at full speed while no other request is served, and otherwise gets half of the time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from esker.server.core.errors import TooManyRequests

_MOST_WAITING = 4
"""The most parts of imports that wait for their turn, with their bodies in memory."""
_RETRY_SECONDS = 5.0
_sleep = asyncio.sleep


class Pacing:
    """Turns of work that must not slow others: one at a time, and after each a rest of the same length if others
    came."""

    def __init__(self, admitted: Callable[[], int], seconds: Callable[[], float] | None = None) -> None:
        """`admitted` returns how many requests of others were admitted so far; `seconds` is a clock."""
        self._admitted = admitted
        self._seconds = seconds or (lambda: asyncio.get_running_loop().time())
        self._turn = asyncio.Lock()
        self._coming = 0
        self._admitted_before = 0
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
                await _sleep(self._rest())
                began, self._admitted_before = self._seconds(), self._admitted()
                try:
                    yield
                finally:
                    self._rest_until = 2 * self._seconds() - began
        finally:
            self._coming -= 1

    def _rest(self) -> float:
        """Return the seconds of the rest: none if no other request came since the last turn began."""
        if self._admitted() == self._admitted_before:
            return 0.0
        return max(0.0, self._rest_until - self._seconds())
