"""Find the candidates of a question in one tier, by both searches and among the neighbours of their results."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from esker.server.core.recall.relevance import CHANCE_PER_E_FOLD, Scale, Signals, word_factor_in
from esker.server.core.recall.selection import Candidates, TextHit
from esker.server.core.records import Calibration, Filter, Ranking, Tier
from esker.server.db.database import Connection
from esker.server.store import search
from esker.server.store.search import Neighbour, QueryTerms, Size, Weights
from esker.server.store.vectors import PoolSpace
from esker.server.usecases.find_nearest import find_nearest

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
    vector: Sequence[float]
    calibration: Calibration
    ranking: Ranking
    tries: int = 1
    names_alone: bool = False


async def find_candidates(connection: Connection, tier: Tier, asked: Question, row_filter: Filter) -> Candidates:
    """Return the texts of a tier that may answer, with the evidence for each.

    `connection` must see one snapshot (`Database.moment`): rows are found by one statement and read by another.
    """
    size = await search.size(connection, tier, row_filter)
    nearest: list[TextHit] = []
    if asked.space:
        nearest = await find_nearest(connection, tier, asked.space, asked.vector, row_filter, size, MOST)
    by_keyword: list[TextHit] = []
    weights: Weights | None = None
    if size.in_tier and asked.words.terms:
        by_keyword, weights = await search.by_keyword(
            connection, tier, asked.words, row_filter, MOST, narrow=size.is_narrow
        )
    signals = await _signals(connection, tier, asked, nearest, by_keyword, weights)
    near = {
        hit.id: cosine
        for hit in nearest
        if hit.number in signals and (cosine := signals[hit.number].cosine) is not None
    }
    found = Candidates(
        tier,
        _scale(asked, size, weights),
        keyword=[hit.id for hit in by_keyword],
        vector=sorted(near, key=lambda text_id: -near[text_id]),
        numbers={hit.id: hit.number for hit in (*nearest, *by_keyword) if hit.number in signals},
        signals=signals,
    )
    if tier == "passage" or asked.ranking != "full":
        return found
    return await _with_neighbours(connection, asked, row_filter, found, weights)


def _scale(asked: Question, size: Size, weights: Weights | None) -> Scale:
    factor = word_factor_in(weights.word_factor, size.searched) if weights else 1.0
    return Scale(asked.calibration, asked.tries * size.searched, by_meaning=asked.space is not None, word_factor=factor)


async def _signals(
    connection: Connection,
    tier: Tier,
    asked: Question,
    nearest: Sequence[TextHit],
    by_keyword: Sequence[TextHit],
    weights: Weights | None,
) -> dict[int, Signals]:
    """Return the evidence of both searches for the texts that either has found."""
    keyword = {hit.number: hit.score for hit in by_keyword}
    named = {hit.number for hit in by_keyword if hit.named}
    cosines = await _cosines(connection, tier, asked, keyword.keys() | {hit.number for hit in nearest})
    keyword |= await _keyword_scores(connection, tier, weights, cosines.keys() - keyword.keys())
    return {
        number: Signals(keyword.get(number, 0.0), cosines.get(number), number in named)
        for number in keyword.keys() | cosines.keys()
        # The vector of an identifier means nothing.
        if number in keyword or not asked.names_alone
    }


async def _cosines(connection: Connection, tier: Tier, asked: Question, numbers: Collection[int]) -> dict[int, float]:
    if not asked.space or not numbers:
        return {}
    by_chance = CHANCE_PER_E_FOLD * asked.calibration.deviation
    return await search.cosines(connection, tier, asked.space.name, asked.vector, numbers, by_chance=by_chance)


async def _keyword_scores(
    connection: Connection, tier: Tier, weights: Weights | None, numbers: Collection[int]
) -> dict[int, float]:
    if weights is None or not numbers:
        return {}
    return await search.keyword_scores(connection, tier, weights, numbers)


async def _with_neighbours(
    connection: Connection, asked: Question, row_filter: Filter, found: Candidates, weights: Weights | None
) -> Candidates:
    """Return the candidates with the neighbours of the best, which become candidates, too."""
    best = sorted(found.signals, key=lambda number: -found.scale.relevance(found.signals[number]))[:_WITH_NEIGHBOURS]
    around = await search.around(connection, best, row_filter)
    new = {neighbour.number for neighbour in around} - found.signals.keys()
    keyword = await _keyword_scores(connection, "memory", weights, new)
    cosines = await _cosines(connection, "memory", asked, new)
    return replace(
        found,
        numbers={**{neighbour.id: neighbour.number for neighbour in around}, **found.numbers},
        signals={**{n: Signals(keyword.get(n, 0.0), cosines.get(n)) for n in new}, **found.signals},
        neighbours=_both_ways(around),
        tokens={one.of_number: one.of_tokens for one in around} | {one.number: one.tokens for one in around},
    )


def _both_ways(around: Sequence[Neighbour]) -> dict[int, set[int]]:
    """Return the numbers of the neighbours of each text, in both directions."""
    found: dict[int, set[int]] = {}
    for one in around:
        found.setdefault(one.of_number, set()).add(one.number)
        found.setdefault(one.number, set()).add(one.of_number)
    return found
