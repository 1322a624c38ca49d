"""The time to embed questions, one alone and several at once."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from esker.server.bench.bench_server import MODEL, BenchServer
from esker.server.bench.figures import BenchFigure, Effort, timed
from esker.server.bench.plain_model import PlainModel
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer
from esker.server.providers.embedders import make_embedder
from esker.server.providers.query_embedders import QueryEmbedders


@dataclass(frozen=True, slots=True)
class _QuestionLoad:
    """A number of questions that arrive at once."""

    name: str
    at: str
    together: int
    floor: str


_SORTS = (
    _QuestionLoad("query embedding", "one question", 1, "the model's library with it"),
    _QuestionLoad(
        "query embedding, 8 at once", "until all are answered", 8, "the model's library with one, eight times"
    ),
)

_Embed = Callable[[str], Awaitable[object]]


async def measure_questions(place: BenchServer, effort: Effort, progress: BenchProgress) -> AsyncGenerator[BenchFigure]:
    """Yield the cost of embedding new questions, in this process, as a server does it."""
    settings = place.parts.settings
    with progress.step("Embedding questions", len(_SORTS)) as advance:
        embedder = make_embedder(settings, MODEL)
        assert embedder is not None  # the setting names one
        space = (await embedder.load()).name
        queries = QueryEmbedders(lambda _: embedder, MODEL, settings.remembered_queries)
        plain = PlainModel(MODEL, settings.embed_threads)
        for sort in _SORTS:
            yield await _figure(sort, lambda text: queries.embed(MODEL, space, text), plain, effort.questions)
            advance(1)
        await queries.close()


async def _figure(sort: _QuestionLoad, embed: _Embed, plain: PlainModel, questions: int) -> BenchFigure:
    times = max(1, questions // sort.together)
    writer = Writer(sort.together)
    asked = [[writer.question(writer.sentence()) for _ in range(sort.together)] for _ in range(times + 1)]

    async def ours(number: int) -> None:
        await asyncio.gather(*map(embed, asked[number]))

    async def encode(number: int) -> None:
        for text in asked[number]:
            plain.encode([text])

    made, floor, again = await timed(times, ours, encode, ours)
    more = {"p95": made.p95, "floor p95": floor.p95, "ms when asked again": again.p50}
    return BenchFigure(sort.name, sort.at, "ms", made.p50, sort.floor, floor.p50, more)
