"""Threads that let others go first: other processes on the same machine, for which a user waits.

Linux lets an unprivileged process lower the priority of a thread, and never raise it again. So a thread that is to be
urgent again is replaced by a new one, which inherits the priority of the thread that starts it.
"""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

_NICENESS = 10
"""Added niceness of a patient thread: it gets a tenth of the processor time of an urgent one."""
_LEAST_URGENT = 19
_AUTOGROUP = Path("/proc/self/autogroup")


def model_thread(name: str, *, patient: bool = False, after: ThreadPoolExecutor | None = None) -> ThreadPoolExecutor:
    """Return an executor with one thread, which is patient or not; it begins when `after` has done its work."""

    def begin() -> None:
        if after:
            after.shutdown()
        if patient:
            lower_priority()
        if patient or after:
            _weigh_session(_NICENESS if patient else 0)

    return ThreadPoolExecutor(1, thread_name_prefix=name, initializer=begin)


def lower_priority() -> None:
    """Lower the priority of this thread, on systems where a thread can."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(_LEAST_URGENT, own + _NICENESS))


def _weigh_session(niceness: int) -> None:
    """Set the priority of this session, if this process began it, as the worker of `esker serve` does.

    With autogroups, Linux compares the niceness of whole sessions, and lets a process set it to 0 or more.
    """
    if sys.platform == "linux" and os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(niceness), encoding="ascii")
