"""Ends tasks."""

import asyncio
from typing import Any

AGAIN_SECONDS = 5.0
"""Seconds after which a task that has not ended is cancelled again."""


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, and return when all have ended; their errors stay in them, and are not logged.

    A task can lose a cancellation and go on: `asyncio.wait_for` of Python 3.11, which drivers use, swallows one that
    comes as its result does.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        ended, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
        for task in ended:
            # An error that nobody has asked for would be logged.
            _ = task.cancelled() or task.exception()
