"""Embedders for queries: the one that is configured, and those of spaces that pools still use while others are built.

Each is made from the setting that its space keeps as `source`, and loaded in the background at its first use. Until
then, or if that fails for good, it reports why it cannot answer.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from esker.server.core.arrays import Vector
from esker.server.core.errors import EmbedderDown, EskerError, Misconfigured
from esker.server.core.records import Space
from esker.server.providers.query_batches import QueryBatches
from esker.server.providers.roles import Embedder

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 60.0
_LOADING = "the embedding model is still loading"


@dataclass(slots=True)
class _Loading:
    """An embedder that is being loaded; `reason` says why it is not ready."""

    embedder: Embedder | None
    reason: str
    queries: QueryBatches | None = None
    task: asyncio.Task[None] | None = None
    tried: asyncio.Event = field(default_factory=asyncio.Event)


class QueryEmbedders:
    """The embedders of one process, by setting."""

    def __init__(self, make: Callable[[str], Embedder | None], setting: str, remembered: int = 0) -> None:
        """`make` returns the embedder of a setting; `setting` is the one to load first.

        The vectors of the last `remembered` questions are cached, for each embedder.
        """
        self._make = make
        self._setting = setting
        self._remembered = remembered
        self._loading: dict[str, _Loading] = {}

    def start(self) -> None:
        """Begin to load the configured embedder."""
        self._wanted(self._setting)

    @property
    def state(self) -> str:
        """The configured model, or why it is not ready."""
        embedder = self._wanted(self._setting).embedder
        return embedder.space.model if embedder and embedder.space else self._wanted(self._setting).reason

    @property
    def broken(self) -> str | None:
        """Why the configured embedder does not work, now or for good; None when it works or is loading."""
        loading = self._wanted(self._setting)
        there = loading.embedder is not None and loading.embedder.space is not None
        return None if there or loading.reason == _LOADING else loading.reason

    def prepare(self, source: str) -> None:
        """Begin to load the embedder of `source`, unless that has begun."""
        self._wanted(source)

    async def tried(self, source: str) -> None:
        """Wait until the embedder of `source` is ready or has failed to load."""
        await self._wanted(source).tried.wait()

    async def embed(self, source: str, space: str, query: str) -> Vector:
        """Return the vector of a query in the space that `source` made.

        Raises EmbedderDown with the reason; TextRefused.
        """
        loading = self._wanted(source)
        there = loading.embedder.space if loading.embedder else None
        if loading.queries is None or there is None:
            raise EmbedderDown(loading.reason)
        if there.name != space:
            raise EmbedderDown("the pool's vectors are being rebuilt for another version of the model")
        return await loading.queries.embed(query)

    async def close(self) -> None:
        """Stop loading, and close connections."""
        for loading in self._loading.values():
            if loading.task:
                loading.task.cancel()
                await asyncio.gather(loading.task, return_exceptions=True)
            if loading.queries:
                await loading.queries.close()
            if loading.embedder:
                await loading.embedder.close()

    def _wanted(self, setting: str) -> _Loading:
        if setting not in self._loading:
            self._loading[setting] = loading = _Loading(None, _LOADING)
            try:
                loading.embedder = self._make(setting)
            except Misconfigured as error:
                loading.reason = str(error)
            if loading.embedder:
                loading.queries = QueryBatches(loading.embedder, self._remembered)
                if loading.embedder.space is None:
                    loading.task = asyncio.create_task(_load(loading, loading.embedder))
            if loading.task is None:
                loading.tried.set()
        return self._loading[setting]


async def _load(loading: _Loading, embedder: Embedder) -> None:
    while True:
        try:
            space: Space = await embedder.load()
            log.info("queries are embedded with %s", space.model)
            return
        except Misconfigured as error:
            loading.reason = str(error)
            log.error("%s Recall works by keyword only. %s", error, error.hint or "")
            return
        except EskerError as error:
            loading.reason = str(error)
            log.warning("%s Trying again in a minute.", error)
            await asyncio.sleep(_AGAIN_SECONDS)
        except Exception as error:
            loading.reason = (
                f"the embedding model cannot be loaded ({type(error).__name__}); the server's log says more"
            )
            log.exception("the embedding model cannot be loaded")
            return
        finally:
            loading.tried.set()
