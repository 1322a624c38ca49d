"""Recall: what the pool knows about a question, by keyword and by meaning, or the answer that it knows nothing."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from server.core.asked_time import asked_time
from server.core.calibration import calibration_for
from server.core.clock import as_utc
from server.core.errors import EmbedderDown, InvalidInput, TextRefused
from server.core.hits import (
    Chosen,
    Ranked,
    Texts,
    choose,
    fitting,
    in_order,
    once_each,
    ranked,
    told_in_time,
    worth_reading,
)
from server.core.json_input import clean_text
from server.core.labels import without_label
from server.core.recalled import AskedWindow, Hit, LeftOut, Reason, Recalled
from server.core.records import Filter, Kind, Priority, Ranking, Scope, Tier, at_least
from server.core.redaction import redact
from server.core.reranking import FIRST
from server.core.retelling import RETOLD
from server.core.terms import asked_terms, asks_of_something
from server.core.window import Anchor, Window, anchored_window
from server.db.database import Connection
from server.store import memories, passages, search, sessions, vectors
from server.store.search import Words
from server.store.vectors import PoolSpace
from server.usecases.find_candidates import Question, find_candidates
from server.usecases.parts import Parts
from server.usecases.rerank import rerank
from server.usecases.reword import reword

MAX_QUERY_CHARACTERS = 4_000
MAX_LIMIT = 50
MIN_TOKENS = 50
_MOST_WORDS = 200
# So many candidates are read for each hit that is asked for, since some say the same, and some more.
_READ_FOR_EACH = 2
_READ_AT_LEAST = 24
# So many of the best are looked through for the time of something.
_ANCHORS = 5
_EMBED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question to memory. Times filter by when a thing was said or what time it speaks of.

    Without a `scope` it is asked of the project that is named, and else of the pool. `ranking` chooses what the answer
    is ranked by: one of the two searches alone, both, or both and all else that is known; the others are there to be
    measured against.
    """

    query: str
    limit: int = 8
    scope: Scope | None = None
    session_id: str | None = None
    project: str | None = None
    kinds: Sequence[Kind] | None = None
    tags: Sequence[str] | None = None
    min_priority: Priority = "low"
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False
    max_tokens: int | None = None
    tier: Literal["memories", "passages", "both"] = "both"
    ranking: Ranking = "full"
    explain: bool = False


@dataclass(frozen=True, slots=True)
class _Semantic:
    """What the search by meaning has to work with: a vector in a space, or the reason why there is none."""

    space: str | None = None
    vector: Sequence[float] = ()
    reason: str | None = None


async def recall(parts: Parts, pool_id: str, asked: RecallRequest) -> Recalled:
    """Answer a question. Raises InvalidInput, also for a scope without its session or project; NotFound."""
    asked = _checked(asked)
    now = parts.clock()
    async with parts.database.tenant(pool_id) as connection:
        what, timezone = await _filter(connection, asked, now)
        unobserved = await sessions.unobserved_tokens(connection, what.session)
        space, pending = await _active_space(connection, parts)
    query = without_label(asked.query) or asked.query
    time = asked_time(query, what.as_of or now, timezone) if asked.ranking == "full" else None
    # A model may take its time, and no connection is held meanwhile.
    semantic = await _semantic(parts, space, asked, query)
    window = time.window if time else None
    if time and time.anchor:
        window = await _anchored(parts, pool_id, time.anchor, timezone, asked, space, what)
    words = time.rest if time else query
    only_time = window is not None and not asks_of_something(words)
    question = _question(words, query, asked, space, semantic)
    full = asked.ranking == "full"
    wordings, paraphrased = await reword(parts, pool_id, words) if full and not only_time else ([], "off")
    questions = [question, *await _in_other_words(parts, asked, space, question, wordings)]
    async with parts.database.tenant(pool_id) as connection:
        if window and only_time:
            relevant, left_out = await _told_in(connection, window, asked, what), list[LeftOut]()
        else:
            relevant, left_out = await _about(connection, questions, asked, what)
        # Whatever fits the time may come to the front, so all of it has to be read.
        read = relevant if window else relevant[: _READ_FOR_EACH * asked.limit + _READ_AT_LEAST]
        texts = await _texts(connection, semantic.space, read, what)
    # What says the same is found by comparing, which takes a while.
    terms = [term for one in questions for term in one.words.terms]
    # A reranker reads words and does not know when they were said.
    reranking = parts.reranking if full and window is None else None
    distinct = max(asked.limit, FIRST) if reranking else asked.limit
    chosen = await asyncio.to_thread(choose, read, texts, terms, now, limit=distinct, window=window)
    reordered, reranked = await rerank(reranking, query, chosen.hits)
    chosen = replace(chosen, hits=reordered)
    hits = fitting(chosen.hits[: asked.limit], asked.max_tokens)
    return Recalled(
        hits=hits if asked.explain else [replace(hit, parts=None) for hit in hits],
        semantic="off" if asked.ranking == "keyword" else "ok" if semantic.space else "degraded",
        reason=semantic.reason,
        abstained=not chosen.hits,
        omitted=len(chosen.hits) - len(hits) + len(relevant) - len(read),
        pending=pending,
        unobserved_tokens=unobserved,
        window=None if window is None else AskedWindow(window.start, window.end),
        reranked=reranked,
        paraphrased=paraphrased,
        wordings=wordings,
        left_out=[*_left_out(chosen, hits, asked.limit), *left_out] if asked.explain else [],
    )


async def _about(
    connection: Connection, questions: Sequence[Question], asked: RecallRequest, what: Filter
) -> tuple[list[Ranked], list[LeftOut]]:
    """Return what is about a question, in any of its wordings, best first, and the candidates that are not."""
    found = [await find_candidates(connection, tier, one, what) for one in questions for tier in _tiers(asked)]
    return worth_reading(once_each(one for each in found for one in ranked(each)))


async def _told_in(connection: Connection, window: Window, asked: RecallRequest, what: Filter) -> list[Ranked]:
    """Return what there is from a time, for whoever asks for nothing else."""
    return in_order(
        [
            one
            for tier in _tiers(asked)
            for one in told_in_time(tier, await search.told_in(connection, tier, window, what, MAX_LIMIT))
        ]
    )


async def _semantic(parts: Parts, space: PoolSpace | None, asked: RecallRequest, query: str) -> _Semantic:
    return _Semantic() if asked.ranking == "keyword" else await _embed(parts, space, query)


def _question(words: str, query: str, asked: RecallRequest, space: PoolSpace | None, semantic: _Semantic) -> Question:
    """Return what is searched for: `words` by keyword, and the vector of the whole query."""
    terms = _words("" if asked.ranking == "vector" else words)
    calibration = calibration_for(query, space.calibration if space else {})
    return Question(terms, space if semantic.space else None, semantic.vector, calibration, asked.ranking)


async def _anchored(
    parts: Parts,
    pool_id: str,
    anchor: Anchor,
    timezone: str,
    asked: RecallRequest,
    space: PoolSpace | None,
    what: Filter,
) -> Window | None:
    """Return the time that is told from something else, which is looked for first; None when nothing is known of it."""
    semantic = await _semantic(parts, space, asked, anchor.words)
    question = _question(anchor.words, anchor.words, replace(asked, ranking="fused"), space, semantic)
    async with parts.database.tenant(pool_id) as connection:
        candidates = await find_candidates(connection, "memory", question, what)
        relevant, _ = worth_reading(ranked(candidates))
        rows = await memories.get(connection, [one.id for one in relevant[:_ANCHORS]])
    # What tells when it was or will be, before what only speaks of it.
    dated = next((rows[one.id] for one in relevant[:_ANCHORS] if rows[one.id].refers_from), None)
    row = dated or next((rows[one.id] for one in relevant[:1]), None)
    if row is None:
        return None
    start = row.refers_from or row.said_at
    return anchored_window(anchor, start, row.refers_to or start, timezone)


def _tiers(asked: RecallRequest) -> Sequence[Tier]:
    """Return where to search. Passages have no kind, tag or priority, so whoever asks for those asks for memories."""
    if asked.tier == "both":
        return ("memory",) if _asks_of_memories(asked) else ("memory", "passage")
    return ("memory",) if asked.tier == "memories" else ("passage",)


def _asks_of_memories(asked: RecallRequest) -> bool:
    return bool(asked.kinds or asked.tags) or asked.min_priority != "low"


def _left_out(chosen: Chosen, shown: Sequence[Hit], limit: int) -> list[LeftOut]:
    """Return the candidates that are no hits, those first that were relevant."""
    there = {hit.id for hit in shown}
    reasons: list[Reason] = ["tokens" if place < limit else "limit" for place in range(len(chosen.hits))]
    unshown = [
        LeftOut(hit.id, reason, None, hit.parts)
        for hit, reason in zip(chosen.hits, reasons, strict=True)
        if hit.id not in there and hit.parts
    ]
    return [*unshown, *chosen.left_out]


def _checked(asked: RecallRequest) -> RecallRequest:
    """Return a request with its text cleaned, whoever sent it. Raises InvalidInput."""
    query = redact(clean_text(asked.query)).strip()
    if not query:
        raise InvalidInput("The query is blank.")
    if len(asked.query) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(f"The query is longer than {MAX_QUERY_CHARACTERS:,} characters.")
    if not 1 <= asked.limit <= MAX_LIMIT:
        raise InvalidInput(f"limit is from 1 to {MAX_LIMIT}.")
    if asked.max_tokens is not None and asked.max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens is at least {MIN_TOKENS}.")
    if asked.tier == "passages" and _asks_of_memories(asked):
        raise InvalidInput("Passages have no kind, tag or priority.", hint="Leave those out, or ask for memories.")
    return replace(
        asked,
        query=query,
        project=redact(clean_text(asked.project)) if asked.project and asked.project.strip() else None,
        session_id=clean_text(asked.session_id) if asked.session_id else None,
    )


async def _filter(connection: Connection, asked: RecallRequest, now: datetime) -> tuple[Filter, str]:
    """Resolve the scope, and return the session's time zone. A scope that names nothing is an error."""
    scope = asked.scope or ("project" if asked.project else "pool")
    session = await sessions.get(connection, asked.session_id) if asked.session_id else None
    project = asked.project or (session.project if session else None)
    if scope == "session" and session is None:
        raise InvalidInput("scope 'session' needs a session_id.")
    if scope == "project" and project is None:
        raise InvalidInput("scope 'project' needs a project, or a session that has one.")
    what = Filter(
        moment=now,
        session=session.id if session and scope == "session" else None,
        project=project if scope == "project" else None,
        kinds=asked.kinds,
        tags=asked.tags,
        priorities=at_least(asked.min_priority),
        since=as_utc(asked.since),
        until=as_utc(asked.until),
        as_of=as_utc(asked.as_of),
        with_superseded=asked.include_superseded,
    )
    return what, session.timezone if session else "UTC"


async def _active_space(connection: Connection, parts: Parts) -> tuple[PoolSpace | None, int]:
    """Return the space that recall uses in this pool, and how many rows have no vector in it yet."""
    spaces = await vectors.spaces(connection)
    if parts.embedders:
        for space in spaces:
            # The model that recall will go over to is there when it does.
            if space.state == "building":
                parts.embedders.prepare(space.source)
    active = next((space for space in spaces if space.state == "active"), None)
    if active:
        return active, await vectors.waiting(connection, active.name)
    return None, await vectors.live_rows(connection) if parts.embedders else 0


async def _embed(parts: Parts, space: PoolSpace | None, query: str) -> _Semantic:
    if parts.embedders is None:
        return _Semantic(reason="no embedder is configured")
    if space is None:
        reason = parts.embedders.broken or "no embedding worker has looked at this pool yet"
        return _Semantic(reason=reason.rstrip("."))
    try:
        async with asyncio.timeout(_EMBED_SECONDS):
            vector = await parts.embedders.embed(space.source, space.name, query)
    except TimeoutError:
        return _Semantic(reason="the embedder did not answer in time")
    except (EmbedderDown, TextRefused) as error:
        return _Semantic(reason=str(error).rstrip("."))
    return _Semantic(space.name, vector)


async def _in_other_words(
    parts: Parts, asked: RecallRequest, space: PoolSpace | None, question: Question, wordings: Sequence[str]
) -> list[Question]:
    """Return a question in other wordings, each searched for by meaning if the question is, or else left out."""
    by_meaning = len(question.vector) > 0
    embedded = [_Semantic()] * len(wordings)
    if by_meaning:
        embedded = await asyncio.gather(*(_embed(parts, space, wording) for wording in wordings))
    return [
        replace(_question(wording, wording, asked, space, semantic), tries=1 + len(wordings))
        for wording, semantic in zip(wordings, embedded, strict=True)
        if (len(semantic.vector) > 0) == by_meaning
    ]


async def _texts(connection: Connection, space: str | None, read: Sequence[Ranked], what: Filter) -> Texts:
    """Read texts, and what tells which of them say the same."""
    memory_ids = [one.id for one in read if one.tier == "memory"]
    passage_ids = [one.id for one in read if one.tier == "passage"]
    near = await search.near_pairs(connection, space, memory_ids, RETOLD) if space and memory_ids else {}
    return Texts(
        memories=await memories.get(connection, memory_ids),
        passages=await passages.get(connection, passage_ids) if passage_ids else {},
        near=near,
        again=await memories.other_sources(connection, memory_ids),
        said_in=await memories.said_in(connection, memory_ids) if passage_ids else {},
        outdated=await _outdated(connection, passage_ids, what),
    )


async def _outdated(connection: Connection, passage_ids: Collection[str], what: Filter) -> Collection[str]:
    """Return passages that tell what holds no more; whoever asks for that, or for a time before, wants them."""
    if not passage_ids or what.with_superseded or what.as_of:
        return ()
    return await passages.outdated(connection, passage_ids, what.moment)


def _words(query: str) -> Words:
    """Return the terms to search by, with the number of the word that each is a form of; of a long query the first."""
    forms = asked_terms(query)[:_MOST_WORDS]
    listed = [(term, word) for word, terms in enumerate(forms) for term in terms]
    once = dict(reversed(listed))
    return Words(list(once), list(once.values()))
