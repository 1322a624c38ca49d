"""The interfaces of an observer, a reflector, a paraphraser, an embedder and a reranker."""

from collections.abc import Sequence
from typing import Protocol

from esker.server.core.arrays import Vectors
from esker.server.core.budgets import ObserverBudget
from esker.server.core.facts.records import Observed, Reflected, ReflectionTask, TranscriptSlice
from esker.server.core.records import Space, TokenUse


class Meter(Protocol):
    """Counts the token use of a language model, call by call."""

    async def reserve(self, model: str, most: TokenUse) -> str:
        """Count a call before it is made, at the most that it may use; return its id. Raises SpendCapReached."""
        ...

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Count what a reserved call of a model has used; None: it was not made."""
        ...


class Observer(Protocol):
    """Turns a slice of a transcript into facts."""

    @property
    def name(self) -> str:
        """The model's name, or `extractive`; it is stored as the author of the rows."""
        ...

    async def budget(self) -> ObserverBudget:
        """Return how much of each part one call may be shown."""
        ...

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts worth keeping, which may be none. Raises ModelFailed, SpendCapReached."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class Reflector(Protocol):
    """Condenses the rows of a session or of a pool."""

    @property
    def name(self) -> str:
        """The model's name, or `extractive`."""
        ...

    async def batch_tokens(self) -> int:
        """Return the most tokens of rows in one task; a larger row is a task of its own."""
        ...

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return a candidate: rows that replace those of the task, or none if they cannot be condensed.

        The caller decides whether it is good enough. Raises ModelFailed, SpendCapReached.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
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
        """Close connections."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors of one space; it adds the prefix that the model expects."""

    @property
    def lanes(self) -> int:
        """Maximum number of concurrent calls that are faster than sequential ones."""
        ...

    @property
    def space(self) -> Space | None:
        """The space of the vectors, or None until `load` has ended."""
        ...

    @property
    def portion(self) -> int:
        """Characters of rows that the next call should have at most, so that it ends in seconds."""
        ...

    def be_patient(self, patient: bool) -> None:
        """Let other processes on this machine go before the next calls, or stop doing so."""
        ...

    async def load(self) -> Space:
        """Get ready, once. Raises EmbedderDown, or Misconfigured if it can never be ready."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each text of a row.

        Raises EmbedderDown; CallFailed if it may be down or a text the reason; TextRefused if a text is.
        """
        ...

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one vector of length 1 for each question. Raises the same as `embed`."""
        ...

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return each text in parts that fit into the model; a text that fits is its only part."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class Reranker(Protocol):
    """Scores how well each text answers a question, reading both together."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    @property
    def lanes(self) -> int:
        """Maximum number of concurrent calls that are faster than sequential ones."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a cancelled call is still running."""
        ...

    async def load(self) -> None:
        """Get ready, once. Raises RerankerDown, or Misconfigured if it can never be ready."""
        ...

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text, higher where it answers better. Raises RerankerDown."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
