"""Why a row is in a pack or was left out, as recorded when the pack was frozen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from esker.server.core.pack.records import Pack
from esker.server.core.ranking import KIND_BIAS, PRIORITY_WEIGHT, pack_score
from esker.server.core.records import Kind, Priority

PackSection = Literal["global", "local"]
Why = Literal["pinned", "rank", "budget", "same_words"]
"""Included: `pinned` by a person, or by `rank`. Left out: over `budget`, or the `same_words` as another row."""


class RowDecision(NamedTuple):
    """Why a row was included or left out. `tokens` are those of its line; `rank` counts candidates from 1.

    `kind`, `priority` and `last_used_at` are the values at that time. `like` is the id of the row with the same words.
    """

    id: str
    section: PackSection
    why: Why
    like: str | None
    rank: int | None
    kind: Kind
    priority: Priority
    last_used_at: datetime
    tokens: int


@dataclass(frozen=True, slots=True)
class PackScoreParts:
    """The parts whose sum is a score: the logarithms of the priority's weight and of the kind's bias, and the last
    use, ln 2 for each half-life since 1970.
    """

    priority: float
    kind: float
    last_use: float


@dataclass(frozen=True, slots=True)
class ExplainedRow:
    """A decision with the score of its row (None: pinned) and its age: from its last use to the pack's freezing."""

    id: str
    section: PackSection
    rank: int | None
    why: Why
    like: str | None
    tokens: int
    kind: Kind
    priority: Priority
    last_used_at: datetime
    age_days: float
    score: float | None
    parts: PackScoreParts | None


@dataclass(frozen=True, slots=True)
class PackExplanation:
    """Why the rows of a pack are in it, in the order of its text, and why other candidates are not."""

    rows: list[ExplainedRow]
    left_out: list[ExplainedRow]


def as_stored(reasons: Iterable[RowDecision]) -> list[list[Any]]:
    """Return decisions as they are stored: everything but the ids, which have a column of their own."""
    return [
        [r.section, r.why, r.like, r.rank, r.kind, r.priority, r.last_used_at.isoformat(), r.tokens] for r in reasons
    ]


def explained(pack: Pack, ids: Sequence[str], stored: Sequence[Sequence[Any]]) -> list[ExplainedRow]:
    """Return stored decisions with the scores that the rows had when the pack was frozen."""
    reasons = (
        RowDecision(row_id, section, why, like, rank, kind, priority, datetime.fromisoformat(used), tokens)
        for row_id, (section, why, like, rank, kind, priority, used, tokens) in zip(ids, stored, strict=True)
    )
    return [_explained(reason, pack.created_at) for reason in reasons]


def _explained(reason: RowDecision, frozen_at: datetime) -> ExplainedRow:
    score, parts = None, None
    if reason.kind != "manual":
        score = pack_score(reason.kind, reason.priority, reason.last_used_at)
        priority, kind = math.log(PRIORITY_WEIGHT[reason.priority]), math.log(KIND_BIAS[reason.kind])
        parts = PackScoreParts(priority, kind, score - priority - kind)
    return ExplainedRow(
        id=reason.id,
        section=reason.section,
        rank=reason.rank,
        why=reason.why,
        like=reason.like,
        tokens=reason.tokens,
        kind=reason.kind,
        priority=reason.priority,
        last_used_at=reason.last_used_at,
        age_days=(frozen_at - reason.last_used_at) / timedelta(days=1),
        score=score,
        parts=parts,
    )
