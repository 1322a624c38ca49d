"""Two versions of a session's pack compared by their rows, each with the reason why it came or went."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from esker.server.core.records import Memory

ChangeReason = Literal["new", "moved_up", "superseded", "expired", "outranked", "forgotten"]


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that only one of two versions has; `row` is None if it was forgotten since."""

    id: str
    row: Memory | None
    reason: ChangeReason


@dataclass(frozen=True, slots=True)
class PackComparison:
    """The rows that came with the `newer` version and those that went, in their order; `kept` counts those in both."""

    older: int
    newer: int
    added: list[ChangedRow]
    removed: list[ChangedRow]
    kept: int


@dataclass(frozen=True, slots=True)
class VersionRows:
    """A version of a pack: when it was frozen, and the ids of its rows in order."""

    version: int
    frozen_at: datetime
    ids: Sequence[str]


def compared(older: VersionRows, newer: VersionRows, rows: Mapping[str, Memory]) -> PackComparison:
    """Return the difference between two versions. `rows` has the rows of both that still exist, by id."""
    before, after = set(older.ids), set(newer.ids)
    return PackComparison(
        older=older.version,
        newer=newer.version,
        added=[
            ChangedRow(each, rows.get(each), _why_added(rows.get(each), older.frozen_at))
            for each in newer.ids
            if each not in before
        ],
        removed=[
            ChangedRow(each, rows.get(each), _why_removed(rows.get(each), newer.frozen_at))
            for each in older.ids
            if each not in after
        ],
        kept=len(before & after),
    )


def _why_added(row: Memory | None, frozen_at: datetime) -> ChangeReason:
    if row is None:
        return "forgotten"
    return "new" if row.created_at > frozen_at else "moved_up"


def _why_removed(row: Memory | None, frozen_at: datetime) -> ChangeReason:
    if row is None:
        return "forgotten"
    if row.superseded_at is not None and row.superseded_at <= frozen_at:
        return "superseded"
    return "expired" if row.valid_until is not None and row.valid_until <= frozen_at else "outranked"
