"""The decision of a sync about each memory: compare the last sync, the file and the pool, and change the side that is
behind.

Nothing here reads or writes. `decide` looks at one memory; `claimed` finds the bullet that stands for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from esker.server.core.pool.sync_line import LineKey, SyncLine

Step = Literal["keep", "correct", "forget", "take", "drop", "conflict", "foreign"]
"""`keep`: both sides agree, or it is gone from both. `correct`, `forget`: the file changed, so the pool does, too.
`take`: the file gets the row of the pool. `drop`: the file loses a row that the pool no longer has. `conflict`: both
changed; the file gets the row of the pool, if it has one, and the words of the file are shown beside it. `foreign`: the
pool does not have it, and never had as far as is known: nothing is changed."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, and with `correct` the line that the pool is to have."""

    step: Step
    line: SyncLine | None = None


def decide(base: LineKey | None, file: SyncLine | None, pool: SyncLine | None) -> Decision:
    """Return what happens to a memory, given its line at the last sync, in the file and in the pool; None: not there.

    Without a last sync, nothing tells which side is right: lines that differ are a conflict.
    """
    if file is None:
        if pool is None:
            return Decision("keep")
        # A row that changed in the pool since a person deleted its line is not what they deleted.
        return Decision("forget" if base == pool.key else "take")
    if pool is None:
        if base is None:
            return Decision("foreign")
        return Decision("drop" if file.key == base else "conflict")
    if file.key == pool.key:
        return Decision("keep")
    merged = None if base is None else _merged(base, file, pool)
    if merged is None:
        return Decision("conflict")
    return Decision("take") if merged.key == pool.key else Decision("correct", merged)


def _merged(base: LineKey, file: SyncLine, pool: SyncLine) -> SyncLine | None:
    """Return the line with the changes of both sides; None if both changed the same part in two ways."""
    parts = list(zip(base, file.key, pool.key, strict=True))
    if any(ours not in (before, theirs) and theirs != before for before, ours, theirs in parts):
        return None
    text, priority, pinned = (ours != before for before, ours, _ in parts)
    return SyncLine(
        file.text if text else pool.text,
        file.priority if priority else pool.priority,
        file.pinned if pinned else pool.pinned,
    )


@dataclass(frozen=True, slots=True)
class Copy:
    """A bullet that names a memory: its file, its place in it, and its line."""

    path: str
    place: int
    line: SyncLine


@dataclass(frozen=True, slots=True)
class Claim:
    """The bullet that stands for a memory, those that only repeat it, and copies that were changed into new notes."""

    bullet: Copy
    repeats: Sequence[Copy]
    new: Sequence[Copy]


def claimed(copies: Sequence[Copy], known: LineKey | None) -> Claim | None:
    """Return which of the bullets with one id stands for its memory; None if that cannot be told.

    `known` is the line at the last sync, else that of the pool. If one copy is unchanged, changed ones are new notes:
    a person copied a bullet to write a similar one. A copy among the pinned ones pins.
    """
    words = {copy.line.key[:2] for copy in copies}
    if len(words) == 1:
        moved = [copy for copy in copies if known is not None and copy.line.pinned != known[2]]
        first = (moved or list(copies))[0]
        return Claim(first, [copy for copy in copies if copy != first], ())
    unchanged = [copy for copy in copies if known is not None and copy.line.key[:2] == known[:2]]
    if not unchanged:
        return None
    return Claim(unchanged[0], unchanged[1:], [copy for copy in copies if copy not in unchanged])
