"""Paraphrases of questions: requested once, within a deadline, and cached separately for each pool.

A recall stops waiting at its deadline; the call then runs to its end, is counted as spending, and its result is still
cached. A model that is down or too slow is not asked for a while, so that not every recall waits for it.
"""

import asyncio
from collections import OrderedDict

from esker.server.core.errors import ModelDown, ModelFailed, ModelTooSlow, RequestRefused, UnusableAnswer
from esker.server.providers.roles import Meter, Paraphraser

# The most concurrent calls; further recalls get no paraphrases.
_MOST_CALLS = 4
_REST_SECONDS = 30.0

_ParaphraseKey = tuple[str, str]


class Paraphrases:
    """The paraphrases from one model, cached by pool, so that no pool can tell what another has asked."""

    def __init__(self, paraphraser: Paraphraser, seconds: float, remembered: int) -> None:
        """`seconds` is how long a recall waits; `remembered` is the most questions that are cached, in memory only."""
        self._paraphraser = paraphraser
        self._seconds = seconds
        self._remembered = remembered
        self._known: OrderedDict[_ParaphraseKey, list[str]] = OrderedDict()
        self._open: dict[_ParaphraseKey, asyncio.Task[list[str]]] = {}
        self._rests_until = 0.0

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._paraphraser.name

    async def of(self, pool_id: str, query: str, meter: Meter) -> list[str]:
        """Return paraphrases of a question. Raises ModelTooSlow when they are late; ModelFailed, SpendCapReached."""
        key = (pool_id, query)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        call = self._open.get(key) or self._ask(key, meter)
        done, _ = await asyncio.wait({call}, timeout=self._seconds)
        if not done:
            raise ModelTooSlow(f"{self.name} did not answer within {self._seconds:g} seconds.")
        if call.cancelled():
            raise ModelDown("The server is stopping.")
        return call.result()

    async def close(self) -> None:
        """Cancel the open calls and close the connections to the model."""
        calls = list(self._open.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._paraphraser.close()

    def _ask(self, key: _ParaphraseKey, meter: Meter) -> asyncio.Task[list[str]]:
        if asyncio.get_running_loop().time() < self._rests_until:
            raise ModelDown(f"{self.name} failed a moment ago and is not asked again yet.")
        if len(self._open) >= _MOST_CALLS:
            raise ModelTooSlow(f"{self.name} is busy with other questions.")
        self._open[key] = call = asyncio.create_task(self._paraphraser.paraphrases(key[1], meter))
        call.add_done_callback(lambda ended: self._ended(key, ended))
        return call

    def _ended(self, key: _ParaphraseKey, call: asyncio.Task[list[str]]) -> None:
        del self._open[key]
        if call.cancelled():
            return
        error = call.exception()
        if error is None:
            self._keep(key, call.result())
        elif isinstance(error, RequestRefused | UnusableAnswer):
            # The failure is specific to this question, so a retry would fail the same way.
            self._keep(key, [])
        elif isinstance(error, ModelFailed):
            self._rests_until = asyncio.get_running_loop().time() + _REST_SECONDS

    def _keep(self, key: _ParaphraseKey, paraphrases: list[str]) -> None:
        self._known[key] = paraphrases
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
