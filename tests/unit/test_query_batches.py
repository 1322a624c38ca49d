"""Questions sent to an embedder: waiting ones in one batch, equal ones once, and failures of one affect no other."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from esker.server.core.arrays import Vector, Vectors
from esker.server.core.errors import CallFailed, EmbedderDown, EskerError, TextRefused
from esker.server.core.records import Space
from esker.server.providers.query_batches import QueryBatches
from tests.support.vectors import matrix


@dataclass
class HeldEmbedder:
    """An embedder that answers when it is released; a vector contains the length of its text."""

    lanes: int = 1
    portion: int = 1_000
    refuses: str = "BAD"
    refusal: Exception = field(default_factory=lambda: TextRefused("refused"))
    error: Exception | None = None
    asked: list[list[str]] = field(default_factory=list[list[str]])
    given_up: list[list[str]] = field(default_factory=list[list[str]])
    go: asyncio.Event = field(default_factory=asyncio.Event)
    space: Space | None = None

    def be_patient(self, patient: bool) -> None:
        """Never asked."""
        raise NotImplementedError

    async def load(self) -> Space:
        """Never asked."""
        raise NotImplementedError

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Never asked."""
        raise NotImplementedError

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Answer once released."""
        self.asked.append(list(texts))
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up.append(list(texts))
            raise
        if self.error:
            raise self.error
        if any(self.refuses in text for text in texts):
            raise self.refusal
        return matrix([float(len(text))] for text in texts)

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Never asked."""
        raise NotImplementedError

    async def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def embedder() -> HeldEmbedder:
    """A scripted embedder that waits until it is released."""
    return HeldEmbedder()


async def settled() -> None:
    """Let all tasks run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def asking(batches: QueryBatches, *texts: str) -> list[asyncio.Task[Vector]]:
    """Ask each text in a task of its own; return once all of them wait."""
    tasks = [asyncio.create_task(batches.embed(text)) for text in texts]
    await settled()
    return tasks


async def test_questions_are_batched_while_the_model_is_busy_but_the_first_is_not_delayed(
    embedder: HeldEmbedder,
) -> None:
    batches = QueryBatches(embedder, 10)
    tasks = await asking(batches, "a")
    assert embedder.asked == [["a"]]
    tasks += await asking(batches, "bb", "ccc", "dddd")
    assert embedder.asked == [["a"]]
    embedder.go.set()
    assert [list(vector) for vector in await asyncio.gather(*tasks)] == [[1.0], [2.0], [3.0], [4.0]]
    assert embedder.asked == [["a"], ["bb", "ccc", "dddd"]]


async def test_many_questions_are_sent_in_calls_of_a_bounded_size(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 10)
    tasks = await asking(batches, *(f"question {n}" for n in range(50)))
    embedder.go.set()
    await asyncio.gather(*tasks)
    assert max(map(len, embedder.asked)) == 16
    assert sorted(text for call in embedder.asked for text in call) == sorted(f"question {n}" for n in range(50))


async def test_a_question_in_flight_is_not_sent_again(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 0)
    tasks = await asking(batches, "a", "a", "a")
    embedder.go.set()
    assert [list(vector) for vector in await asyncio.gather(*tasks)] == [[1.0]] * 3
    assert embedder.asked == [["a"]]


async def test_a_cached_question_is_not_sent_again_and_the_oldest_is_evicted(embedder: HeldEmbedder) -> None:
    embedder.go.set()
    batches = QueryBatches(embedder, 2)
    for text in ("a", "b", "a", "c", "a", "b"):
        assert list(await batches.embed(text)) == [1.0]
    assert embedder.asked == [["a"], ["b"], ["c"], ["b"]]


async def test_a_cache_of_size_0_keeps_nothing(embedder: HeldEmbedder) -> None:
    embedder.go.set()
    batches = QueryBatches(embedder, 0)
    await batches.embed("a")
    await batches.embed("a")
    assert embedder.asked == [["a"], ["a"]]


async def test_a_cancelled_caller_does_not_affect_the_others(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 10)
    first, leaving, other = await asking(batches, "a", "b", "b")
    [third] = await asking(batches, "c")
    leaving.cancel()
    await settled()
    embedder.go.set()
    assert [list(await task) for task in (first, other, third)] == [[1.0]] * 3
    assert embedder.asked == [["a"], ["b", "c"]]


async def test_a_question_without_callers_is_not_embedded(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 10)
    first, leaving, third = await asking(batches, "a", "b", "c")
    leaving.cancel()
    await settled()
    embedder.go.set()
    await asyncio.gather(first, third)
    assert embedder.asked == [["a"], ["c"]]


async def test_a_call_without_callers_is_cancelled_and_the_next_one_runs(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 10)
    [hanging] = await asking(batches, "hangs")
    [behind] = await asking(batches, "next")
    hanging.cancel()
    await settled()
    assert embedder.given_up == [["hangs"]]
    assert embedder.asked == [["hangs"], ["next"]]
    embedder.go.set()
    assert list(await behind) == [4.0]


async def test_a_question_asked_again_after_all_callers_left_is_answered(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 10)
    [leaving] = await asking(batches, "a")
    leaving.cancel()
    [again] = await asking(batches, "a")
    embedder.go.set()
    assert list(await again) == [1.0]


@pytest.mark.parametrize("error", [TextRefused("refused"), CallFailed("no answer")])
async def test_a_question_that_fails_does_not_affect_the_others(embedder: HeldEmbedder, error: EskerError) -> None:
    embedder.refusal = error
    batches = QueryBatches(embedder, 10)
    tasks = await asking(batches, "a", "b", "BAD", "d")
    embedder.go.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert answers.pop(2) is error
    assert [list(answer) for answer in answers if not isinstance(answer, BaseException)] == [[1.0]] * 3
    assert (await batches.embed("b"))[0] == 1.0
    assert embedder.asked[-1] == ["d"]


@pytest.mark.parametrize("error", [EmbedderDown("down"), RuntimeError("a bug")])
async def test_all_callers_get_the_error_of_an_embedder_that_is_down_and_the_next_is_answered(
    embedder: HeldEmbedder, error: Exception
) -> None:
    embedder.error = error
    batches = QueryBatches(embedder, 10)
    tasks = await asking(batches, "a", "b", "c")
    embedder.go.set()
    assert await asyncio.gather(*tasks, return_exceptions=True) == [error] * 3
    embedder.error = None
    assert list(await batches.embed("a")) == [1.0]


async def test_an_embedder_with_lanes_gets_concurrent_calls(embedder: HeldEmbedder) -> None:
    embedder.lanes = 2
    batches = QueryBatches(embedder, 10)
    tasks = await asking(batches, "a")
    tasks += await asking(batches, "b")
    tasks += await asking(batches, "c", "d")
    assert embedder.asked == [["a"], ["b"]]
    embedder.go.set()
    await asyncio.gather(*tasks)
    assert embedder.asked[2:] == [["c", "d"]]


async def test_waiting_callers_get_an_error_when_the_server_stops(embedder: HeldEmbedder) -> None:
    batches = QueryBatches(embedder, 10)
    tasks = await asking(batches, "a", "b")
    await batches.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [EmbedderDown] * 2
    assert embedder.given_up == [["a"]]
    await settled()
    assert embedder.asked == [["a"]]
