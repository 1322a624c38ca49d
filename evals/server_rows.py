"""Rows as a server answers them, and as they are scored."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from evals.scoring.matching import Left

Json = dict[str, Any]


def left_of(row: Json, sources: Sequence[str] = ()) -> Left:
    """Return a row, or a hit, as it is scored; `sources` are what it stands for, by their names in the case."""
    # A hit does not tell the time that it is about.
    refers = tuple(datetime.fromisoformat(row[name]) for name in ("refers_from", "refers_to") if row.get(name))
    at = datetime.fromisoformat(row["said_at"])
    return Left(row["id"], row["content"], tuple(sources), row["trust"], at, refers)
