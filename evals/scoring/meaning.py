"""How near texts are in meaning, by the bundled embedding model: the second look, where words differ."""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from esker.server.providers.local_embedder import LocalEmbedder
from evals.case_files import Language

ALONE: Mapping[Language, float] = {"en": 0.72, "de": 0.72, "es": 0.72, "zh": 0.85, "ja": 0.85}
"""Cosine from which two statements say the same. docs/evals.md says how it was found."""
BESIDE: Mapping[Language, float] = {"en": 0.5, "de": 0.5, "es": 0.6, "zh": 0.85, "ja": 0.85}
"""The same where one has all of the other that must stay letter by letter."""
THRESHOLDS = {"cosine": ALONE, "cosine beside what is exact": BESIDE}
"""As they are shown with the figures."""

Vector = npt.NDArray[np.float32]


class Meaning:
    """Cosines between statements; each is embedded once."""

    def __init__(self, threads: int = 2) -> None:
        """Take note of how many threads embed; the model is loaded when it is first needed."""
        self._threads = threads
        self._vectors: dict[str, Vector] = {}

    @cached_property
    def _embedder(self) -> LocalEmbedder:
        embedder = LocalEmbedder("bundled", threads=self._threads, source="evals")
        asyncio.run(embedder.load())
        return embedder

    def read(self, texts: Iterable[str]) -> None:
        """Embed texts that are going to be compared, many at a time."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            made = asyncio.run(self._embedder.embed(new))
            self._vectors |= zip(new, np.array(made, dtype=np.float32), strict=True)

    def cosine(self, first: str, second: str) -> float:
        """Return how near two texts are, from -1 to 1."""
        self.read((first, second))
        return float(self._vectors[first] @ self._vectors[second])
