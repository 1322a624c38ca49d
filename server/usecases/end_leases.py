"""End the leases of processes that died, so that their work is taken up within seconds."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

from esker.server.core.counts import counted
from esker.server.core.errors import EskerError
from esker.server.store import leases
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.5
_GRACE_SECONDS = 4.0
"""Seconds that a holder may be without its connection: a living one reconnects sooner."""


class MissingHolders:
    """The holders that are missing, with the time at which each was first missed, in monotonic seconds."""

    def __init__(self) -> None:
        self._since: dict[int, float] = {}

    def gone(self, missing: Collection[int], now: float) -> list[int]:
        """Return the holders that were missing at every check of the grace period; `missing` are those of this
        check."""
        self._since = {holder: self._since.get(holder, now) for holder in missing}
        return [holder for holder, since in self._since.items() if now - since >= _GRACE_SECONDS]


@asynccontextmanager
async def ending_abandoned_leases(parts: Parts) -> AsyncGenerator[None]:
    """Hold the leases of this process during the block, and end those of processes that died."""
    async with parts.holder.held(parts.database.direct_url, parts.database.clock):
        task = asyncio.create_task(_look_again_and_again(parts))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _look_again_and_again(parts: Parts) -> None:
    missing = MissingHolders()
    while True:
        try:
            await end_abandoned_leases(parts, missing, time.monotonic())
        except EskerError as error:
            log.warning("leases of processes that died cannot be ended now: %s", error)
        except Exception:
            log.exception("leases of processes that died cannot be ended now")
        await asyncio.sleep(_LOOK_SECONDS)


async def end_abandoned_leases(parts: Parts, missing: MissingHolders, moment: float) -> int:
    """End the leases of holders that have been missing for the grace period; return how many leases.

    `moment` is in monotonic seconds.
    """
    gone = missing.gone(await leases.abandoned_holders(parts.database, parts.clock()), moment)
    ended = await leases.end(parts.database, gone, parts.clock()) if gone else 0
    if ended:
        log.warning("took over %s of a process that died", counted(ended, "lease"))
    if gone and (settled := await leases.settle_calls(parts.database, gone)):
        log.warning("counted %s that a process left open when it died", counted(settled, "model call"))
    return ended
