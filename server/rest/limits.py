"""Rates: how many requests a caller may make, as a bucket that fills again with time."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
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

    def give_back(self, caller: str) -> None:
        """Count a request of the caller no longer."""
        if caller in self._used:
            self._used[caller] = (max(0.0, self._present(caller) - 1), self._seconds())

    def take(self, caller: str, refusal: str) -> None:
        """Count a request of the caller. Raises TooManyRequests with `refusal` if it came too early."""
        if seconds := self.wait(caller):
            raise TooManyRequests(refusal, seconds=seconds, hint="Wait as many seconds as Retry-After says.")
        self.count(caller)

    def _present(self, caller: str) -> float:
        used, at = self._used.get(caller, (0.0, 0.0))
        return max(0.0, used - (self._seconds() - at) * self._per_minute / _MINUTE)


class WrongKeys:
    """Slows down guessing: each key that is not known costs its address one of a few tries a minute.

    A key that was right before is never slowed down, so nobody can shut out those who share an address.
    """

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._right: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, address: str, key: str) -> None:
        """Take a try, before the key is looked up. Raises TooManyRequests."""
        if _digest(key) not in self._right:
            self._rate.take(address, "Too many wrong keys came from this address.")

    def was_right(self, address: str, key: str) -> None:
        """Give the try back."""
        digest = _digest(key)
        if digest in self._right:
            return
        self._rate.give_back(address)
        self._right[digest] = None
        if len(self._right) > _MOST_CALLERS:
            self._right.popitem(last=False)

    def was_wrong(self, key: str) -> None:
        """Know a key no longer that was revoked or has expired."""
        self._right.pop(_digest(key), None)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


@dataclass(frozen=True, slots=True)
class Limits:
    """The rates of a server."""

    keys: Rate
    addresses: Rate
    wrong_keys: WrongKeys

    @classmethod
    def of(cls, settings: Settings) -> "Limits":
        """Return the rates that the settings name."""
        return cls(
            Rate(settings.requests_per_minute),
            Rate(settings.address_requests_per_minute),
            WrongKeys(Rate(settings.wrong_keys_per_minute)),
        )
