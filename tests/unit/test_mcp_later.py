"""The tools over HTTP: no call is lost while their library is loaded, or after it failed."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from starlette.types import Receive, Scope, Send

from esker.server.background import beside
from esker.server.tools import mcp_later
from esker.server.tools.backend import Backend
from esker.server.tools.mcp_later import McpLater

NOTHING = cast(Any, None)


class Library:
    """Stands for the library: its first loads fail, and its sessions end with an error when told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.loads = 0
        self.answered: list[int] = []
        self.began = asyncio.Semaphore(0)
        self.crash = asyncio.Event()

    def load(self, backend: Backend) -> Any:
        """Return the app and the block in which it answers."""
        self.loads += 1
        if self.loads <= self.failures:
            raise ImportError("mcp")
        number = self.loads

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            self.answered.append(number)

        @asynccontextmanager
        async def running() -> AsyncGenerator[None]:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._crashing())
                self.began.release()
                yield

        return app, running()

    async def _crashing(self) -> None:
        await self.crash.wait()
        self.crash.clear()
        raise RuntimeError("sessions ended")


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Library], McpLater]:
    """Makes the tools load a library, and restarts them without a pause."""

    def used(library: Library) -> McpLater:
        monkeypatch.setattr(mcp_later, "_load", library.load)
        monkeypatch.setattr("esker.server.background._RESTART_SECONDS", 0)
        return McpLater(NOTHING)

    return used


def call(tools: McpLater) -> Awaitable[None]:
    """Call the tools."""
    return tools({"type": "http"}, NOTHING, NOTHING)


async def test_calls_wait_for_the_library_which_is_loaded_once(use: Callable[[Library], McpLater]) -> None:
    library = Library()
    tools = use(library)
    async with beside("the tools", tools.run):
        await asyncio.sleep(0)
        assert library.loads == 0, "not before the first call"
        await asyncio.gather(*(call(tools) for _ in range(8)))
    assert (library.loads, library.answered) == (1, [1] * 8)


async def test_a_call_is_answered_after_the_library_could_not_be_loaded_at_first(
    use: Callable[[Library], McpLater],
) -> None:
    library = Library(failures=2)
    tools = use(library)
    async with beside("the tools", tools.run):
        await call(tools)
    assert library.answered == [3]


async def test_a_call_after_the_sessions_crashed_reaches_the_new_ones(use: Callable[[Library], McpLater]) -> None:
    library = Library()
    tools = use(library)
    async with beside("the tools", tools.run):
        await call(tools)
        await library.began.acquire()
        library.crash.set()
        await library.began.acquire()
        await call(tools)
    assert library.answered == [1, 2]
