"""The bundled model as its library runs it: the floor of every figure that embeds."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from esker.server.providers.library_model import library_model


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
