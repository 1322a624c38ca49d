"""Limits: how many requests a caller may make, as a bucket that fills again with time, and how many may run at once."""

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from esker.server.core.config.settings import Settings
from esker.server.core.errors import TooManyRequests

# The most callers that are remembered; then the one that was not seen for longest is forgotten.
_MOST_CALLERS = 10_000
_MINUTE = 60.0

Seconds = Callable[[], float]


class Rate:
    """A number of requests a minute for each caller. A caller may make a minute's requests at once, then waits."""

    def __init__(self, per_minute: int, seconds: Seconds = time.monotonic) -> None:
        """No limit if `per_minute` is 0. `seconds` is a clock that only moves forward."""
        self._per_minute = per_minute
        self._seconds = seconds
        # How much of a caller's bucket was used, and when that was counted.
        self._used: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Return the seconds until the caller may make a request; 0 for now."""
        if not self._per_minute:
            return 0.0
        over = self._present(caller) + 1 - self._per_minute
        return max(0.0, over * _MINUTE / self._per_minute)

    def count(self, caller: str) -> None:
        """Count a request of the caller."""
        if not self._per_minute:
            return
        self._used[caller] = (self._present(caller) + 1, self._seconds())
        self._used.move_to_end(caller)
        if len(self._used) > _MOST_CALLERS:
            self._used.popitem(last=False)

    def take(self, caller: str, refusal: str) -> None:
        """Count a request of the caller. Raises TooManyRequests with `refusal` if it came too early."""
        if seconds := self.wait(caller):
            raise TooManyRequests(refusal, seconds=seconds, hint="Wait as many seconds as Retry-After says.")
        self.count(caller)

    def _present(self, caller: str) -> float:
        used, at = self._used.get(caller, (0.0, 0.0))
        return max(0.0, used - (self._seconds() - at) * self._per_minute / _MINUTE)


class Places:
    """A number of requests that may run at once, of all callers and of each."""

    def __init__(self, every: int, each: int) -> None:
        """`every`: places of all callers together; `each`: of one caller."""
        self._every = every
        self._each = each
        self._taken: Counter[str] = Counter()

    @property
    def taken(self) -> int:
        """How many requests run now."""
        return self._taken.total()

    @contextmanager
    def take(self, caller: str, refusal: str, *, seconds: float) -> Generator[None]:
        """Hold a place during the block. Raises TooManyRequests, with the `seconds` to wait, if all are taken."""
        if self._taken[caller] >= self._each or self.taken >= self._every:
            raise TooManyRequests(refusal, seconds=seconds, hint="Wait until another one has ended.")
        self._taken[caller] += 1
        try:
            yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]


@dataclass(frozen=True, slots=True)
class Limits:
    """The rates of a server: of valid keys, of addresses without a valid key, and of wrong keys from an address."""

    keys: Rate
    addresses: Rate
    wrong_keys: Rate

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Return the rates that the settings name."""
        return cls(
            Rate(settings.requests_per_minute),
            Rate(settings.address_requests_per_minute),
            Rate(settings.wrong_keys_per_minute),
        )
