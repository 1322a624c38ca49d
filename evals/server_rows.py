"""Rows as a server answers them, and as they are scored."""

from collections.abc import Sequence
from datetime import datetime

from esker.server.core.json_input import JsonObject
from evals.scoring.matching import Left


def left_of(row: JsonObject, sources: Sequence[str] = ()) -> Left:
    """Return a row, or a hit, as it is scored; `sources` are what it stands for, by their names in the case."""
    # A hit does not tell the time that it is about.
    refers = tuple(datetime.fromisoformat(row[name]) for name in ("refers_from", "refers_to") if row.get(name))
    at = datetime.fromisoformat(row["said_at"])
    return Left(row["id"], row["content"], tuple(sources), row["trust"], at, refers)
