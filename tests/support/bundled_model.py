"""The bundled embedding model, which embeds the texts of its calibration once a process instead of once a server."""

from collections.abc import Awaitable, Callable, Sequence
from itertools import chain

from esker.server.core.arrays import Vectors
from esker.server.core.recall.calibration import calibration_texts
from esker.server.providers.library_model import LibraryModel
from esker.server.providers.local_embedder import LocalEmbedder

_OF_CALIBRATION = frozenset(chain.from_iterable(calibration_texts()))


class BundledModel(LocalEmbedder):
    """The model with one thread; loaded on first use."""

    def __init__(self) -> None:
        super().__init__(lambda: LibraryModel.loaded("bundled", 1, "sentence-transformers:bundled"))
        self._remembered: dict[tuple[str, ...], Vectors] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return await self._once(super().embed, ("rows", *texts))

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return await self._once(super().embed_queries, ("queries", *texts))

    async def _once(self, embed: Callable[[Sequence[str]], Awaitable[Vectors]], asked: tuple[str, ...]) -> Vectors:
        if asked in self._remembered:
            return self._remembered[asked]
        _, *texts = asked
        made = await embed(texts)
        if _OF_CALIBRATION.issuperset(texts):
            self._remembered[asked] = made
        return made
