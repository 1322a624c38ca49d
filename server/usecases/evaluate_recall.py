"""Ask a pool questions made from its own texts, and some without an answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter

from esker.server.core.pool.evaluation import DEPTHS, ByMeaning, MadeUpQuestion, QuestionOutcome
from esker.server.core.pool.known_answers import (
    MOST_FEW,
    KnownAnswer,
    MemoryText,
    in_one_line,
    known_answers,
    made_up_words,
    terms_of,
    unanswerable,
)
from esker.server.core.recall.answer import Hit
from esker.server.core.records import TIERS, Filter, Ranking, Tier
from esker.server.core.text.terms import index_terms, telling_words
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import evaluation, search
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.find_candidates import MOST
from esker.server.usecases.find_nearest import find_nearest
from esker.server.usecases.parts import Parts
from esker.server.usecases.query_embedding import semantic_of
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest

_LIMIT = max(DEPTHS)
# Texts read for each question, since some texts make none.
_LOOKED_AT = 4
_OF_PASSAGES = 4
"""Every fourth question is about a passage, if the pool has any."""
# One made-up question for each five others, but at least four.
_MADE_UP_OF = 5
_LEAST_MADE_UP = 4
# Words made up for each question; those that the pool contains are skipped.
_TRIES = 10

AdvanceByOne = Callable[[], None]


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions with the ids of all their answers, and questions without an answer."""

    known: Sequence[tuple[KnownAnswer, frozenset[str]]]
    made_up: Sequence[str]


async def make_questions(
    connection: Connection, said_by: Mapping[str, set[str]], what: Filter, *, limit: int, seed: int
) -> QuestionSet:
    """Make at most `limit` questions from the pool's own texts, and a fifth as many without an answer.

    `said_by` maps a row to its repeats, which answer its question as well.
    """
    passages = await evaluation.sample(connection, "passage", seed, _LOOKED_AT * limit, what.moment)
    texts = await evaluation.sample(connection, "memory", seed, _LOOKED_AT * limit, what.moment)
    of_memories = limit - (limit // _OF_PASSAGES if passages else 0)
    frequencies: dict[Tier, Mapping[str, int]] = {}
    sizes: dict[Tier, int] = {}
    whole = await fetch(connection, search.sizes(what))
    for tier, terms in terms_of([*texts, *passages]).items():
        frequencies[tier] = await evaluation.term_frequencies(connection, tier, terms, MOST_FEW + 1)
        sizes[tier] = whole[tier].in_tier

    def about(some: Sequence[MemoryText], most: int) -> list[KnownAnswer]:
        return known_answers(some, frequencies, sizes, limit=most, seed=seed)

    known = about(texts, of_memories)
    known += about(passages, limit - len(known))
    copies = await evaluation.same_passages(connection, [one.id for one in known if one.tier == "passage"])
    answers = [(one, frozenset({one.id} | said_by.get(one.id, set()) | copies.get(one.id, set()))) for one in known]
    return QuestionSet(answers, await _made_up_questions(connection, max(_LEAST_MADE_UP, limit // _MADE_UP_OF), seed))


async def _made_up_questions(connection: Connection, count: int, seed: int) -> list[str]:
    words = list(islice(made_up_words(seed), _TRIES * count))
    terms = {word: index_terms(word)[0] for word in words}
    known: set[str] = set()
    for tier in TIERS:
        frequencies = await evaluation.term_frequencies(connection, tier, set(terms.values()), 1)
        known.update(term for term, texts in frequencies.items() if texts)
    return unanswerable([word for word in words if terms[word] not in known][: 2 * count], seed)


@dataclass(frozen=True, slots=True)
class EvaluatedPool:
    """The pool that is asked: parts with a snapshot as their database, the pool, its connection and its space."""

    parts: Parts
    pool_id: str
    connection: Connection
    what: Filter
    space: PoolSpace | None


async def ask(
    evaluated: EvaluatedPool, questions: QuestionSet, advance: AdvanceByOne
) -> tuple[list[QuestionOutcome], list[MadeUpQuestion]]:
    """Ask all questions and return the outcomes."""
    outcomes: list[QuestionOutcome] = []
    made_up: list[MadeUpQuestion] = []
    for question, answers in questions.known:
        outcomes.append(await _ask(evaluated, question, answers))
        advance()
    for query in questions.made_up:
        made_up.append(await _ask_made_up(evaluated, query))
        advance()
    return outcomes, made_up


async def _ask_made_up(evaluated: EvaluatedPool, query: str) -> MadeUpQuestion:
    hits, _ = await _recalled(evaluated, query, "full")
    if not hits:
        return MadeUpQuestion(query, None)
    words = [word.spelled for word in telling_words(query)]
    return MadeUpQuestion(query, hits[0].score, in_one_line(hits[0].content, words))


async def _ask(evaluated: EvaluatedPool, question: KnownAnswer, answers: frozenset[str]) -> QuestionOutcome:
    hits, milliseconds = await _recalled(evaluated, question.query, "full")
    rank = _rank(hits, answers)
    by_keyword, _ = await _recalled(evaluated, question.query, "keyword")
    return QuestionOutcome(
        question,
        rank,
        _rank(by_keyword, answers),
        await _by_meaning(evaluated, question, answers),
        hits[rank - 1].score if rank else None,
        milliseconds,
    )


async def _recalled(evaluated: EvaluatedPool, query: str, ranking: Ranking) -> tuple[list[Hit], float]:
    """Return the hits of a recall, and its duration in milliseconds."""
    began = perf_counter()
    found = await recall(evaluated.parts, evaluated.pool_id, RecallRequest(query, limit=_LIMIT, ranking=ranking))
    return found.hits, (perf_counter() - began) * 1000


def _rank(hits: Sequence[Hit], answers: frozenset[str]) -> int | None:
    """Return the rank of the first hit that is an answer or covers one; None without one."""
    found = (rank for rank, hit in enumerate(hits, start=1) if answers.intersection((hit.id, *hit.same, *hit.passages)))
    return next(found, None)


async def _by_meaning(evaluated: EvaluatedPool, question: KnownAnswer, answers: frozenset[str]) -> ByMeaning:
    """Search by meaning alone among the texts of the answer's tier: exactly and, if it has one, by the index."""
    space = evaluated.space
    semantic = await semantic_of(evaluated.parts, space, RecallRequest(question.query), question.query)
    vector = semantic.vector
    if space is None or vector is None:
        return ByMeaning(reason=semantic.reason)
    size = (await fetch(evaluated.connection, search.sizes(evaluated.what)))[question.tier]

    async def nearest(way: PoolSpace) -> int | None:
        found = await find_nearest(evaluated.connection, question.tier, way, vector, evaluated.what, size, MOST)
        return next((rank for rank, hit in enumerate(found[:_LIMIT], start=1) if hit.id in answers), None)

    indexed = question.tier in space.indexed
    exact = await nearest(replace(space, indexed=frozenset[Tier]()))
    return ByMeaning(True, exact, indexed, await nearest(space) if indexed else None)
