"""Find the candidates of questions, by both searches and among the neighbours of their results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from esker.server.core.arrays import Vector
from esker.server.core.recall.candidates import Candidates
from esker.server.core.recall.relevance import CHANCE_PER_E_FOLD, Scale, Signals, word_factor_in
from esker.server.core.records import Calibration, Filter, Ranking, Tier
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query, send
from esker.server.store.search import (
    Found,
    Neighbour,
    QueryTerms,
    Search,
    Size,
    VectorQuery,
    find,
    neighbours,
    search_way,
)
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.term_counts import PoolTermCounts

MOST = 100
"""Most texts that each search returns; several parts of one text count as several."""
# Best candidates whose neighbours become candidates, too.
_WITH_NEIGHBOURS = 40


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question, and its vector in a space, if there is one.

    `tries` counts the question and its paraphrases: with more of them, a chance match scores higher. `names_alone`:
    the question contains only identifiers.
    """

    words: QueryTerms
    space: PoolSpace | None
    vector: Vector | None
    calibration: Calibration
    ranking: Ranking
    tries: int = 1
    names_alone: bool = False


@dataclass(frozen=True, slots=True)
class _Searched:
    """A search for a question in a tier, its results, and their scale."""

    asked: Question
    search: Search
    found: Found
    scale: Scale


async def find_candidates(
    connection: Connection,
    questions: Sequence[Question],
    tiers: Sequence[Tier],
    row_filter: Filter,
    sizes: Mapping[Tier, Size],
    counts: PoolTermCounts,
) -> list[Candidates]:
    """Return the texts of each tier that may answer each question, with the evidence for each.

    `connection` must see one snapshot (`Database.moment_pipeline`): one statement finds rows, another reads them.
    `counts` are those of the pool; new ones are added.
    """
    wanted = [(one, _search(one, tier, row_filter, sizes[tier], counts)) for one in questions for tier in tiers]
    wanted = [(asked, search) for asked, search in wanted if search.size.in_tier]
    found = await find(connection, [search for _, search in wanted])
    for (_, search), result in zip(wanted, found, strict=True):
        made = {term: parts for term, parts in result.counts.items() if term not in search.counts}
        counts.keep(search.tier, search.size.in_tier, made)
    searched = [
        _searched(asked, search, _meant(asked, result)) for (asked, search), result in zip(wanted, found, strict=True)
    ]
    return await _with_neighbours(connection, searched, row_filter)


def _search(asked: Question, tier: Tier, row_filter: Filter, size: Size, counts: PoolTermCounts) -> Search:
    meaning = None
    if asked.space and asked.vector is not None:
        by_chance = CHANCE_PER_E_FOLD * asked.calibration.deviation
        way = search_way(size, indexed=tier in asked.space.indexed)
        meaning = VectorQuery(asked.space, asked.vector, way, by_chance)
    known = counts.known(tier, size.in_tier, asked.words.terms)
    return Search(tier, asked.words, row_filter, size, MOST, meaning, counts=known)


def _searched(asked: Question, search: Search, found: Found) -> _Searched:
    factor = word_factor_in(found.weights.word_factor, search.size.searched) if found.weights else 1.0
    by_meaning = asked.space is not None
    scale = Scale(asked.calibration, asked.tries * search.size.searched, by_meaning=by_meaning, word_factor=factor)
    return _Searched(asked, search, found, scale.knowing(found.signals.values()) if by_meaning else scale)


def _meant(asked: Question, found: Found) -> Found:
    """Return the results without those that only the vector of an identifier found, which means nothing."""
    if not asked.names_alone:
        return found
    signals = {number: each for number, each in found.signals.items() if each.keyword > 0}
    return replace(found, signals=signals, by_vector=[number for number in found.by_vector if number in signals])


async def _with_neighbours(
    connection: Connection, searched: Sequence[_Searched], row_filter: Filter
) -> list[Candidates]:
    """Return candidates: those of memories with the neighbours of the best, which become candidates, too."""
    answers = [
        await send(connection, _neighbours(one, row_filter))
        if one.asked.ranking == "full" and one.found.may_have_neighbours
        else None
        for one in searched
    ]
    return [_candidates(one, await answer if answer else []) for one, answer in zip(searched, answers, strict=True)]


def _neighbours(one: _Searched, row_filter: Filter) -> Query[list[Neighbour]]:
    signals, scale = one.found.signals, one.scale
    best = sorted(signals, key=lambda number: -scale.relevance(signals[number]))[:_WITH_NEIGHBOURS]
    return neighbours(best, signals.keys(), row_filter, one.found.weights, one.search.meaning)


def _candidates(one: _Searched, around: Sequence[Neighbour]) -> Candidates:
    found = one.found
    new = {each.number: Signals(each.keyword or 0.0, each.cosine) for each in around}
    return Candidates(
        one.search.tier,
        one.scale,
        keyword=[found.ids[number] for number in found.by_keyword],
        vector=[found.ids[number] for number in found.by_vector],
        numbers={
            **{each.id: each.number for each in around},
            **{found.ids[number]: number for number in found.signals},
        },
        signals={**new, **found.signals},
        neighbours=_both_ways(around),
        tokens={each.of_number: each.of_tokens for each in around} | {each.number: each.tokens for each in around},
    )


def _both_ways(around: Sequence[Neighbour]) -> dict[int, set[int]]:
    """Return the numbers of the neighbours of each text, in both directions."""
    found: dict[int, set[int]] = {}
    for one in around:
        found.setdefault(one.of_number, set()).add(one.number)
        found.setdefault(one.number, set()).add(one.of_number)
    return found
