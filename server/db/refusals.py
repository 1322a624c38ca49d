"""The latest refusals of the database: of writes, since its disk is full or it is read-only, or of a right."""

import time
from collections.abc import Callable

import psycopg
from psycopg.errors import DiskFull, ReadOnlySqlTransaction

from esker.server.db.driver_errors import right_refused

_LATELY_SECONDS = 30.0
_WORDS: dict[type[psycopg.Error], str] = {
    DiskFull: "The database's disk is full",
    ReadOnlySqlTransaction: "The database takes no writes now; it may be failing over",
}


class Refusals:
    """The last write and the last right that were refused, and when."""

    def __init__(self, seconds: Callable[[], float] = time.monotonic) -> None:
        """`seconds` is a clock that only moves forward."""
        self._seconds = seconds
        self._last: tuple[float, type[psycopg.Error]] | None = None
        self._right: tuple[float, str] | None = None

    def note(self, error: psycopg.Error) -> str | None:
        """Note an error, and return it in words if it says that nothing can be written."""
        for kind, words in _WORDS.items():
            if isinstance(error, kind):
                self._last = self._seconds(), kind
                return words
        return None

    def note_missing_right(self, reason: str) -> None:
        """Note that a right was refused; `reason` is what Postgres says."""
        self._right = self._seconds(), reason

    @property
    def missing_right(self) -> str | None:
        """The right that was refused in the last half a minute, in words; None if none was."""
        if self._right is None or self._seconds() - self._right[0] > _LATELY_SECONDS:
            return None
        return right_refused(self._right[1])

    @property
    def present(self) -> str | None:
        """Why writes were refused in the last half a minute; None if they were not."""
        if self._last is None or self._seconds() - self._last[0] > _LATELY_SECONDS:
            return None
        return f"{_WORDS[self._last[1]]}."

    @property
    def full_disk(self) -> str | None:
        """The reason if the disk was full in the last half a minute; a read-only server is recognised otherwise."""
        return self.present if self._last and self._last[1] is DiskFull else None
