"""Circuit breakers: a provider that is down gets one trial call now and then, and not one from every session.

A breaker is closed while calls succeed. It opens when a provider stayed down over the retries of a call, and at once if
it refuses the key; then no call is made until a pause is over. The first one after it tells whether the provider is
back, and the others wait for its result.
"""

import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from esker.server.core.errors import ModelDown, ModelFailed, ModelTooSlow

_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 300.0
# A key stays wrong until somebody acts, who then restarts the server or asks for an observation.
_FIRST_LASTING, _LONGEST_LASTING = 300.0, 3600.0
_PROBE_SECONDS = 10.0
"""How long others wait before they look at the result of the call that tries again."""


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """A provider that is not asked at present, why, and for how many more seconds."""

    provider: str
    problem: str
    seconds: float


class Breaker:
    """Decides whether one provider may be asked."""

    def __init__(self, provider: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` returns seconds."""
        self.provider = provider
        self._clock = clock
        self._problem = ""
        self._pauses = 0
        self._until = 0.0
        self._is_probed = False

    @contextmanager
    def call(self) -> Generator[bool]:
        """Make a call during the block, whose end says how the provider is. Raises ModelDown if none may be made now.

        Yields whether the breaker is open and this is the call that tries.
        """
        tries = self._admit()
        try:
            yield tries
        except ModelTooSlow:
            raise  # says nothing about the provider
        except ModelDown as error:
            if error.reason != "model":
                self._failed(error, tries=tries)
            raise
        except ModelFailed:
            self._pauses = 0  # it answered
            raise
        else:
            self._pauses = 0
        finally:
            self._is_probed = self._is_probed and not tries

    def _admit(self) -> bool:
        if not self._pauses:
            return False
        if (state := self.state()) is not None and (state.seconds > 0 or self._is_probed):
            raise ModelDown(
                f"{self._problem} It is not asked for now.", sent=False, seconds=max(state.seconds, _PROBE_SECONDS)
            )
        self._is_probed = True
        return True

    def _failed(self, error: ModelDown, *, tries: bool) -> None:
        """Open the breaker for a pause that doubles with each failure in a row, and put its length into `error`."""
        if (state := self.state()) and not tries:  # the call began before the breaker opened
            error.seconds = max(state.seconds, _PROBE_SECONDS)
            return
        first, longest = (_FIRST_LASTING, _LONGEST_LASTING) if error.reason == "key" else (_FIRST_PAUSE, _LONGEST_PAUSE)
        pause = min(longest, first * 2 ** min(self._pauses, 16)) * (1 - secrets.randbelow(1000) / 4000)
        pause = max(pause, min(error.seconds or 0.0, _LONGEST_LASTING))
        self._problem = str(error)
        self._pauses += 1
        self._until = self._clock() + pause
        error.seconds = pause

    def try_again(self) -> None:
        """Let the next call try, as someone has requested."""
        self._until = 0.0

    def state(self) -> OpenBreaker | None:
        """Return why and for how long the provider is not asked; None if the breaker is closed."""
        if not self._pauses:
            return None
        return OpenBreaker(self.provider, self._problem, max(0.0, self._until - self._clock()))


class Breakers:
    """The breakers of a server, one for each provider."""

    def __init__(self) -> None:
        self._breakers: dict[str, Breaker] = {}

    def of(self, provider: str) -> Breaker:
        """Return the breaker of a provider."""
        return self._breakers.setdefault(provider, Breaker(provider))

    def try_again(self) -> None:
        """Let the next call of each provider try."""
        for breaker in self._breakers.values():
            breaker.try_again()

    def open(self) -> list[OpenBreaker]:
        """Return the providers that are not asked at present."""
        return [state for breaker in self._breakers.values() if (state := breaker.state())]
