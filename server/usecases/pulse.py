"""The pulse of the job runner, so that readiness can tell when it has stopped moving."""

from datetime import datetime, timedelta

_LONGEST = timedelta(seconds=90)


class Pulse:
    """When the job runner last moved. A runner whose slots are all taken waits for a job, and counts as moving."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._waits_for_slot = False

    def beat(self, now: datetime, *, waits_for_slot: bool = False) -> None:
        """Note that the runner moves."""
        self._at, self._waits_for_slot = now, waits_for_slot

    @property
    def moved_at(self) -> datetime | None:
        """When the runner last moved; None if it waits for a slot or was never started."""
        return None if self._waits_for_slot else self._at

    def stopped_for(self, now: datetime, longest: timedelta = _LONGEST) -> timedelta | None:
        """Return how long the runner has not moved if that is too long; None if it moves or was never started."""
        if self._at is None or self._waits_for_slot or now - self._at < longest:
            return None
        return now - self._at
