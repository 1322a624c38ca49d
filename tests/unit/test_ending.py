"""Tasks end although one of their waits loses a cancellation."""

import asyncio

import pytest

from esker.server.db import ending
from esker.server.db.ending import end


async def test_a_task_that_loses_a_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "AGAIN_SECONDS", 0.01)
    lost: list[str] = []

    async def loses_the_first() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if lost:
                    raise
                lost.append("once")

    async def fails_at_its_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise ValueError

    tasks = asyncio.create_task(loses_the_first()), asyncio.create_task(fails_at_its_end())
    await asyncio.sleep(0)
    await end(*tasks)
    assert (lost, tasks[0].cancelled()) == (["once"], True)
    assert isinstance(tasks[1].exception(), ValueError)
    await end()
