"""A long text is read in a child process, which ends with its work and with its parent."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator

import pytest

from esker.server.core.child_command import child_command
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.providers import text_child, text_processes
from esker.server.providers.embedders import make_embedder
from esker.server.providers.text_processes import LONG, TextProcesses
from tests.support.processes import ROOT
from tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def _own_children(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Start children as a server does, and not as other tests do."""
    monkeypatch.setattr(text_processes, "child_command", child_command)


@pytest.fixture
async def processes() -> AsyncGenerator[TextProcesses]:
    made = TextProcesses()
    yield made
    await made.close()


async def test_only_the_work_on_a_long_text_leaves_the_process(processes: TextProcesses) -> None:
    assert await processes.run(LONG - 1, os.getpid) == os.getpid()
    assert await processes.run(LONG, os.getpid) != os.getpid()


async def test_a_child_is_used_again(processes: TextProcesses) -> None:
    assert await processes.run(LONG, os.getpid) == await processes.run(LONG, os.getpid)


async def test_what_is_printed_does_not_get_into_an_answer(processes: TextProcesses) -> None:
    assert await processes.run(LONG, print, "printed") is None
    assert await processes.run(LONG, len, "after") == 5


async def test_an_error_comes_back_as_it_was_raised(processes: TextProcesses) -> None:
    with pytest.raises(Misconfigured, match="does not name an embedder") as caught:
        await processes.run(LONG, make_embedder, Settings(), "nothing")
    with pytest.raises(Misconfigured) as direct:
        make_embedder(Settings(), "nothing")
    assert (str(caught.value), caught.value.hint) == (str(direct.value), direct.value.hint)
    assert await processes.run(LONG, len, "abc") == 3


async def test_work_that_kills_its_process_is_refused_and_the_next_is_done(processes: TextProcesses) -> None:
    with pytest.raises(Unavailable):
        await processes.run(LONG, os._exit, 3)
    assert await processes.run(LONG, len, "abc") == 3


async def test_work_is_done_again_after_its_process_was_killed(processes: TextProcesses) -> None:
    first = await processes.run(LONG, os.getpid)
    os.kill(first, signal.SIGKILL)
    assert await processes.run(LONG, os.getpid) != first


async def test_work_that_nobody_waits_for_is_ended(processes: TextProcesses) -> None:
    child = await processes.run(LONG, os.getpid)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(processes.run(LONG, time.sleep, 3600), 0.1)
    await end_of(child)


async def test_a_child_without_work_ends() -> None:
    processes = TextProcesses(idle_seconds=0)
    await end_of(await processes.run(LONG, os.getpid))


async def test_closing_ends_the_children() -> None:
    processes = TextProcesses()
    child = await processes.run(LONG, os.getpid)
    await processes.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


async def test_closing_waits_for_a_child_whose_work_nobody_waits_for() -> None:
    processes = TextProcesses()
    child = await processes.run(LONG, os.getpid)
    working = asyncio.create_task(processes.run(LONG, time.sleep, 3600))
    await eventually(lambda: _is_busy(processes))
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    await processes.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


async def _is_busy(processes: TextProcesses) -> bool:
    return not processes._idle


def test_a_child_ends_when_its_parent_is_killed() -> None:
    program = (
        "import asyncio, os\n"
        "from esker.server.providers.text_processes import LONG, TextProcesses\n"
        "async def main():\n"
        "    print(await TextProcesses().run(LONG, os.getpid), flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        wait_for(child)


def test_a_child_says_nothing_of_an_answer_that_its_killed_parent_cannot_read() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-P", "-m", text_child.__name__]
    work = text_child.packed((len, ("abc",)))
    child = subprocess.run(command, cwd=ROOT, input=work, stdout=writing, stderr=subprocess.PIPE, check=True)
    os.close(writing)
    assert child.stderr == b""


async def end_of(process: int) -> None:
    """Wait until a process has ended."""
    with contextlib.suppress(ProcessLookupError):
        await asyncio.to_thread(wait_for, os.pidfd_open(process))


def wait_for(handle: int) -> None:
    """Wait until the process of a handle has ended."""
    ended, _, _ = select.select([handle], [], [], 60)
    os.close(handle)
    assert ended, "the process did not end"
