"""Compute the parameters of the next statement in a thread while Postgres runs the present one."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


async def computed_ahead(compute: Callable[[Given], Made], given: Iterable[Given]) -> AsyncGenerator[Made]:
    """Yield `compute` of each value in order; each is computed in a thread while the caller uses the one before."""
    coming: asyncio.Task[Made] | None = None
    try:
        for value in given:
            made = [await coming] if coming else []
            coming = asyncio.create_task(asyncio.to_thread(compute, value))
            for one in made:
                yield one
        if coming:
            yield await coming
    finally:
        if coming:
            coming.cancel()
