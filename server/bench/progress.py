"""Progress: how those who measure tell how far they are."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol


class BenchProgress(Protocol):
    """Shows steps, one after the other."""

    def step(self, what: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Show a step of so many units while the block runs; what it yields is called with units that are done."""
        ...
