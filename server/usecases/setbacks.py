"""Work that failed for one subject, and when it may be tried again, so that it does not delay the others."""

from collections.abc import Hashable
from datetime import datetime, timedelta

_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(days=1)


class Setbacks:
    """The failures of one process: each one in a row doubles the pause before the next try, up to a day."""

    def __init__(self) -> None:
        self._failed: dict[Hashable, tuple[datetime, timedelta]] = {}

    def may_try(self, subject: Hashable, now: datetime) -> bool:
        """Return whether the pause of a subject is over, or it has not failed."""
        failed = self._failed.get(subject)
        return failed is None or now >= failed[0] + failed[1]

    def note(self, subject: Hashable, now: datetime) -> timedelta:
        """Note that a subject failed; return the pause before its next try."""
        failed = self._failed.get(subject)
        pause = min(failed[1] * 2, _LONGEST_PAUSE) if failed else _FIRST_PAUSE
        self._failed[subject] = (now, pause)
        return pause

    def clear(self, subject: Hashable) -> None:
        """Note that a subject did not fail."""
        self._failed.pop(subject, None)
