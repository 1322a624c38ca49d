"""Waiting for a state that nothing announces: look, pause a little longer each time, and look again.

Looking without a pause would take the processor from what is awaited, the more so the busier the machine is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

PATIENCE = 880
"""Seconds that a test waits for an answer or a process: a busy machine is no fault, and the suite's timeout is near."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.2
"""Seconds between the first two looks and, later, between any two."""

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], holds: Callable[[T], object] = bool) -> T:
    """Look until the result holds, and return it; the suite's timeout is the limit."""
    pauses = _pauses()
    while not holds(seen := await look()):  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(next(pauses))
    return seen


def eventually_here(look: Callable[[], T], holds: Callable[[T], object] = bool) -> T:
    """Do the same in a test that blocks."""
    pauses = _pauses()
    while not holds(seen := look()):
        time.sleep(next(pauses))
    return seen


def _pauses() -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        yield pause
        pause = min(1.5 * pause, _LONGEST_PAUSE)
