"""The two searches of recall, keyword and vector, each in one tier."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, LiteralString

from pgvector import HalfVector
from psycopg.rows import DictRow, class_row, dict_row

from esker.server.core.arrays import Vector
from esker.server.core.dates.window import Window
from esker.server.core.recall.candidates import TextHit
from esker.server.core.recall.relevance import (
    MAX_PARTS_OF_RARE_NAME,
    MAX_UNKNOWN_WORDS,
    RAREST_WORDS,
    Signals,
    word_factor,
)
from esker.server.core.records import TIERS, Filter, Tier
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, Query, send
from esker.server.db.statements import Statements, as_array, for_pool, for_space
from esker.server.store.memories import filter_values
from esker.server.store.vectors import MARK, PoolSpace

SQL = Statements(Path(__file__).parent / "sql/search.sql")


def _of_tiers(name: str) -> Mapping[Tier, LiteralString]:
    """Return the statement of each tier by its name with `{tier}`."""
    return {tier: SQL[name.format(tier=tier)] for tier in TIERS}


_BY_KEYWORD = _of_tiers("keyword_{tier}")
_IN_SCOPE = _of_tiers("keyword_{tier}_in_scope")
_CANDIDATES = _of_tiers("candidates_{tier}")
_CANDIDATES_FILTERED = _of_tiers("candidates_{tier}_filtered")
_CANDIDATES_NEAR = _of_tiers("candidates_{tier}_near")
_CANDIDATES_NEAR_IN_SCOPE = _of_tiers("candidates_{tier}_near_in_scope")
_WITHIN = _of_tiers("within_{tier}")
_BY_VECTOR = _of_tiers("vector_{tier}")
_FILTERED = _of_tiers("filtered_{tier}")
_NEAR = _of_tiers("near_{tier}")

# The most rows of a scope that are counted and looked up (20,000 lookups take about 20 ms).
_COUNTED = 20_000
# Vectors that the index search reads at most. If no more are in scope, looking them up costs no more.
_READ_BY_INDEX = 2_000
# A scope is narrow if it has less than this fraction (1/4) of the tier's parts.
_NARROW = 4


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query; `words` has, for each term, the number of the word that it is a form of.

    `names` are the terms that are identifiers: a text that contains a rare one is marked as `named`.
    """

    terms: list[str]
    words: list[int]
    names: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class TermBudget:
    """How many postings of a query are read, beginning with the rarest term.

    A term is read while fewer than `enough` postings have been read, or if its own leave the total at or below `most`.
    The best `ranked` parts are kept for each wanted text. If terms are left, they are looked up in the best `looked_up`
    texts for each wanted one. Of the terms that are read, the commonest `may_be_late`: they are only looked up in the
    best parts by the others, which is exact if no other part can be among the best.
    """

    enough: int = 2_000
    most: int = 20_000
    looked_up: int = 3
    ranked: int = 12
    may_be_late: bool = True


EVERYTHING = TermBudget(enough=2**53, ranked=2**40, may_be_late=False)

VectorWay = Literal["exact", "filtered", "near"]
"""How vectors are searched: all of the tier, those of visible texts, or approximately by the index of the tier."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a query's terms in one tier, for scoring other texts in the same search.

    `word_factor`, 0 to 1, scales keyword evidence without vector evidence; it is below 1 if most of the query's words
    occur nowhere in the pool.
    """

    terms: list[str]
    weights: list[float]
    mean_terms: float
    ideal: float
    word_factor: float


@dataclass(frozen=True, slots=True)
class Size:
    """How many parts the texts of a tier have, and how many of them are in the scope, counted up to a limit.

    `in_scope` is None if the scope is the whole pool.
    """

    in_tier: int
    in_scope: int | None

    @property
    def searched(self) -> int:
        """The number of parts that are searched."""
        return self.in_tier if self.in_scope is None else self.in_scope

    @property
    def is_narrow(self) -> bool:
        """Whether looking up the rows in scope is cheaper than skipping all others."""
        return self.in_scope is not None and self.in_scope < min(_COUNTED, self.in_tier // _NARROW)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row next to the memory number `of_number` in its session; `tokens` are its own, `of_tokens` that memory's.

    `keyword` and `cosine` are its evidence; None if it has none, or is known already.
    """

    of_number: int
    of_tokens: int
    id: str
    number: int
    tokens: int
    keyword: float | None
    cosine: float | None


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """A vector in the space of a pool, and the way to search. `by_chance` is subtracted from the cosine of the nearest
    part for each e-fold of parts.
    """

    space: PoolSpace
    vector: Vector
    way: VectorWay
    by_chance: float


@dataclass(frozen=True, slots=True)
class Search:
    """A search in one tier by keyword and, with a `meaning`, by vector; each finds at most `limit` texts.

    In a large pool, texts are found by the query's rarer terms and very common ones only add to their scores. `counts`
    are the known numbers of parts with a term; the other terms are counted.
    """

    tier: Tier
    asked: QueryTerms
    row_filter: Filter
    size: Size
    limit: int
    meaning: VectorQuery | None = None
    reading: TermBudget = TermBudget()
    counts: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Found:
    """The texts that either search found, with the evidence of both: ids and signals by number.

    `by_keyword` and `by_vector` are the numbers that each search found, best first. `is_enough`: the keyword search
    left out nothing that matters; `is_exact`: no late term could have found another one of the best.
    `may_have_neighbours`: one of the texts is a note of a session. `nearest` counts the parts that the vector search
    found, and `counts` those with each term.
    """

    ids: Mapping[int, str] = field(default_factory=dict[int, str])
    signals: Mapping[int, Signals] = field(default_factory=dict[int, Signals])
    by_keyword: Sequence[int] = ()
    by_vector: Sequence[int] = ()
    weights: Weights | None = None
    counts: Mapping[str, float] = field(default_factory=dict[str, float])
    is_enough: bool = True
    is_exact: bool = True
    may_have_neighbours: bool = False
    nearest: int = 0


def sizes(row_filter: Filter) -> Query[dict[Tier, Size]]:
    """Return how many parts of texts a recall searches in each tier."""
    if row_filter.session is None and row_filter.project is None:
        return Query(SQL["sizes_of_pool"], {}, _sizes_of_pool)
    values = {"session": row_filter.session, "project": row_filter.project, "most": _COUNTED}
    return Query(SQL["sizes"], values, lambda rows: {tier: Size(in_tier, in_scope) for tier, in_tier, in_scope in rows})


def _sizes_of_pool(rows: Sequence[tuple[int, int]]) -> dict[Tier, Size]:
    [(memory, passage)] = rows
    return {"memory": Size(memory, None), "passage": Size(passage, None)}


def search_way(size: Size, *, indexed: bool) -> VectorWay:
    """Return the fastest way to search the vectors of a tier that may have an index."""
    if size.is_narrow and (not indexed or size.searched <= _READ_BY_INDEX):
        return "filtered"
    return "near" if indexed else "exact"


async def find(connection: Connection, searches: Sequence[Search]) -> list[Found]:
    """Run searches in one round trip. A search that may have missed a text, or found too few, is repeated.

    A keyword score is a share of the highest possible score for the query's rarest words.
    """
    answers = [await _send(connection, one) for one in searches]
    found = [await answer for answer in answers]
    for repeat in (_without_late, _in_full):
        again = [repeat(one, first) for one, first in zip(searches, found, strict=True)]
        found = [
            await (await _send(connection, one)) if one else first for one, first in zip(again, found, strict=True)
        ]
    return found


def _without_late(one: Search, found: Found) -> Search | None:
    """Return the search that reads the postings of late terms, too, if others may be among the best, else None."""
    return None if found.is_exact else replace(one, reading=replace(one.reading, may_be_late=False))


def _in_full(one: Search, found: Found) -> Search | None:
    """Return the search by all terms and exact vectors if that may find more than it did, else None."""
    few_words = bool(one.asked.terms) and not found.is_enough
    few_near = one.meaning is not None and one.meaning.way == "near" and found.nearest < one.limit
    if not few_words and not few_near:
        return None
    meaning = replace(one.meaning, way="filtered") if one.meaning and few_near else one.meaning
    return replace(one, meaning=meaning, reading=EVERYTHING if few_words else one.reading)


async def _send(connection: Connection, one: Search) -> Answer[Found]:
    statement, values = _statement(one), _values(one)
    query = Query(statement, values, lambda rows: _found(one, rows), dict_row, binary=True)
    if one.meaning is None or one.meaning.way != "near":
        return await send(connection, query)
    await connection.execute(SQL["only_as_indexed"])
    answer = await send(connection, query)
    await connection.execute(SQL["in_any_way"])
    return answer


def _statement(one: Search) -> LiteralString:
    if one.meaning is None:
        return (_IN_SCOPE if one.size.is_narrow else _BY_KEYWORD)[one.tier]
    space = one.meaning.space
    match one.meaning.way:
        case "exact":
            return for_space(_CANDIDATES[one.tier], space.name)
        case "filtered":
            return for_space(_CANDIDATES_FILTERED[one.tier], space.name)
        case "near":
            near = _CANDIDATES_NEAR_IN_SCOPE if one.size.is_narrow else _CANDIDATES_NEAR
            return for_pool(near[one.tier], space.name, space.pool_id)


def _values(one: Search) -> dict[str, Any]:
    values = {
        **filter_values(one.row_filter),
        "tier": MARK[one.tier],
        "terms": as_array(one.asked.terms),
        "words": as_array(one.asked.words),
        "names": as_array(one.asked.names),
        "counts": as_array(map(one.counts.get, one.asked.terms)),
        "max_parts": MAX_PARTS_OF_RARE_NAME,
        "rarest": RAREST_WORDS,
        "max_unknown": MAX_UNKNOWN_WORDS,
        "limit": one.limit,
        "looked_up": one.reading.looked_up * one.limit,
        "ranked": one.reading.ranked * one.limit,
        "may_be_late": one.reading.may_be_late,
        "enough": one.reading.enough,
        "most": one.reading.most,
    }
    return values | _meaning_values(one.meaning)


def _meaning_values(meaning: VectorQuery | None) -> dict[str, Any]:
    return {"vector": HalfVector(meaning.vector), "by_chance": meaning.by_chance} if meaning else {}


def _found(one: Search, rows: Sequence[DictRow]) -> Found:
    [figures] = [row for row in rows if row["number"] is None]
    texts = [row for row in rows if row["number"] is not None]
    signals = {row["number"]: Signals(row["score"] or 0.0, row.get("cosine"), bool(row["named"])) for row in texts}
    by_keyword = [row["number"] for row in texts if row.get("keyword", True)]
    by_vector = [row["number"] for row in texts if row.get("vector") and row["cosine"] is not None]
    return Found(
        ids={row["number"]: row["id"] for row in texts},
        signals=signals,
        by_keyword=sorted(by_keyword, key=lambda number: (-signals[number].keyword, -number)),
        by_vector=sorted(by_vector, key=lambda number: (-(signals[number].cosine or 0.0), -number)),
        weights=_weights(one.asked, figures) if by_keyword else None,
        counts=dict(zip(one.asked.terms, figures["counts"], strict=True)),
        is_enough=bool(figures["is_enough"]),
        is_exact=bool(figures["is_exact"]),
        may_have_neighbours=bool(figures["may_have_neighbours"]),
        nearest=figures.get("nearest", 0),
    )


def _weights(asked: QueryTerms, figures: DictRow) -> Weights:
    factor = word_factor(float(figures["known"]), float(figures["unknown"]))
    return Weights(asked.terms, figures["weights"], float(figures["mean_terms"]), float(figures["ideal"]), factor)


async def by_vector(
    connection: Connection, tier: Tier, space: str, vector: Vector, row_filter: Filter, limit: int
) -> list[TextHit]:
    """Return the nearest visible texts in a space, best first.

    A text with several parts may occur several times.
    """
    return await _nearest(connection, for_space(_BY_VECTOR[tier], space), vector, row_filter, limit)


async def by_vector_filtered(
    connection: Connection, tier: Tier, space: str, vector: Vector, row_filter: Filter, limit: int
) -> list[TextHit]:
    """Return the same as `by_vector`; faster if few texts are visible, slower if many are."""
    return await _nearest(connection, for_space(_FILTERED[tier], space), vector, row_filter, limit)


async def by_vector_index(
    connection: Connection,
    tier: Tier,
    space: str,
    pool_id: str,
    vector: Vector,
    row_filter: Filter,
    limit: int,
) -> list[TextHit]:
    """Return about the same by the tier's index; some texts may be missing. `pool_id` is the present pool."""
    values = {**filter_values(row_filter), "vector": HalfVector(vector), "limit": limit}
    async with connection.pipeline(), connection.cursor(row_factory=class_row(TextHit)) as cursor:
        # The three statements take one round trip.
        await connection.execute(SQL["only_as_indexed"])
        await cursor.execute(for_pool(_NEAR[tier], space, pool_id), values)
        await connection.execute(SQL["in_any_way"])
        found = await cursor.fetchall()
    return sorted(found, key=lambda hit: (-hit.score, -hit.number))


async def _nearest(
    connection: Connection, statement: LiteralString, vector: Vector, row_filter: Filter, limit: int
) -> list[TextHit]:
    values = {**filter_values(row_filter), "vector": HalfVector(vector), "limit": limit}
    async with connection.cursor(row_factory=class_row(TextHit)) as cursor:
        await cursor.execute(statement, values)
        return await cursor.fetchall()


def neighbours(
    numbers: Collection[int],
    known: Collection[int],
    row_filter: Filter,
    weights: Weights | None,
    meaning: VectorQuery | None,
) -> Query[list[Neighbour]]:
    """Return the visible neighbours of some memories in their sessions, with the evidence for those not `known`.

    `weights` are those of the search that found the memories; without them there is no keyword evidence.
    """
    values = {
        **filter_values(row_filter),
        "numbers": as_array(numbers),
        "known": as_array(known),
        "tier": MARK["memory"],
        "terms": as_array(weights.terms if weights else ()),
        "weights": as_array(weights.weights if weights else ()),
        "mean_terms": weights.mean_terms if weights else 1.0,
        "ideal": weights.ideal if weights else 1.0,
    }
    statement = for_space(SQL["neighbours_near"], meaning.space.name) if meaning else SQL["neighbours"]
    return Query(statement, values | _meaning_values(meaning), list, class_row(Neighbour), binary=True)


async def said_within(connection: Connection, tier: Tier, window: Window, row_filter: Filter, limit: int) -> list[str]:
    """Return the ids of the latest texts that were said in a window, and of memories that refer to a part of it."""
    values = {**filter_values(row_filter), "start": window.start, "end": window.end, "limit": limit}
    cursor = await connection.execute(_WITHIN[tier], values)
    return [str(row[0]) for row in await cursor.fetchall()]


def near_pairs(space: str, ids: Collection[str], least: float) -> Query[dict[tuple[str, str], float]]:
    """Return the cosines of at least `least` between these memories, by sorted pairs of ids."""
    values = {"ids": as_array(ids), "least": least}
    return Query(
        for_space(SQL["near_pairs"], space), values, lambda rows: {(one, other): cosine for one, other, cosine in rows}
    )
