"""Embeds the rows that are due in one space, a few batches at once."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from esker.embedding_worker.waiting import either
from esker.server.core.errors import EmbedderDown
from esker.server.core.records import Space
from esker.server.core.worker_health import stored_line
from esker.server.providers.roles import Embedder
from esker.server.usecases.embed import (
    ClaimedRows,
    claim,
    embed_claimed,
    pools_with_work,
    release,
    switch_when_complete,
)
from esker.server.usecases.parts import Parts

_LANES = 2
"""Most concurrent calls. With a second one, a call that hangs does not hold the rows behind it; more would overload a
slow endpoint."""
_ROUND = 100
"""Batches after which a long backfill pauses for new pools and upkeep."""
_STOP_SECONDS = 3.0
"""How long open calls may take after the worker was told to stop; the server waits 5 s for the worker."""


Tell = Callable[[str], None]
"""Takes a line of `worker_health.state_line` or `stored_line`."""


def ignore(told: object) -> None:
    """Ignore the argument."""


class Backfill:
    """The open calls to one embedder. Pools take turns, and rows that failed before come last, one at a time.

    While the embedder works on a batch, the vectors of the one before are stored and the next one is claimed.
    """

    def __init__(
        self, parts: Parts, embedder: Embedder, space: Space, wake: asyncio.Event, tell: Tell = ignore
    ) -> None:
        """`wake` is set whenever a call has ended; `tell` takes a line about each portion of rows that got vectors."""
        self._parts = parts
        self._embedder = embedder
        self._space = space
        self._wake = wake
        self._tell = tell
        self._turns: deque[str] = deque()
        self._calls: dict[asyncio.Task[None], ClaimedRows] = {}
        self._lanes = min(embedder.lanes, _LANES)
        self._busy_lanes = 0
        self._changed = asyncio.Event()
        self._error: BaseException | None = None

    async def start_calls(self, stop: asyncio.Event) -> bool:
        """Start calls until no more rows are due, `stop` is set or the round is over; return whether more may be due.

        Calls may still be open then. Raises the error of a call, such as EmbedderDown, when the others have ended.
        """
        for _ in range(_ROUND):
            await self._raise_error(stop)
            claimed = None if stop.is_set() else await self._claim_next()
            if claimed is None:
                return False
            while self._busy_lanes >= self._lanes and not stop.is_set():
                await self._change(stop)
            if stop.is_set() or self._error:
                await release(self._parts, claimed)
            else:
                self._start(claimed)
        return True

    async def close(self) -> None:
        """Wait a few seconds for the open calls; cancel the others, whose rows are released."""
        if self._calls:
            _, late = await asyncio.wait(self._calls, timeout=_STOP_SECONDS)
            for call in late:
                call.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _claim_next(self) -> ClaimedRows | None:
        """Claim a batch of the next pool that has untried rows or, if none has, a row to retry."""
        if not self._turns:
            self._turns.extend(await self._pools())
        while self._turns:
            if claimed := await self._claim(self._turns.popleft(), tried=False):
                return claimed
        # One at a time: a row that made a call hang may do so again, and must leave a lane to the others.
        if not any(claimed.is_retry for claimed in self._calls.values()):
            for pool_id in await self._pools():
                if claimed := await self._claim(pool_id, tried=True):
                    return claimed
        return None

    async def _pools(self) -> list[str]:
        return await pools_with_work(self._parts, self._space)

    async def _claim(self, pool_id: str, *, tried: bool) -> ClaimedRows | None:
        return await claim(self._parts, self._space, pool_id, tried=tried)

    def _start(self, claimed: ClaimedRows) -> None:
        self._busy_lanes += 1
        call = asyncio.create_task(self._embed(claimed))
        self._calls[call] = claimed
        call.add_done_callback(self._ended)

    async def _embed(self, claimed: ClaimedRows) -> None:
        tell = partial(self._tell_stored, claimed.pool_id)
        await embed_claimed(self._parts, self._embedder, claimed, self._lane(), tell)
        await switch_when_complete(self._parts, self._space, claimed.pool_id)

    def _tell_stored(self, pool_id: str, rows: int) -> None:
        self._tell(stored_line(pool_id, rows))

    @contextmanager
    def _lane(self) -> Generator[None]:
        try:
            yield
        except EmbedderDown as error:
            # Note the error before the lane is free for another call.
            self._error = self._error or error
            raise
        finally:
            self._busy_lanes -= 1
            self._changed.set()

    def _ended(self, call: asyncio.Task[None]) -> None:
        del self._calls[call]
        self._parts.pulse.beat(self._parts.clock())
        if not call.cancelled():
            self._parts.instruments.batches.labels("failed" if call.exception() else "done").inc()
            self._error = self._error or call.exception()
        self._changed.set()
        self._wake.set()

    async def _raise_error(self, stop: asyncio.Event) -> None:
        if self._error is None:
            return
        # If the embedder is down, the others fail, too; their errors must not cause a second pause.
        while self._calls and not stop.is_set():
            await self._change(stop)
        error, self._error = self._error, None
        raise error

    async def _change(self, stop: asyncio.Event) -> None:
        """Wait until a lane is free, a call has ended or `stop` is set."""
        self._changed.clear()
        await either(self._changed, stop)
