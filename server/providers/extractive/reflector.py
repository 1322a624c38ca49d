"""The extractive reflector: condenses rows into fewer and shorter ones without new statements.

Rules, decisions and corrections of the user stay verbatim, a row each. Events (requests, failures, changes, outcomes)
are merged by episode, a stretch of the session that begins with a user's message. Repeats are dropped, and then rows of
low priority until the result fits.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from esker.server.core.facts.condensing import must_survive
from esker.server.core.facts.records import Draft, Reflected, ReflectionTask
from esker.server.core.ranking import PRIORITY_WEIGHT
from esker.server.core.records import EXTRACTIVE, Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.text.terms import terms
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.repeats import likenesses, repeated
from esker.server.providers.roles import Meter

_BARE_REQUEST_TOKENS = 16
EPISODE_TOKENS = 450
"""Maximum tokens of the row of an episode."""
# Maximum cost of drafts, as a share of the rows, if no row was merged; rewriting all of them must save at least 5 %.
_LITTLE_LESS = 0.95
_LIKE = 0.75
"""Minimum cosine at which a row of low priority resembles another and is dropped before others."""
# Rows whose messages are further apart than this many messages belong to different episodes.
_EPISODE_GAP = 40


class ExtractiveReflector:
    """Condenses by leaving out repeats and rows of low priority."""

    name = EXTRACTIVE

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return fewer, shorter rows that replace those of a task, or none when nothing can be left out."""
        return await asyncio.to_thread(reflect, task)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


@dataclass(frozen=True, slots=True)
class _MergedRow:
    """A row, and the ids of all rows that say the same, its own included."""

    row: Memory
    ids: tuple[str, ...]


def reflect(task: ReflectionTask) -> Reflected:
    """Return drafts for the rows of a task; the same task gives the same drafts."""
    merged = _without_repeats(task)
    drafts = _fit([draft for episode in _episodes(merged) for draft in _condense(episode)], task)
    cited = {source for draft in drafts for source in draft.source_ids}
    before = sum(row.tokens for row in task.rows)
    # Rewriting every row to save a few full stops is not a gain.
    if not drafts or _cost(drafts) > (before * _LITTLE_LESS if len(drafts) == len(task.rows) else before - 1):
        return Reflected(drafts=())
    return Reflected(tuple(drafts), dropped_ids=tuple(row.id for row in task.rows if row.id not in cited))


def _without_repeats(task: ReflectionTask) -> list[_MergedRow]:
    """Merge rows that say the same into the first: with the fullest, then latest wording and the highest priority."""
    kept: list[_MergedRow] = []
    for row, repeats in zip(task.rows, repeated(task.rows, task.vectors), strict=True):
        if repeats is None:
            kept.append(_MergedRow(row, (row.id,)))
            continue
        place = next(place for place, merged in enumerate(kept) if repeats in merged.ids)
        before = kept[place]
        priority = max(before.row.priority, row.priority, key=PRIORITY_WEIGHT.__getitem__)
        fullest = max(row, before.row, key=lambda one: len(set(terms(one.content))))
        kept[place] = _MergedRow(replace(fullest, priority=priority), (*before.ids, row.id))
    return kept


def _episodes(rows: Sequence[_MergedRow]) -> Iterator[list[_MergedRow]]:
    """Yield stretches that begin with the user's words and contain the work on them."""
    episode: list[_MergedRow] = []
    for merged in rows:
        spoke_again = merged.row.trust == "user" and bool(episode) and episode[-1].row.trust != "user"
        if spoke_again or (episode and _far(episode[-1].row, merged.row)):
            yield episode
            episode = []
        episode.append(merged)
    if episode:
        yield episode


def _is_request(row: Memory) -> bool:
    return row.category == "fact" and row.priority == "low"


def _far(row: Memory, after: Memory) -> bool:
    """Whether two rows cannot belong to one episode: a reflection, another session, or messages far apart."""
    if not row.source_seqs or not after.source_seqs or row.session_id != after.session_id:
        return True
    return after.source_seqs[0] - row.source_seqs[-1] > _EPISODE_GAP


def _condense(episode: Sequence[_MergedRow]) -> Iterator[Draft]:
    """Yield the drafts of an episode: assertions unchanged, events merged into one row."""
    course: list[_MergedRow] = []
    for merged in episode:
        if cues.PASSING.search(without_label(merged.row.content)) and not must_survive(merged.row):
            continue
        if _stands_alone(merged.row):
            yield _draft([merged], merged.row.content)
        else:
            course.append(merged)
    # Changes and short requests are dropped if no row of the course has at least medium priority and none is a commit.
    lasting = any(merged.row.priority != "low" for merged in course) or _has_commit(course)
    if kept := [merged for merged in course if lasting or _says_more(merged.row)]:
        yield from _course(kept)


def _says_more(row: Memory) -> bool:
    """Whether a row contains the user's words, and more than a short request."""
    return row.trust == "user" and (row.tokens > _BARE_REQUEST_TOKENS or not row.content.startswith(labels.ASKED))


def _has_commit(course: Sequence[_MergedRow]) -> bool:
    return any(merged.row.category == "outcome" for merged in course)


def _stands_alone(row: Memory) -> bool:
    """Whether a row is kept as it is, because it is not a step in a course of events."""
    if row.priority == "high" or row.kind == "reflection" or row.category in ("decision", "preference", "next_step"):
        return True
    return row.category == "fact" and not _is_request(row)


def _course(course: Sequence[_MergedRow]) -> Iterator[Draft]:
    """Yield a course of events as one draft, or as several of at most EPISODE_TOKENS."""
    part: list[_MergedRow] = []
    for merged in course:
        if part and sum(other.row.tokens for other in (*part, merged)) > EPISODE_TOKENS:
            yield _draft(part, _joined(part))
            part = []
        part.append(merged)
    yield _draft(part, _joined(part))


def _joined(part: Sequence[_MergedRow]) -> str:
    """Join the rows of one course into one text; a purpose that the request states already is not repeated."""
    requests = any(_is_request(merged.row) for merged in part)
    texts = (merged.row.content.split(labels.PURPOSE)[0] if requests else merged.row.content for merged in part)
    return labels.STEP.join(text.rstrip(".") for text in texts)


def _draft(part: Sequence[_MergedRow], content: str) -> Draft:
    best = max(part, key=lambda merged: PRIORITY_WEIGHT[merged.row.priority]).row
    last = part[-1].row
    return Draft(
        content=content,
        priority=best.priority,
        category=best.category if len(part) == 1 else last.category,
        source_ids=tuple(dict.fromkeys(source for merged in part for source in merged.ids)),
    )


def _fit(drafts: list[Draft], task: ReflectionTask) -> list[Draft]:
    """Drop drafts of low priority until the rest costs at most the target: those like another first, then the oldest.

    Drafts of a higher priority are never dropped.
    """
    kept = list(drafts)
    cost = _cost(drafts)
    likeness = dict(zip(map(id, drafts), likenesses([d.source_ids for d in drafts], task.vectors), strict=True))
    low = [draft for draft in drafts if draft.priority == "low"]
    for draft in sorted(low, key=lambda draft: likeness[id(draft)] < _LIKE):
        if cost <= task.target_tokens:
            break
        kept.remove(draft)
        cost -= _cost([draft])
    return kept


def _cost(drafts: Sequence[Draft]) -> int:
    return sum(estimate_tokens(draft.content) for draft in drafts)
