"""The extractive reflector: leaves out rows that no longer help, and changes the words of no statement.

A row stays as it is, unless a later row says the same or outdates it, unless it is of the moment (progress, a passing
state, chatter, a fulfilled request) or was passed over (a question, an offer), or unless the space is short. Changes of
the same files, and statements of one report with one heading, become one row that names their subject once. A row that
is a reflection already is not extended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from esker.server.core.arrays import Vector
from esker.server.core.conversation.trust import at_least_as_trusted
from esker.server.core.facts.condensing import must_survive
from esker.server.core.facts.records import Draft, Reflected, ReflectionTask
from esker.server.core.ranking import PRIORITY_WEIGHT
from esker.server.core.records import Memory
from esker.server.core.text.terms import terms
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive.hindsight import Hindsight
from esker.server.providers.extractive.joining import joined_rows
from esker.server.providers.extractive.momentary import is_momentary
from esker.server.providers.extractive.passed_over import is_passed_over
from esker.server.providers.extractive.repeats import likenesses, repeated, says_again

_LIKE = 0.75
"""Minimum cosine at which a row of low priority resembles another and is dropped before others."""


@dataclass(frozen=True, slots=True)
class _MergedRow:
    """A row that stays, and the ids of all rows whose place it takes, its own included."""

    row: Memory
    ids: tuple[str, ...]


def reflect(task: ReflectionTask) -> Reflected:
    """Return drafts for the rows of a task; the same task gives the same drafts, and their rows give none."""
    left = [_MergedRow(row, (row.id,)) for row in task.rows]
    before: list[_MergedRow] = []
    hindsight = Hindsight(task.vectors)
    while left != before:  # a row that is gone can make others the first to say something
        before, left = left, _one_pass(left, hindsight, task.vectors)
    left = _fit(left, task)
    if not left or len(left) == len(task.rows):
        return Reflected(drafts=())
    drafts = tuple(Draft(one.row.content, one.row.priority, one.row.category, one.ids) for one in left)
    cited = {source for draft in drafts for source in draft.source_ids}
    return Reflected(drafts, dropped_ids=tuple(row.id for row in task.rows if row.id not in cited))


def _one_pass(rows: Sequence[_MergedRow], hindsight: Hindsight, vectors: Mapping[str, Vector]) -> list[_MergedRow]:
    """Return the rows, as reflections, after one pass: without repeats and rows of no use, and joined."""
    left = _without_outdated(_without_repeats(rows, vectors), hindsight)
    later = [one.row for one in left]
    joined = _with_joined_rows([one for one in left if not _is_left_out(one.row, later)])
    return [replace(one, row=_as_reflection(one.row)) for one in joined]


def _as_reflection(row: Memory) -> Memory:
    """Return an observation as the row of a reflection that it becomes."""
    return replace(row, kind="reflection") if row.kind == "observation" else row


def _is_left_out(row: Memory, rows: Sequence[Memory]) -> bool:
    if row.kind == "note":
        return False
    return is_passed_over(row, rows) or (not must_survive(row) and is_momentary(row, rows))


def _without_repeats(rows: Sequence[_MergedRow], vectors: Mapping[str, Vector]) -> list[_MergedRow]:
    """Merge rows that say the same into the first: with the fullest, then latest wording and the highest priority.

    A row of which the user says that it repeats an earlier one leaves the wording to that one.
    Of two rows of different trust the more trusted one stays alone: the other would lower its trust.
    """
    places: dict[str, int] = {}
    kept: list[_MergedRow] = []
    for one, repeats in zip(rows, repeated([one.row for one in rows], vectors), strict=True):
        if repeats is None:
            places[one.row.id] = len(kept)
            kept.append(one)
        else:
            kept[places[repeats]] = _merged(kept[places[repeats]], one)
    return sorted(kept, key=lambda one: one.row.said_at)


def _merged(before: _MergedRow, one: _MergedRow) -> _MergedRow:
    priority = max(before.row.priority, one.row.priority, key=PRIORITY_WEIGHT.__getitem__)
    both = [more for more, other in ((one, before), (before, one)) if _is_trusted_as(more.row, other.row)]
    fullest = before if says_again(one.row, before.row) else max(both, key=lambda x: len(set(terms(x.row.content))))
    ids = tuple(source for more in (before, one) if more in both for source in more.ids)
    said_at = max(more.row.said_at for more in both)
    return _MergedRow(replace(fullest.row, priority=priority, said_at=said_at), ids)


def _is_trusted_as(row: Memory, other: Memory) -> bool:
    return at_least_as_trusted(row.trust, other.trust)


def _without_outdated(rows: Sequence[_MergedRow], hindsight: Hindsight) -> list[_MergedRow]:
    """Leave out rows that a later one outdates; the later one cites them unless that would lower its trust."""
    by_id = {one.row.id: one for one in rows}
    newest = hindsight.outdated([one.row for one in rows])
    taken: dict[str, tuple[str, ...]] = {}
    for old, new in newest.items():
        while new in newest:
            new = newest[new]
        if at_least_as_trusted(by_id[old].row.trust, by_id[new].row.trust):
            taken[new] = (*taken.get(new, ()), *by_id[old].ids)
    return [replace(one, ids=(*one.ids, *taken.get(one.row.id, ()))) for one in rows if one.row.id not in newest]


def _with_joined_rows(rows: Sequence[_MergedRow]) -> list[_MergedRow]:
    """Join the rows about one subject into the last of them."""
    by_id = {one.row.id: one for one in rows}
    joined = {one.ids[-1]: one for one in joined_rows([one.row for one in rows])}
    gone = {i for one in joined.values() for i in one.ids[:-1]}
    left: list[_MergedRow] = []
    for one in rows:
        if all_of_it := joined.get(one.row.id):
            row = replace(one.row, content=all_of_it.content, tokens=estimate_tokens(all_of_it.content))
            left.append(_MergedRow(row, tuple(source for i in all_of_it.ids for source in by_id[i].ids)))
        elif one.row.id not in gone:
            left.append(one)
    return left


def _fit(rows: list[_MergedRow], task: ReflectionTask) -> list[_MergedRow]:
    """Drop rows of low priority until the rest costs at most the target: those like another first, then the oldest.

    Rows of a higher priority are never dropped.
    """
    kept = list(rows)
    cost = sum(one.row.tokens for one in rows)
    if cost <= task.target_tokens:
        return kept
    likeness = dict(zip([one.row.id for one in rows], likenesses([one.ids for one in rows], task.vectors), strict=True))
    low = [one for one in rows if one.row.priority == "low"]
    for one in sorted(low, key=lambda one: likeness[one.row.id] < _LIKE):
        if cost <= task.target_tokens:
            break
        kept.remove(one)
        cost -= one.row.tokens
    return kept
