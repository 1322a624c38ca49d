"""Whether a provider's cache still has what a session sent last, as far as the gateway saw it."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from esker.server.core.context.usage import CACHE_LIFE

_LASTING = re.compile(r'"ttl"\s*:\s*"1h"')
_LASTING_LIFE = timedelta(hours=1)
_MOST_SESSIONS = 500


class CacheLife:
    """The times of the latest requests of the sessions that were used last."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._latest: dict[str, datetime] = {}

    def has_ended(self, session_id: str, request: str) -> bool:
        """Return whether the cache of a session has ended before this request; its text says how long it lasts.

        It has not if no request before this one is known.
        """
        now, before = self._clock(), self._latest.pop(session_id, None)
        self._latest[session_id] = now
        if len(self._latest) > _MOST_SESSIONS:
            del self._latest[next(iter(self._latest))]
        life = _LASTING_LIFE if _LASTING.search(request) else CACHE_LIFE
        return before is not None and now - before > life
