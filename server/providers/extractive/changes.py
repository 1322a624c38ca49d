"""Joins the rows about changes of the same files into one row that lists their purposes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.tokens import estimate_tokens

JOINED_TOKENS = 150
"""Maximum tokens of a row that joins changes; a change that does not fit begins another row."""
_BETWEEN = "; "


@dataclass(slots=True)
class JoinedChange:
    """The text of a row that joins changes of the same files, and the ids of their rows, by time."""

    content: str
    ids: list[str]


def joined_changes(rows: Sequence[Memory]) -> list[JoinedChange]:
    """Return the changes that can be joined, at least two rows each, by time.

    A row that is a reflection already is not extended: it would grow with every reflection.
    """
    by_files: dict[str, list[JoinedChange]] = defaultdict(list)
    for row in rows:
        files, separator, purpose = row.content.partition(labels.PURPOSE)
        if not separator or row.kind != "observation" or (row.category, row.priority) != ("state_change", "low"):
            continue
        changes = by_files[files]
        longer = f"{changes[-1].content}{_BETWEEN}{purpose}" if changes else ""
        if changes and estimate_tokens(longer) <= JOINED_TOKENS:
            changes[-1].content = longer
            changes[-1].ids.append(row.id)
        else:
            changes.append(JoinedChange(row.content, [row.id]))
    return [change for changes in by_files.values() for change in changes if len(change.ids) > 1]
