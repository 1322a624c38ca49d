"""Rows of a server in the form that is scored."""

from collections.abc import Sequence
from datetime import datetime

from esker.server.core.json_input import JsonObject
from evals.scoring.matching import KeptRow


def left_of(row: JsonObject, sources: Sequence[str] = ()) -> KeptRow:
    """Return a row or a hit in the form that is scored; `sources` are its sources by name in the case."""
    # A hit has no refers_from and refers_to.
    refers = tuple(datetime.fromisoformat(row[name]) for name in ("refers_from", "refers_to") if row.get(name))
    at = datetime.fromisoformat(row["said_at"])
    return KeptRow(row["id"], row["content"], tuple(sources), row["trust"], at, refers)
