"""What an observer, a reflector and an embedder can do, whoever plays the part."""

from collections.abc import Sequence
from typing import Protocol

from server.core.records import Memory, Observed, Reflected, Session, Space, TranscriptSlice


class Observer(Protocol):
    """Turns a slice of a transcript into facts."""

    @property
    def name(self) -> str:
        """The model's name, or `extractive`: the rows say who made them."""
        ...

    async def observe(self, shown: TranscriptSlice) -> Observed:
        """Return what is worth keeping; no facts is an answer. Raises ModelFailed."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Reflector(Protocol):
    """Condenses the rows of a session."""

    @property
    def name(self) -> str:
        """The model's name, or `extractive`."""
        ...

    async def reflect(self, session: Session, rows: Sequence[Memory], target_tokens: int) -> Reflected:
        """Return rows that stand for `rows` in about `target_tokens`; none when there is nothing to gain.

        Raises ModelFailed.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of one space."""

    @property
    def space(self) -> Space | None:
        """The space of the vectors, or None until `load` has ended."""
        ...

    async def load(self) -> Space:
        """Get ready, once. Raises EmbedderDown, or Misconfigured when it never will be."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of length 1 for each text. Raises EmbedderDown; TextRefused for one text alone."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
