"""The terms and the vectors by which a question and its paraphrases are searched for."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from esker.server.core.arrays import Vector
from esker.server.core.errors import EmbedderDown, TextRefused
from esker.server.core.recall.calibration import calibration_for
from esker.server.core.text.terms import asked_names, asked_terms, asks_of_names_alone
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import vectors
from esker.server.store.search import QueryTerms
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.find_candidates import Question
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall_request import RecallRequest

_MOST_WORDS = 200
_EMBED_SECONDS = 2.0
_WEAK = "the embedding model hardly tells texts in this language apart, so vector search weighs {:.0%}"


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The input of a vector search: a vector in a space. `reason` says why it is missing, or why it is `weak`."""

    space: str | None = None
    vector: Vector | None = None
    reason: str | None = None
    weak: bool = False


async def active_space(connection: Connection, parts: Parts) -> tuple[PoolSpace | None, int]:
    """Return the space that recall uses in this pool, and how many rows have no vector in it yet."""
    active = active_of(parts, await vectors.spaces(connection))
    if active:
        return active, await fetch(connection, vectors.waiting())
    return None, await vectors.live_rows(connection) if parts.embedders else 0


def active_of(parts: Parts, spaces: Sequence[PoolSpace]) -> PoolSpace | None:
    """Return the space that recall uses, and begin to load the model that it will switch to."""
    if parts.embedders:
        for space in spaces:
            if space.state == "building":
                parts.embedders.prepare(space.source)
    return next((space for space in spaces if space.state == "active"), None)


async def semantic_of(parts: Parts, space: PoolSpace | None, asked: RecallRequest, query: str) -> QueryVector:
    """Return the vector of a query; an empty one if the ranking is by keyword alone."""
    return QueryVector() if asked.ranking == "keyword" else await _embed(parts, space, query)


def question_of(
    words: str, query: str, asked: RecallRequest, space: PoolSpace | None, semantic: QueryVector
) -> Question:
    """Return the question to search for: `words` by keyword, and the vector of the whole query."""
    terms = _words("" if asked.ranking == "vector" else words)
    calibration = calibration_for(query, space.calibration if space else {})
    return Question(
        terms,
        space if semantic.space else None,
        semantic.vector,
        calibration,
        asked.ranking,
        names_alone=asks_of_names_alone(words) and asked.ranking != "vector",
    )


async def _embed(parts: Parts, space: PoolSpace | None, query: str) -> QueryVector:
    if parts.embedders is None:
        return QueryVector(reason="no embedder is configured")
    if space is None:
        reason = (
            parts.embedders.broken or "the embedding model is not loaded yet; retry in a minute, or run `esker doctor`"
        )
        return QueryVector(reason=reason.rstrip("."))
    try:
        async with asyncio.timeout(_EMBED_SECONDS):
            vector = await parts.embedders.embed(space.source, space.name, query)
    except TimeoutError:
        return QueryVector(reason="the embedder did not answer in time")
    except (EmbedderDown, TextRefused) as error:
        return QueryVector(reason=str(error).rstrip("."))
    calibration = calibration_for(query, space.calibration)
    reason = _WEAK.format(calibration.weight) if calibration.is_weak else None
    return QueryVector(space.name, vector, reason, weak=calibration.is_weak)


async def paraphrased_questions(
    parts: Parts, asked: RecallRequest, space: PoolSpace | None, question: Question, paraphrases: Sequence[str]
) -> list[Question]:
    """Return a question for each paraphrase; if `question` has a vector, paraphrases without one are left out."""
    by_meaning = question.vector is not None
    embedded = [QueryVector()] * len(paraphrases)
    if by_meaning:
        embedded = await asyncio.gather(*(_embed(parts, space, text) for text in paraphrases))
    return [
        replace(question_of(text, text, asked, space, semantic), tries=1 + len(paraphrases))
        for text, semantic in zip(paraphrases, embedded, strict=True)
        if (semantic.vector is not None) == by_meaning
    ]


def _words(query: str) -> QueryTerms:
    """Return the search terms of a query, each with the number of its word; only the first words of a long query."""
    forms = asked_terms(query)[:_MOST_WORDS]
    listed = [(term, word) for word, terms in enumerate(forms) for term in terms]
    once = dict(reversed(listed))
    return QueryTerms(list(once), list(once.values()), [name for name in asked_names(query) if name in once])
