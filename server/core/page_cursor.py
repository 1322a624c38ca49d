"""A keyset-pagination cursor: time and id of the last row of a page.

It contains both values and not a reference to the row, so it stays valid when the row is deleted.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from esker.server.core.errors import InvalidInput

_SEPARATOR = "~"


@dataclass(frozen=True, slots=True)
class PageCursor:
    """The position of a row in a list that is ordered by time, then by id."""

    moment: datetime
    id: str

    def __str__(self) -> str:
        """Return the cursor as text that needs no escaping in a URL."""
        return f"{self.moment.astimezone(UTC).isoformat().removesuffix('+00:00')}Z{_SEPARATOR}{self.id}"


def read_cursor(text: str) -> PageCursor:
    """Return the cursor that a text encodes. Raises InvalidInput."""
    moment, separator, row_id = text.partition(_SEPARATOR)
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        at = None
    if not (separator and row_id) or at is None or at.tzinfo is None:
        raise InvalidInput(f"{text[:80]!r} is not a cursor of this list.", hint="Use `next` of the previous page.")
    return PageCursor(at, row_id)
