"""What an observer, a reflector, a paraphraser, an embedder and a reranker can do, whoever plays the part."""

from collections.abc import Sequence
from typing import Protocol

from esker.server.core.facts.records import Observed, Reflected, ReflectionTask, TranscriptSlice
from esker.server.core.records import Space, TokenUse


class Meter(Protocol):
    """Counts what a language model costs, call by call."""

    async def allow(self, model: str) -> None:
        """Raise SpendCapReached when no call of a model may be made any more today."""
        ...

    async def record(self, model: str, used: TokenUse) -> None:
        """Count one call."""
        ...


class Observer(Protocol):
    """Turns a slice of a transcript into facts."""

    @property
    def name(self) -> str:
        """The model's name, or `extractive`: the rows say who made them."""
        ...

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return what is worth keeping; no facts is an answer. Raises ModelFailed, SpendCapReached."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Reflector(Protocol):
    """Condenses the rows of a session or of a pool."""

    @property
    def name(self) -> str:
        """The model's name, or `extractive`."""
        ...

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return a candidate: rows that stand for those of the task; none when there is nothing to gain.

        Whether it is good enough is for the caller to say. Raises ModelFailed, SpendCapReached.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Paraphraser(Protocol):
    """Says a question in other words."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def paraphrases(self, query: str, meter: Meter) -> list[str]:
        """Return a few paraphrases; an empty list is valid. Raises ModelFailed, SpendCapReached."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of one space. What the model wants before a text, it gets here."""

    @property
    def lanes(self) -> int:
        """How many calls at the same time are answered sooner than one after the other."""
        ...

    @property
    def space(self) -> Space | None:
        """The space of the vectors, or None until `load` has ended."""
        ...

    async def load(self) -> Space:
        """Get ready, once. Raises EmbedderDown, or Misconfigured when it never will be."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of length 1 for each text of a row. Raises EmbedderDown; TextRefused for one alone."""
        ...

    async def embed_queries(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of length 1 for each question. Raises EmbedderDown; TextRefused for one alone."""
        ...

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return each text in parts that the model reads whole; a text that it reads whole is its only part."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class Reranker(Protocol):
    """Says how well texts answer a question, which it reads together with each of them."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    @property
    def lanes(self) -> int:
        """How many calls at the same time are answered sooner than one after the other."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a call still goes on that was cancelled."""
        ...

    async def load(self) -> None:
        """Get ready, once. Raises RerankerDown, or Misconfigured when it never will be."""
        ...

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, higher where it answers better. Raises RerankerDown."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
