"""Work of a hook in a process of its own, which may outlive the agent that called the hook."""

import os
import select
import signal
import sys
from collections.abc import Callable

from esker.server.agents.hook_context import ring

_MOST_SECONDS = 120.0


def in_background(
    awaited: Callable[[], None] | None,
    later: Callable[[], None] | None,
    patience: float,
    log: Callable[[str], None],
) -> None:
    """Do two parts of work, and wait at most `patience` seconds for the first one; `log` receives errors.

    The process has a session of its own, so that it survives when the client's processes are stopped, and none of the
    client's pipes, since some clients wait until these are closed. It ends after two minutes at most.
    """
    sys.stdout.flush()
    finished, writing = os.pipe()
    if os.fork() == 0:
        _run(awaited, writing, later, log)
    os.close(writing)
    if awaited:
        # Reading ends when the other process closes its end, also if it dies.
        select.select([finished], [], [], patience)
    os.close(finished)


def _run(
    awaited: Callable[[], None] | None, writing: int, later: Callable[[], None] | None, log: Callable[[str], None]
) -> None:
    """Do both parts and close `writing` between them, then end this process."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, _MOST_SECONDS)
        if awaited:
            awaited()
        os.close(writing)
        if later:
            later()
    except BaseException as error:  # noqa: BLE001 - a forked process has no caller to catch it
        log(f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)
