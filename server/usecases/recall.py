"""Recall: answer a question from the pool, by keyword and by meaning, or answer that nothing is known."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from esker.server.core.conversation.records import Passage
from esker.server.core.dates.asked import AskedTime, asked_time
from esker.server.core.dates.window import Anchor, Window, anchored_window
from esker.server.core.facts.retelling import RETOLD
from esker.server.core.recall.answer import (
    AskedWindow,
    Hit,
    LeftOutCandidate,
    LeftOutReason,
    ModelStepOutcome,
    Recalled,
)
from esker.server.core.recall.candidates import (
    RankedCandidate,
    above_floor,
    below_floor,
    best_first,
    best_of_each,
    candidates_in_window,
    ranked,
)
from esker.server.core.recall.fitting import fitting
from esker.server.core.recall.reranking import FIRST
from esker.server.core.recall.selection import CandidateTexts, Chosen, choose, without_seen
from esker.server.core.records import Filter, Memory, Source
from esker.server.core.text.labels import without_label
from esker.server.core.text.terms import asks_of_something
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, known, send
from esker.server.store import memories, passages, search
from esker.server.usecases.find_candidates import Question, find_candidates
from esker.server.usecases.find_projects import renamed_project
from esker.server.usecases.paraphrase import paraphrase
from esker.server.usecases.parts import Parts
from esker.server.usecases.query_embedding import (
    QueryVector,
    paraphrased_questions,
    question_of,
    semantic_of,
)
from esker.server.usecases.recall_request import MAX_LIMIT, RecallRequest, checked, tiers
from esker.server.usecases.recall_scope import RecallScope, resolve_scope, searching
from esker.server.usecases.rerank import rerank

# Candidates that are read for each requested hit, since some say the same, and further ones.
_READ_FOR_EACH = 2
_READ_AT_LEAST = 24
# Characters of texts up to which choosing among them takes less time than starting a thread, or little more.
_FEW_CHARACTERS = 8_192
# The most candidates among which the event is looked for that a question takes its time from.
_ANCHORS = 5


@dataclass(frozen=True, slots=True)
class _ReadQuery:
    """The question and its paraphrases, or only a time (`only_time`), and the outcomes of reading them."""

    questions: list[Question]
    semantic: QueryVector
    window: Window | None
    firm: bool
    only_time: bool
    paraphrases: list[str]
    paraphrased: ModelStepOutcome


@dataclass(frozen=True, slots=True)
class _Ranked:
    """The relevant candidates, best first, and the others; the texts of the first ones are `read`.

    `seen` counts relevant candidates that the caller has already.
    """

    relevant: list[RankedCandidate]
    left_out: list[LeftOutCandidate]
    read: list[RankedCandidate]
    seen: int


async def recall(parts: Parts, pool_id: str, request: RecallRequest) -> Recalled:
    """Answer a question. Raises InvalidInput, also for a scope without its session or project; NotFound."""
    instruments = parts.instruments
    with instruments.recall_arm("all"):
        answer = await _recall(parts, pool_id, request)
        unknown = answer.unknown_project
        if unknown and (present := await renamed_project(parts, pool_id, unknown.name)):
            answer = await _recall(parts, pool_id, replace(request, project=present))
    instruments.recall_answers.labels(answer.semantic, "no" if answer.abstained else "yes").inc()
    return answer


async def _recall(parts: Parts, pool_id: str, request: RecallRequest) -> Recalled:
    request = checked(request)
    async with AsyncExitStack() as held:
        scope = await resolve_scope(parts, pool_id, request, held)
        query = await _read_query(parts, scope)
        with parts.instruments.recall_arm("search"):
            async with searching(parts, scope) as connection:
                found = await _find(connection, scope, query)
                reading = await _send_texts(connection, query.semantic.space, found.read, scope.row_filter)
    texts = await reading.texts()
    # A reranker does not know when a text was said.
    reranking = parts.reranking if scope.request.ranking == "full" and query.window is None else None
    distinct = (max(scope.request.limit, FIRST) if reranking else scope.request.limit) + found.seen
    terms = [term for one in query.questions for term in one.words.terms]
    choosing = partial(
        choose,
        found.read,
        texts,
        terms,
        scope.now,
        limit=distinct,
        window=query.window,
        firm=query.firm,
    )
    # Comparing long rows to find repeats is slow.
    chosen = choosing() if texts.characters <= _FEW_CHARACTERS else await asyncio.to_thread(choosing)
    chosen = without_seen(chosen, set(scope.request.without))
    with parts.instruments.recall_arm("rerank") if reranking else nullcontext():
        hits, reranked = await rerank(reranking, scope.request.query, chosen.hits)
    return _answer(scope, query, found, replace(chosen, hits=hits), reranked)


async def _read_query(parts: Parts, scope: RecallScope) -> _ReadQuery:
    request, full = scope.request, scope.request.ranking == "full"
    query = without_label(request.query) or request.query
    time = asked_time(query, scope.row_filter.as_of or scope.now, scope.timezone) if full else None
    with parts.instruments.recall_arm("question"):
        semantic = await semantic_of(parts, scope.space, request, query)
    window = await _window(parts, scope, time) if time else None
    words = time.rest if time else query
    only_time = window is not None and not asks_of_something(words)
    question = question_of(words, query, request, scope.space, semantic)
    paraphrases, paraphrased = await _paraphrases(parts, scope, words) if full and not only_time else ([], "off")
    others = await paraphrased_questions(parts, request, scope.space, question, paraphrases)
    firm = time is not None and time.firm
    return _ReadQuery([question, *others], semantic, window, firm, only_time, paraphrases, paraphrased)


async def _paraphrases(parts: Parts, scope: RecallScope, words: str) -> tuple[list[str], ModelStepOutcome]:
    with parts.instruments.recall_arm("paraphrase") if parts.paraphrases else nullcontext():
        return await paraphrase(parts, scope.pool_id, words)


async def _window(parts: Parts, scope: RecallScope, time: AskedTime) -> Window | None:
    return await _anchored(parts, scope, time.anchor) if time.anchor else time.window


async def _anchored(parts: Parts, scope: RecallScope, anchor: Anchor) -> Window | None:
    """Return the window around an event that the question names, which is searched for; None if it is not found."""
    semantic = await semantic_of(parts, scope.space, scope.request, anchor.words)
    request = replace(scope.request, ranking="fused")
    question = question_of(anchor.words, anchor.words, request, scope.space, semantic)
    async with searching(parts, scope) as connection:
        candidates = await find_candidates(
            connection, [question], ["memory"], scope.row_filter, scope.sizes, scope.counts
        )
        relevant = above_floor([one for each in candidates for one in ranked(each)])
        # Skip candidates found only by vector: they are usually about something else.
        named = [one.id for one in relevant if one.own.keyword > 0][:_ANCHORS]
        rows = await memories.get(connection, named)
    # Prefer a memory that has a date of its own (`refers_from`).
    dated = next((rows[memory_id] for memory_id in named if rows[memory_id].refers_from), None)
    row = dated or next((rows[memory_id] for memory_id in named), None)
    if row is None:
        return None
    start = row.refers_from or row.said_at
    return anchored_window(anchor, start, row.refers_to or start, scope.timezone)


async def _find(connection: Connection, scope: RecallScope, query: _ReadQuery) -> _Ranked:
    """Find the relevant candidates, and choose those whose texts an answer may need."""
    request, row_filter, window = scope.request, scope.row_filter, query.window
    if window and query.only_time:
        relevant, left_out = await _within(connection, window, request, row_filter), list[LeftOutCandidate]()
    else:
        relevant, left_out = await _relevant(connection, query.questions, scope)
    already = set(request.without)
    seen = sum(one.id in already for one in relevant) if already else 0
    # Any text that fits the window can move to the front, so all are read.
    read = relevant if window else relevant[: _READ_FOR_EACH * (request.limit + seen) + _READ_AT_LEAST]
    return _Ranked(relevant, left_out, read, seen)


async def _relevant(
    connection: Connection, questions: Sequence[Question], scope: RecallScope
) -> tuple[list[RankedCandidate], list[LeftOutCandidate]]:
    """Return the candidates that are about a question or a paraphrase of it, best first, and on request the others."""
    found = await find_candidates(
        connection, questions, tiers(scope.request), scope.row_filter, scope.sizes, scope.counts
    )
    candidates = best_of_each(one for each in found for one in ranked(each))
    relevant = above_floor(candidates)
    return relevant, below_floor(candidates, relevant) if scope.request.explain else []


async def _within(
    connection: Connection, window: Window, request: RecallRequest, row_filter: Filter
) -> list[RankedCandidate]:
    """Return the texts from a window, for a question that names only a time."""
    return best_first(
        [
            one
            for tier in tiers(request)
            for one in candidates_in_window(
                tier, await search.said_within(connection, tier, window, row_filter, MAX_LIMIT)
            )
        ]
    )


@dataclass(frozen=True, slots=True)
class _TextAnswers:
    """Queries under way for the texts of candidates, and for the cosines and sources that show which say the same."""

    memories: Answer[dict[str, Memory]]
    passages: Answer[dict[str, Passage]]
    near: Answer[dict[tuple[str, str], float]]
    again: Answer[dict[str, list[Source]]]
    said_in: Answer[dict[str, set[tuple[str, int]]]]
    outdated: Answer[dict[str, bool]]
    with_superseded: bool

    async def texts(self) -> CandidateTexts:
        """Return them when they have come; a passage is not outdated as a whole if superseded rows are requested."""
        outdated = await self.outdated
        return CandidateTexts(
            await self.memories,
            await self.passages,
            await self.near,
            await self.again,
            await self.said_in,
            {passage_id: wholly and not self.with_superseded for passage_id, wholly in outdated.items()},
        )


async def _send_texts(
    connection: Connection, space: str | None, read: Sequence[RankedCandidate], row_filter: Filter
) -> _TextAnswers:
    memory_ids = [one.id for one in read if one.tier == "memory"]
    passage_ids = [one.id for one in read if one.tier == "passage"]
    return _TextAnswers(
        await send(connection, memories.by_ids(memory_ids)) if memory_ids else known({}),
        await send(connection, passages.by_ids(passage_ids)) if passage_ids else known({}),
        await send(connection, search.near_pairs(space, memory_ids, RETOLD)) if space and memory_ids else known({}),
        await send(connection, memories.other_sources(memory_ids)) if memory_ids else known({}),
        await send(connection, memories.said_in(memory_ids)) if passage_ids and memory_ids else known({}),
        # A passage is outdated now or at `as_of`.
        await send(connection, passages.outdated(passage_ids, row_filter.moment, row_filter.as_of))
        if passage_ids
        else known({}),
        row_filter.with_superseded,
    )


def _answer(
    scope: RecallScope, query: _ReadQuery, found: _Ranked, chosen: Chosen, reranked: ModelStepOutcome
) -> Recalled:
    request, window = scope.request, query.window
    hits = fitting(chosen.hits, request.limit, request.max_tokens, chosen.shown_in)
    covered = _covered(chosen, hits)
    return Recalled(
        hits=hits if request.explain else [replace(hit, parts=None) for hit in hits],
        semantic="off" if request.ranking == "keyword" else _took_part(query.semantic),
        reason=query.semantic.reason,
        abstained=not (chosen.hits or chosen.seen),
        omitted=len(chosen.hits) - len(hits) - len(covered) + len(found.relevant) - len(found.read),
        pending=scope.pending,
        unobserved_tokens=scope.unobserved,
        window=None if window is None else AskedWindow(window.start, window.end),
        reranked=reranked,
        paraphrased=query.paraphrased,
        paraphrases=query.paraphrases,
        left_out=[*_unshown(chosen, hits, covered, request.limit), *found.left_out] if request.explain else [],
        seen=chosen.seen,
        # A row may have been written into the project meanwhile.
        unknown_project=None if any(hit.project for hit in hits) else scope.unknown,
    )


def _took_part(semantic: QueryVector) -> Literal["ok", "weak", "degraded"]:
    if not semantic.space:
        return "degraded"
    return "weak" if semantic.weak else "ok"


def _covered(chosen: Chosen, shown: Sequence[Hit]) -> list[LeftOutCandidate]:
    """Return the memories that a passage among the shown hits makes needless."""
    shown_ids = {hit.id for hit in shown}
    return [
        LeftOutCandidate(hit.id, "covered", by, hit.parts)
        for hit in chosen.hits
        if (by := chosen.shown_in.get(hit.id)) in shown_ids and hit.id not in shown_ids and hit.parts
    ]


def _unshown(
    chosen: Chosen, shown: Sequence[Hit], covered: Sequence[LeftOutCandidate], limit: int
) -> list[LeftOutCandidate]:
    """Return the candidates that are not hits, relevant ones first."""
    shown_ids, covered_ids = {hit.id for hit in shown}, {one.id for one in covered}
    counted = [hit for hit in chosen.hits if hit.id not in covered_ids]
    reasons: list[LeftOutReason] = ["tokens" if index < limit else "limit" for index in range(len(counted))]
    unshown = [
        LeftOutCandidate(hit.id, reason, None, hit.parts)
        for hit, reason in zip(counted, reasons, strict=True)
        if hit.id not in shown_ids and hit.parts
    ]
    return [*unshown, *covered, *chosen.left_out]
