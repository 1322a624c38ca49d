"""The embedding worker of `esker serve`: a child process that is started again when it dies."""

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from esker.server.core.child_command import child_command
from esker.server.core.clock import Clock
from esker.server.core.worker_health import WorkerHealth

_COMMAND = child_command("esker.embedding_worker", "--until-stdin-closes")
_SHUTDOWN_SECONDS = 5
_STABLE_SECONDS = 30.0
"""Seconds after which a running worker counts as healthy; a higher value keeps its deaths on record for longer."""
_LONGEST_PAUSE_SECONDS = 30.0
_CHUNK_BYTES = 64 * 1024


async def keep_worker(database_url: str, health: WorkerHealth, clock: Clock) -> None:
    """Run a worker, and another one when it dies, until cancelled; `health` records what it tells, and each death."""
    environment = dict(os.environ) | {"ESKER_DATABASE_URL": database_url}
    environment.pop("ESKER_DATABASE_URL_FILE", None)
    while True:
        printed = await _run_worker(environment, health, clock)
        health.died(printed)
        await asyncio.sleep(pause_seconds(health.deaths))


def pause_seconds(deaths: int) -> float:
    """Return how many seconds to wait before the next start, after this many deaths in a row."""
    return min(2.0 ** min(deaths, 10), _LONGEST_PAUSE_SECONDS)


async def _run_worker(environment: dict[str, str], health: WorkerHealth, clock: Clock) -> str:
    """Run a worker until it ends, and return the end of what it printed on standard error, which is passed on.

    When this is cancelled, the worker's standard input is closed, which ends it.
    """
    worker = await _start(environment)
    assert worker.stderr is not None  # it is a pipe
    assert worker.stdout is not None
    listening = asyncio.create_task(_listen(worker.stdout, health, clock))
    passing_on = asyncio.create_task(_pass_on(worker.stderr))
    stable = asyncio.get_running_loop().call_later(_STABLE_SECONDS, health.recovered)
    try:
        await worker.wait()
        await listening
        return f"{await passing_on}{_end_by_signal(worker)}"
    finally:
        stable.cancel()
        await _even_if_cancelled(_end(worker))
        listening.cancel()
        passing_on.cancel()


async def _start(environment: dict[str, str]) -> asyncio.subprocess.Process:
    """Start a worker; when this is cancelled, the worker has ended as well."""
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *_COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal goes to the whole group
        )
    )

    async def end() -> None:
        await _end(await starting)

    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await _even_if_cancelled(end())
        raise


def _end_by_signal(worker: asyncio.subprocess.Process) -> str:
    """Return a line about the signal that ended a worker; empty if it ended by itself."""
    number = -(worker.returncode or 0)
    why = ", as the system does when memory is short" if number == signal.SIGKILL else ""
    return f"\nsignal {number} killed it{why}\n" if number > 0 else ""


async def _listen(output: asyncio.StreamReader, health: WorkerHealth, clock: Clock) -> None:
    """Take what a worker tells of itself on its standard output, and pass on what a library prints there."""
    while line := await _line(output):
        if not health.told(line.decode("utf-8", "replace"), clock()):
            with suppress(OSError):
                os.write(sys.stderr.fileno(), line)


async def _line(output: asyncio.StreamReader) -> bytes:
    """Return the next line of an output, or a part of a long one; nothing at its end."""
    try:
        return await output.readuntil()
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await output.read(error.consumed)


async def _pass_on(output: asyncio.StreamReader) -> str:
    """Copy output to standard error until it ends, and return its last part."""
    last = b""
    while chunk := await output.read(_CHUNK_BYTES):
        last = (last + chunk)[-_CHUNK_BYTES:]
        with suppress(OSError):
            os.write(sys.stderr.fileno(), chunk)
    return last.decode("utf-8", "replace")


async def _even_if_cancelled(ending: Coroutine[Any, Any, None]) -> None:
    """Await something short to its end: a server that stops cancels its background work more than once."""
    task = asyncio.ensure_future(ending)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)


async def _end(worker: asyncio.subprocess.Process) -> None:
    if worker.returncode is not None:
        return
    assert worker.stdin is not None  # it is a pipe
    worker.stdin.close()
    try:
        async with asyncio.timeout(_SHUTDOWN_SECONDS):
            await worker.wait()
    except TimeoutError:
        worker.kill()
        await worker.wait()
