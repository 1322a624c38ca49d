"""Waiting for one of several events."""

import asyncio
from contextlib import suppress


async def either(*events: asyncio.Event, seconds: float | None = None) -> None:
    """Wait until one of the events is set or the time has passed."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
