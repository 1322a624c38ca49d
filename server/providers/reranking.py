"""The reranker of a server: loaded in the background, called with a deadline, and without a queue of late work."""

import asyncio
import logging
from collections.abc import Sequence
from time import perf_counter

from esker.server.core.errors import EskerError, Misconfigured, RerankerDown, RerankerLate
from esker.server.providers.roles import Reranker

log = logging.getLogger(__name__)

_AGAIN_SECONDS = 60.0
# Late answers in a row after which the reranker is paused, so that not every recall waits for it.
_LATE_IN_A_ROW = 3
_RESTS = "The reranker was late several times in a row and is paused for a while."


class Reranking:
    """Calls one reranker for recalls that wait at most `seconds`."""

    def __init__(self, reranker: Reranker, seconds: float, rest_seconds: float = 30.0) -> None:
        """`rest_seconds` is the pause after several late answers in a row."""
        self._reranker = reranker
        self._seconds = seconds
        self._rest_seconds = rest_seconds
        self._late = 0
        self._rests_until = 0.0
        self._lanes = asyncio.Semaphore(reranker.lanes)
        self._reason: str | None = "the reranking model is still loading"
        self._trouble: str | None = None
        self._failing = False
        self._loading: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to load the model."""
        self._loading = asyncio.create_task(self._load())

    @property
    def state(self) -> str:
        """The model's name, or why it does not answer."""
        return self._reason or (_RESTS if self._rests else self._trouble) or self._reranker.name

    async def scores(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a number for each text, higher where it answers the query better.

        Raises RerankerLate after the deadline, RerankerDown.
        """
        if self._reason:
            raise RerankerDown(self._reason)
        if self._rests:
            raise RerankerLate(_RESTS)
        try:
            async with asyncio.timeout(self._seconds), self._lanes:
                if self._reranker.busy:
                    raise RerankerLate("The reranker is still working on a question that it was late for.")
                scores = await self._reranker.scores(query, texts)
        except TimeoutError as error:
            raise self._was_late() from error
        except RerankerLate:
            raise
        except RerankerDown as error:
            self._failed(str(error))
            raise
        self._trouble, self._failing, self._late = None, False, 0
        return scores

    async def close(self) -> None:
        """Stop loading, and close connections."""
        if self._loading:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        await self._reranker.close()

    @property
    def _rests(self) -> bool:
        return asyncio.get_running_loop().time() < self._rests_until

    def _was_late(self) -> RerankerLate:
        self._trouble = f"The reranker did not answer within {self._seconds:g} seconds."
        self._late += 1
        if self._late >= _LATE_IN_A_ROW:
            self._late = 0
            self._rests_until = asyncio.get_running_loop().time() + self._rest_seconds
        return RerankerLate(self._trouble)

    def _failed(self, why: str) -> None:
        if not self._failing:
            log.warning("%s Recall answers in its own order until it works.", why)
        self._trouble, self._failing = why, True

    async def _load(self) -> None:
        while self._reason:
            try:
                await self._reranker.load()
                self._reason = None
                log.info("hits are reranked by %s", self._reranker.name)
            except Misconfigured as error:
                self._reason = str(error)
                log.error("%s Recall answers in its own order. %s", error, error.hint or "")
                return
            except EskerError as error:
                self._reason = str(error)
                log.warning("%s Trying again in a minute.", error)
                await asyncio.sleep(_AGAIN_SECONDS)
            except Exception as error:
                self._reason = (
                    f"the reranking model cannot be loaded ({type(error).__name__}); the server's log says more"
                )
                log.exception("the reranking model cannot be loaded")
                return


async def probe(reranker: Reranker) -> float:
    """Load a reranker, call it once, and return the seconds that the call took.

    Raises Misconfigured, RerankerDown.
    """
    try:
        await reranker.load()
        began = perf_counter()
        await reranker.scores("Is this an answer?", ["An answer.", "Another."])
        return perf_counter() - began
    finally:
        await reranker.close()
