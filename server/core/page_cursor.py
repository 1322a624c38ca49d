"""A place in a list that is read page by page: where a page ended, as the one behind it is asked for.

It names a moment and an id, so that it stays where it is whatever becomes of the row that stood there.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from esker.server.core.errors import InvalidInput

_BETWEEN = "~"


@dataclass(frozen=True, slots=True)
class PageCursor:
    """A row's place in a list that is ordered by a moment and then by id."""

    moment: datetime
    id: str

    def __str__(self) -> str:
        """Return the place as one word that an address can hold as it is."""
        return f"{self.moment.astimezone(UTC).isoformat().removesuffix('+00:00')}Z{_BETWEEN}{self.id}"


def place_of(text: str) -> PageCursor:
    """Return the place that a word names. Raises InvalidInput."""
    moment, found, row_id = text.partition(_BETWEEN)
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        at = None
    if not (found and row_id) or at is None or at.tzinfo is None:
        raise InvalidInput(f"{text[:80]!r} is no place in this list.", hint="Take the `next` of the page before.")
    return PageCursor(at, row_id)
