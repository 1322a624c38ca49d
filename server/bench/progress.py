"""The interface with which measurements report their progress."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class BenchProgress(Protocol):
    """Shows steps, one after the other."""

    def step(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show a step of `total` units during the block; yield a function to call with the number of finished units."""
        ...
