"""Clearing up after a run by a process of its own, which outlives the others, also when they are killed."""

import ctypes
import fcntl
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from esker.server.core.errors import Unavailable
from esker.server.core.stop_signals import stop_signals
from esker.server.db import postmaster

_IN_USE = "in-use"
"""A file of the folder that the processes of a run have locked together, until the last of them ends."""
_TRIES = 100
_SIGNAL_OF_PARENTS_DEATH = 1  # PR_SET_PDEATHSIG


def clear_up_after(folder: Path) -> tuple[int, int]:
    """Start the process that empties and removes `folder` after a run; return its id, and a file that holds it back.

    It waits until this process and all that are forked from it have closed the file, or have ended.
    """
    held = os.open(folder / _IN_USE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(held, fcntl.LOCK_SH)
    if not (pid := os.fork()):
        _clear_up(folder, held)
    return pid, held


def is_in_use(folder: Path) -> bool:
    """Return whether a process of the run still uses its folder, or clears it up."""
    with suppress(FileNotFoundError), open(folder / _IN_USE, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def clear(folder: Path) -> None:
    """Stop each Postgres in a folder, and remove the folder."""
    for _ in range(_TRIES):  # a server that is about to stop may still write
        for file in folder.rglob("postmaster.pid"):
            with suppress(Unavailable):
                postmaster.stop(file.parent)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return


def end_with_parent(parent: int) -> None:
    """Let this process end as at Ctrl-C when it is stopped, once, and also when its parent is killed (on Linux)."""
    for number in stop_signals():
        signal.signal(number, _end)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SIGNAL_OF_PARENTS_DEATH, signal.SIGTERM)
        if os.getppid() != parent:  # it was killed before
            raise KeyboardInterrupt


def ignore_stops() -> None:
    """Let nothing but SIGKILL keep this process from stopping its servers."""
    for number in stop_signals():
        signal.signal(number, signal.SIG_IGN)


def _end(*_: int | FrameType | None) -> NoReturn:
    ignore_stops()
    raise KeyboardInterrupt


def _clear_up(folder: Path, held: int) -> NoReturn:
    """Wait for the end of all others, and clear up."""
    try:
        ignore_stops()
        os.setsid()  # a signal to the group of the others is not for this process
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        os.close(held)
        with open(folder / _IN_USE, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            clear(folder)
    finally:
        os._exit(0)
