"""Re-embedding: how fast a pool moves to another model, without the time of the model itself."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import islice
from time import perf_counter

from esker.server.bench.bench_server import BenchServer
from esker.server.bench.figures import BenchFigure, Effort
from esker.server.bench.progress import BenchProgress
from esker.server.providers.embedders import make_embedder
from esker.server.providers.roles import Embedder
from esker.server.usecases.embed import BATCH
from esker.server.usecases.reembed import reembed


@dataclass(frozen=True, slots=True)
class _CountingWatcher:
    """Reports how many texts were re-embedded."""

    advance: Callable[[int], None]

    def step(self, what: str, total: int, done: int) -> AbstractContextManager[Callable[[int], None]]:
        """Continue the current step."""
        return nullcontext(self.advance)

    def waits(self, why: str) -> None:
        """Show nothing."""


async def measure_reembedding(
    place: BenchServer, effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    """Yield how many rows a second `esker reembed` moves to a model behind an endpoint that answers at once.

    The server's pool is moved once in each round, every time to another model.
    """
    found = await place.rows("some_rows", {"pool": place.pool_id, "limit": None})
    texts, seconds, floor_seconds, dimension = [content for _, content in found], 0.0, 0.0, 0
    total, endpoint = effort.rounds * len(texts), place.empty.base_url.join("/v1")
    with progress.step("Re-embedding", total) as advance:
        for number in range(effort.rounds):
            embedder = make_embedder(place.parts.settings, f"openai:{endpoint}#nothing-{number}")
            assert embedder is not None  # the setting names an embedder
            began = perf_counter()
            await reembed(place.parts, embedder, _CountingWatcher(advance))
            seconds += perf_counter() - began
            dimension = (await embedder.load()).dimension
            floor_seconds += await _without_keeping(embedder, texts)
            await embedder.close()
    at = f"{len(texts):,} rows, to {dimension:,} dimensions, by an endpoint that answers at once"
    yield BenchFigure("re-embed", at, "rows/s", total / seconds, "the endpoint alone", total / floor_seconds)


async def _without_keeping(embedder: Embedder, texts: Sequence[str]) -> float:
    """Return how many seconds it takes to embed texts, in calls of the same size, without storing the vectors."""
    began, left = perf_counter(), iter(texts)
    while some := list(islice(left, BATCH)):
        await embedder.embed(some)
    return perf_counter() - began
