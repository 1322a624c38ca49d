"""The bundled model as its library runs it: the floor of every figure that embeds."""

import os
import sys
import threading
from collections.abc import Sequence
from time import perf_counter
from typing import Any

from esker.server.providers.library_model import library_model

_NICENESS = 10
_LEAST_URGENT = 19


class PlainModel:
    """The model in this process, with as many threads as the server gives to its own. Calls block."""

    def __init__(self, threads: int) -> None:
        self._model: Any = library_model("bundled", threads)  # the overloads of `encode` are beyond a type checker

    def encode(self, texts: Sequence[str], at_a_time: int = 32) -> None:
        """Embed texts, `at_a_time` in a call; the library reads those of about the same length together."""
        self._model.encode(list(texts), batch_size=at_a_time, show_progress_bar=False)

    def seconds(self, texts: Sequence[str], at_a_time: int) -> float:
        """Return how many seconds `encode` takes."""
        began = perf_counter()
        self.encode(texts, at_a_time)
        return perf_counter() - began


def stand_back() -> None:
    """Lower the priority of this thread to that of the embedding worker, on systems where a thread can."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(_LEAST_URGENT, own + _NICENESS))
