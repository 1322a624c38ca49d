"""Similarity in meaning by the bundled embedding model, used if the words of two texts differ."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from esker.server.providers.library_model import LibraryModel
from esker.server.providers.local_embedder import LocalEmbedder
from evals.case_files import Language

ALONE: Mapping[Language, float] = {"en": 0.72, "de": 0.72, "es": 0.72, "zh": 0.85, "ja": 0.85}
"""Cosine from which two statements mean the same. docs/evals.md explains how it was chosen."""
BESIDE: Mapping[Language, float] = {"en": 0.5, "de": 0.5, "es": 0.6, "zh": 0.85, "ja": 0.85}
"""The same cosine for two statements of which one has all exact words of the other."""
THRESHOLDS = {"cosine": ALONE, "cosine beside what is exact": BESIDE}
"""The thresholds by the names under which reports show them."""

EmbeddedStatement = npt.NDArray[np.float32]


class Meaning:
    """Cosines between statements; each is embedded once."""

    def __init__(self, threads: int = 2) -> None:
        """`threads` is the number of threads of the model, which is loaded on first use."""
        self._threads = threads
        self._vectors: dict[str, EmbeddedStatement] = {}

    @cached_property
    def _embedder(self) -> LocalEmbedder:
        embedder = LocalEmbedder(lambda: LibraryModel.loaded("bundled", self._threads, "evals"))
        asyncio.run(embedder.load())
        return embedder

    def read(self, texts: Iterable[str]) -> None:
        """Embed texts that will be compared, in one batch."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            made = asyncio.run(self._embedder.embed(new))
            self._vectors |= zip(new, made, strict=True)

    def cosine(self, first: str, second: str) -> float:
        """Return the cosine of two texts, from -1 to 1."""
        self.read((first, second))
        return float(self._vectors[first] @ self._vectors[second])
