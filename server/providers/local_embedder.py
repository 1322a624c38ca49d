"""An embedding model in this process, on threads of its own."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from esker.server.core.arrays import Vectors
from esker.server.core.errors import EmbedderDown
from esker.server.core.records import Space
from esker.server.providers.pace import Pace
from esker.server.providers.thread_priority import model_thread


class LoadedModel(Protocol):
    """A model in memory. Its methods block; `split` may run in another thread than the others."""

    space: Space

    def of_rows(self, texts: list[str]) -> Vectors:
        """Return the vectors of rows, of length 1. Raises TextRefused."""
        ...

    def of_queries(self, texts: list[str]) -> Vectors:
        """Return the vectors of questions, of length 1. Raises TextRefused."""
        ...

    def split(self, texts: list[str]) -> list[list[str]]:
        """Return each text in parts that fit into the model."""
        ...


class LocalEmbedder:
    """A model that runs on a thread of its own, so that it does not block the event loop."""

    lanes = 1

    def __init__(self, load: Callable[[], LoadedModel], seconds: Callable[[], float] = time.monotonic) -> None:
        """`load` returns the model, which may take seconds, and raises Misconfigured if it cannot be loaded."""
        self._load = load
        self._seconds = seconds
        self._pace = Pace()
        self._is_patient = False
        self._executor = model_thread("embedder")
        # Counts tokens while the model is busy.
        self._counting = model_thread("tokenizer")
        self._loaded: LoadedModel | None = None

    @property
    def space(self) -> Space | None:
        """Return the space, or None until the model is loaded."""
        return self._loaded.space if self._loaded else None

    @property
    def portion(self) -> int:
        """Return how many characters of rows the next call should have."""
        return self._pace.characters

    def be_patient(self, patient: bool) -> None:
        """Let other processes go before the next calls, or stop doing so."""
        if patient != self._is_patient:
            self._is_patient = patient
            self._executor = model_thread("embedder", patient=patient, after=self._executor)
            self._counting = model_thread("tokenizer", patient=patient, after=self._counting)

    async def load(self) -> Space:
        """Load the model in a thread. Raises Misconfigured."""
        loop = asyncio.get_running_loop()
        self._loaded = loaded = self._loaded or await loop.run_in_executor(self._executor, self._load)
        return loaded.space

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of rows, of length 1. Raises EmbedderDown before `load` has ended; TextRefused."""
        begun = self._seconds()
        loop = asyncio.get_running_loop()
        vectors = await loop.run_in_executor(self._executor, self._model.of_rows, list(texts))
        self._pace.took(sum(map(len, texts)), self._seconds() - begun)
        return vectors

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return vectors of questions, of length 1. Raises EmbedderDown before `load` has ended; TextRefused."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._model.of_queries, list(texts))

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return each text in parts that fit into the model. Raises EmbedderDown before `load` has ended."""
        return await asyncio.get_running_loop().run_in_executor(self._counting, self._model.split, list(texts))

    async def close(self) -> None:
        """Do nothing: the model lives as long as the process."""

    @property
    def _model(self) -> LoadedModel:
        if self._loaded is None:
            raise EmbedderDown("The embedding model is still loading.")
        return self._loaded
