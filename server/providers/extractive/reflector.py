"""The extractive reflector: says the same in fewer rows and fewer words, and nothing else.

What a person ruled, decided or corrected stays verbatim, a row each. What happened (requests, failures, changes,
outcomes) is gathered by episode, a stretch of the session that begins with what a person said. Repeats go; so does
what matters least, until the result fits.
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
"""How long the row of one episode may become."""
_LITTLE_LESS = 0.95
_LIKE = 0.75
"""Cosine from which a small matter is like another."""
# Rows whose messages are further apart than this belong to different episodes.
_EPISODE_GAP = 40


class ExtractiveReflector:
    """Condenses by leaving out repeats and small matters."""

    name = EXTRACTIVE

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return fewer, shorter rows that stand for those of a task, or none when nothing can be left out."""
        return await asyncio.to_thread(reflect, task)

    async def close(self) -> None:
        """Do nothing: there is nothing to let go of."""


@dataclass(frozen=True, slots=True)
class _MergedRow:
    """A row, with the other rows that say the same."""

    row: Memory
    ids: tuple[str, ...]


def reflect(task: ReflectionTask) -> Reflected:
    """Return drafts for the rows of a task; the same task gives the same drafts."""
    merged = _without_repeats(task)
    drafts = _fit([draft for episode in _episodes(merged) for draft in _condense(episode)], task)
    cited = {source for draft in drafts for source in draft.source_ids}
    before = sum(row.tokens for row in task.rows)
    # To write every row anew for the sake of a few full stops is no gain.
    if not drafts or _cost(drafts) > (before * _LITTLE_LESS if len(drafts) == len(task.rows) else before - 1):
        return Reflected(drafts=())
    return Reflected(tuple(drafts), dropped_ids=tuple(row.id for row in task.rows if row.id not in cited))


def _without_repeats(task: ReflectionTask) -> list[_MergedRow]:
    """Merge rows that say the same, at the place of the first: the fullest and latest wording, the highest priority."""
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
    """Yield stretches that begin with what a person said and hold what was done about it."""
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
    """Tell whether rows are no neighbours: reflections stand alone, and so does what is far away."""
    if not row.source_seqs or not after.source_seqs or row.session_id != after.session_id:
        return True
    return after.source_seqs[0] - row.source_seqs[-1] > _EPISODE_GAP


def _condense(episode: Sequence[_MergedRow]) -> Iterator[Draft]:
    """Yield the rows of an episode: assertions as they are, the course of things as one row."""
    course: list[_MergedRow] = []
    for merged in episode:
        if cues.PASSING.search(without_label(merged.row.content)) and not must_survive(merged.row):
            continue
        if _stands_alone(merged.row):
            yield _draft([merged], merged.row.content)
        else:
            course.append(merged)
    # What was changed, or asked for in a few words, and came to nothing that is worth a medium row is left out.
    lasting = any(merged.row.priority != "low" for merged in course) or _has_commit(course)
    if told := [merged for merged in course if lasting or _says_more(merged.row)]:
        yield from _course(told)


def _says_more(row: Memory) -> bool:
    """Tell whether a row holds what a person said, and more than a bare request."""
    return row.trust == "user" and (row.tokens > _BARE_REQUEST_TOKENS or not row.content.startswith(labels.ASKED))


def _has_commit(course: Sequence[_MergedRow]) -> bool:
    return any(merged.row.category == "outcome" for merged in course)


def _stands_alone(row: Memory) -> bool:
    """Tell whether a row is a matter of its own and not a step of what happened."""
    if row.priority == "high" or row.kind == "reflection" or row.category in ("decision", "preference", "next_step"):
        return True
    return row.category == "fact" and not _is_request(row)


def _course(course: Sequence[_MergedRow]) -> Iterator[Draft]:
    """Yield one row for what happened, as many as the length of a row allows."""
    part: list[_MergedRow] = []
    for merged in course:
        if part and sum(other.row.tokens for other in (*part, merged)) > EPISODE_TOKENS:
            yield _draft(part, _told(part))
            part = []
        part.append(merged)
    yield _draft(part, _told(part))


def _told(part: Sequence[_MergedRow]) -> str:
    """Put the rows of one course into one text; a purpose that the request states already is not repeated."""
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
    """Drop low rows until the rest costs at most the target: what is most like another first, then the oldest.

    More than low is never dropped.
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
