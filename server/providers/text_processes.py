"""Runs work on long texts in child processes.

In this process, it would hold the interpreter's lock again and again, and every other request would wait: 8 MB of text
take half a minute of CPU time.
"""

import asyncio
import pickle
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

from esker.server.core.child_command import child_command
from esker.server.core.errors import Unavailable
from esker.server.providers import text_child
from esker.server.providers.text_child import LENGTH_BYTES, packed

LONG = 48_000
"""Characters from which a child process does the work; a thread needs about 50 ms for fewer."""
_MOST_CHILDREN = 2
# A text that ends its child, such as by taking all memory, is tried once more, since another program may be the reason.
_TRIES = 2

_A = TypeVarTuple("_A")
_T = TypeVar("_T")


class TextProcesses:
    """Child processes, which are started with the first long texts. They serve one event loop.

    `idle_seconds`: how long a child waits for more work before it ends and gives its memory back.
    """

    def __init__(self, idle_seconds: float = 60.0) -> None:
        self._idle_seconds = idle_seconds
        self._turns = asyncio.Semaphore(_MOST_CHILDREN)
        self._idle: list[Process] = []
        self._killed: set[Process] = set()
        self._rest: asyncio.TimerHandle | None = None

    async def run(self, characters: int, work: Callable[[Unpack[_A]], _T], *arguments: *_A) -> _T:
        """Return the result of pure work on a text of about `characters` characters; a short one is done in a thread.

        The work is a function of a module, and its arguments and its result can be pickled. Raises what it raises, and
        Unavailable if its process dies twice.
        """
        if characters < LONG:
            return await asyncio.to_thread(work, *arguments)
        request = await asyncio.to_thread(packed, (work, arguments))
        async with self._turns:
            answer = await self._answer(request)
        result, error = await asyncio.to_thread(pickle.loads, answer)
        if error is not None:
            raise error
        return result

    async def _answer(self, request: bytes) -> bytes:
        for _ in range(_TRIES):
            child = await self._child()
            try:
                answer = await _exchange(child, request)
            except (asyncio.IncompleteReadError, ConnectionError):
                continue  # it was killed
            except BaseException:
                child.kill()  # nobody waits for its answer any more
                self._killed = {each for each in self._killed if each.returncode is None} | {child}
                raise
            self._idle.append(child)
            self._end_later()
            return answer
        raise Unavailable("The process that reads long texts was killed twice.", hint="Give the server more memory.")

    async def _child(self) -> Process:
        while self._idle:
            if (child := self._idle.pop()).returncode is None:
                return child
        return await asyncio.create_subprocess_exec(*child_command(text_child.__name__), stdin=PIPE, stdout=PIPE)

    def _end_later(self) -> None:
        if self._rest:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(self._idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        for child in self._idle:
            assert child.stdin is not None  # it was started with a pipe
            child.stdin.close()
        self._idle.clear()

    async def close(self) -> None:
        """End the children that have no work, and wait for the end of those that were killed."""
        if self._rest:
            self._rest.cancel()
        ending = [*self._idle, *self._killed]
        self._end_idle()
        for child in ending:
            await child.wait()


async def _exchange(child: Process, request: bytes) -> bytes:
    """Send a child its work, and return the answer. Raises IncompleteReadError or ConnectionError if the child dies."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(request)
    await child.stdin.drain()
    length = int.from_bytes(await child.stdout.readexactly(LENGTH_BYTES))
    return await child.stdout.readexactly(length)
