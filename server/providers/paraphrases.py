"""Other wordings of questions: asked for once, within a deadline, and remembered for each pool by itself.

A recall stops waiting at its deadline; the call then ends by itself, is counted, and is still remembered if it comes
to something. A model that is down or too slow is left alone for a while, so that not every recall waits for it.
"""

import asyncio
from collections import OrderedDict

from esker.server.core.errors import ModelDown, ModelFailed, ModelTooSlow, RequestRefused, UnusableAnswer
from esker.server.providers.roles import Meter, Paraphraser

# Calls at the same time; recalls beyond them do without.
_MOST_CALLS = 4
_REST_SECONDS = 30.0

_ParaphraseKey = tuple[str, str]


class Paraphrases:
    """The wordings that one paraphraser has for questions, by pool: what one pool asks, another does not notice."""

    def __init__(self, paraphraser: Paraphraser, seconds: float, remembered: int) -> None:
        """`seconds` is how long a recall waits; `remembered` is the most questions that are kept, in memory alone."""
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
        """Return other wordings of a question. Raises ModelTooSlow when they are late; ModelFailed, SpendCapReached."""
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
        """Give up what is on its way, and close the connections to the model."""
        calls = list(self._open.values())
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self._paraphraser.close()

    def _ask(self, key: _ParaphraseKey, meter: Meter) -> asyncio.Task[list[str]]:
        if asyncio.get_running_loop().time() < self._rests_until:
            raise ModelDown(f"{self.name} has just failed, and is left alone for a while.")
        if len(self._open) >= _MOST_CALLS:
            raise ModelTooSlow(f"{self.name} is busy with other questions.")
        self._open[key] = call = asyncio.create_task(self._paraphraser.wordings(key[1], meter))
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
            # It is about this question, and would be the same the next time.
            self._keep(key, [])
        elif isinstance(error, ModelFailed):
            self._rests_until = asyncio.get_running_loop().time() + _REST_SECONDS

    def _keep(self, key: _ParaphraseKey, wordings: list[str]) -> None:
        self._known[key] = wordings
        while len(self._known) > self._remembered:
            self._known.popitem(last=False)
