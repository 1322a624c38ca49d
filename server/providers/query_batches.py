"""Batches the questions to one embedder while it is busy, and caches their vectors.

The same question is sent once, however many callers wait for it. A caller may be cancelled at any time: a question
without callers is not embedded, and a call without callers is cancelled.
"""

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from esker.server.core.arrays import Vector
from esker.server.core.errors import CallFailed, EmbedderDown, TextRefused
from esker.server.providers.roles import Embedder

_TOGETHER = 16
"""Maximum questions in a call: more gain nothing, and the first would wait for the last."""


@dataclass(slots=True, eq=False)
class _PendingQuestion:
    """A question without an answer, and the number of callers that wait for it."""

    text: str
    vector: asyncio.Future[Vector] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    waiting: int = 0


class QueryBatches:
    """The questions to one embedder, which has one space."""

    def __init__(self, embedder: Embedder, remembered: int) -> None:
        """`remembered` is the maximum number of cached vectors; the least recently used are evicted first."""
        self._embedder = embedder
        self._remembered = remembered
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._open: dict[str, _PendingQuestion] = {}
        self._queue: deque[_PendingQuestion] = deque()
        self._calls: dict[asyncio.Task[None], list[_PendingQuestion]] = {}

    async def embed(self, text: str) -> Vector:
        """Return the vector of a question. Raises EmbedderDown; TextRefused."""
        if text in self._known:
            self._known.move_to_end(text)
            return self._known[text]
        question = self._open.get(text) or self._ask(text)
        question.waiting += 1
        try:
            # Other callers wait for the same answer, so a cancelled caller must not cancel it.
            return await asyncio.shield(question.vector)
        finally:
            question.waiting -= 1
            if not question.waiting:
                self._drop(question)

    async def close(self) -> None:
        """Cancel the open calls."""
        for question in list(self._open.values()):
            self._fail(question, EmbedderDown("The server is stopping."))
        calls = list(self._calls)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _ask(self, text: str) -> _PendingQuestion:
        self._open[text] = question = _PendingQuestion(text)
        self._queue.append(question)
        self._call()
        return question

    def _call(self) -> None:
        """Send the waiting questions if the embedder has a free lane."""
        while self._queue and len(self._calls) < self._embedder.lanes:
            batch = [self._queue.popleft() for _ in range(min(_TOGETHER, len(self._queue)))]
            if asked := [question for question in batch if not question.vector.done()]:
                call = asyncio.create_task(self._answer(asked))
                self._calls[call] = asked
                call.add_done_callback(self._ended)

    def _ended(self, call: asyncio.Task[None]) -> None:
        del self._calls[call]
        self._call()

    async def _answer(self, batch: list[_PendingQuestion]) -> None:
        """Get the answers; if a question may be the reason of a failure, ask one by one, to spare the others."""
        try:
            vectors = await self._embedder.embed_queries([question.text for question in batch])
        except (TextRefused, CallFailed) as error:
            if len(batch) == 1:
                self._fail(batch[0], error)
                return
            for question in batch:
                if not question.vector.done():
                    await self._answer([question])
        except Exception as error:  # noqa: BLE001 - every error is passed on to the callers
            for question in batch:
                self._fail(question, error)
        else:
            for question, vector in zip(batch, vectors, strict=True):
                self._keep(question, vector.copy())

    def _keep(self, question: _PendingQuestion, vector: Vector) -> None:
        self._known[question.text] = vector
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
        if not question.vector.done():
            question.vector.set_result(vector)
        self._forget(question)

    def _fail(self, question: _PendingQuestion, error: Exception) -> None:
        if not question.vector.done():
            question.vector.set_exception(error)
        self._forget(question)

    def _forget(self, question: _PendingQuestion) -> None:
        # Other callers may have asked for the same text again.
        if self._open.get(question.text) is question:
            del self._open[question.text]

    def _drop(self, question: _PendingQuestion) -> None:
        """Drop a question without callers, and cancel its call if it was the last one in it."""
        if question.vector.done():
            return
        question.vector.cancel()
        self._forget(question)
        for call, batch in self._calls.items():
            if question in batch and all(other.vector.done() for other in batch):
                call.cancel()
