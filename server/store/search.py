"""The two searches of recall, keyword and vector, each in one tier."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

from psycopg.rows import DictRow, class_row, dict_row
from psycopg.sql import Composed

from esker.server.core.dates.window import Window
from esker.server.core.recall.relevance import MAX_PARTS_OF_RARE_NAME, MAX_UNKNOWN_WORDS, RAREST_WORDS, word_factor
from esker.server.core.recall.selection import TextHit
from esker.server.core.records import Filter, Tier
from esker.server.db.database import Connection
from esker.server.db.statements import Statements, for_pool, for_space
from esker.server.store.memories import filter_values
from esker.server.store.vectors import MARK, as_literal

SQL = Statements(Path(__file__).parent / "sql/search.sql")
_SIZE: Mapping[Tier, LiteralString] = {"memory": SQL["size_memory"], "passage": SQL["size_passage"]}
_BY_KEYWORD: Mapping[Tier, LiteralString] = {"memory": SQL["keyword_memory"], "passage": SQL["keyword_passage"]}
_IN_SCOPE: Mapping[Tier, LiteralString] = {
    "memory": SQL["keyword_memory_in_scope"],
    "passage": SQL["keyword_passage_in_scope"],
}
_WITHIN: Mapping[Tier, LiteralString] = {"memory": SQL["within_memory"], "passage": SQL["within_passage"]}
_BY_VECTOR: Mapping[Tier, LiteralString] = {"memory": SQL["vector_memory"], "passage": SQL["vector_passage"]}
_FILTERED: Mapping[Tier, LiteralString] = {"memory": SQL["filtered_memory"], "passage": SQL["filtered_passage"]}
_NEAR: Mapping[Tier, LiteralString] = {"memory": SQL["near_memory"], "passage": SQL["near_passage"]}

# The most rows of a scope that are counted and looked up; 20,000 look-ups take about 20 ms.
_COUNTED = 20_000
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

    A term is read while fewer than `enough` postings have been read, or if at most `most` have been with its own.
    For each wanted text the best `looked_up` parts are kept, and the remaining terms are looked up only in them.
    """

    enough: int = 2_000
    most: int = 20_000
    looked_up: int = 3


EVERYTHING = TermBudget(enough=2**53)


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
    """A row next to the memory number `of_number` in its session; `tokens` are its own, `of_tokens` that memory's."""

    of_number: int
    of_tokens: int
    id: str
    number: int
    tokens: int


async def size(connection: Connection, tier: Tier, row_filter: Filter) -> Size:
    """Return how many parts of texts a recall searches."""
    values = {"session": row_filter.session, "project": row_filter.project, "most": _COUNTED}
    async with connection.cursor(row_factory=class_row(Size)) as cursor:
        await cursor.execute(_SIZE[tier], values)
        found = await cursor.fetchone()
    assert found is not None  # it is a count
    return found


async def by_keyword(
    connection: Connection,
    tier: Tier,
    asked: QueryTerms,
    row_filter: Filter,
    limit: int,
    *,
    narrow: bool,
    reading: TermBudget = TermBudget(),
) -> tuple[list[TextHit], Weights | None]:
    """Return the best texts by BM25, best first, and the weights of the terms if there are any.

    `narrow` selects the statement that looks up the rows in scope. In a large pool, texts are found by the query's
    rarer terms and very common ones only add to their scores; if that finds too few, as with a filter, all terms are
    read. A score is a share of the highest possible score for the query's rarest words.
    """
    first, found = await _scored(connection, tier, asked, row_filter, limit, reading, narrow=narrow)
    if first["looked_up"] < reading.looked_up * limit and not first["is_whole"]:
        first, found = await _scored(connection, tier, asked, row_filter, limit, EVERYTHING, narrow=narrow)
    if not found:
        return [], None
    factor = word_factor(float(first["known"]), float(first["unknown"]))
    return found, Weights(asked.terms, first["weights"], float(first["mean_terms"]), float(first["ideal"]), factor)


async def _scored(
    connection: Connection,
    tier: Tier,
    asked: QueryTerms,
    row_filter: Filter,
    limit: int,
    reading: TermBudget,
    *,
    narrow: bool,
) -> tuple[DictRow, list[TextHit]]:
    """Return a row with the figures of the whole search, and the texts that were found."""
    values: dict[str, Any] = {
        **filter_values(row_filter),
        "tier": MARK[tier],
        "terms": asked.terms,
        "words": asked.words,
        "names": asked.names,
        "max_parts": MAX_PARTS_OF_RARE_NAME,
        "rarest": RAREST_WORDS,
        "max_unknown": MAX_UNKNOWN_WORDS,
        "limit": limit,
        "looked_up": reading.looked_up * limit,
        "enough": reading.enough,
        "most": reading.most,
    }
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute((_IN_SCOPE if narrow else _BY_KEYWORD)[tier], values)
        rows = await cursor.fetchall()
    return rows[0], [TextHit(row["id"], row["number"], row["score"], named=row["named"]) for row in rows if row["id"]]


async def keyword_scores(
    connection: Connection, tier: Tier, weights: Weights, numbers: Collection[int]
) -> dict[int, float]:
    """Return the scores of some texts, by number, in an earlier search; a text that is missing has 0."""
    values = {
        "tier": MARK[tier],
        "terms": weights.terms,
        "weights": weights.weights,
        "mean_terms": weights.mean_terms,
        "ideal": weights.ideal,
        "numbers": list(numbers),
    }
    cursor = await connection.execute(SQL["keyword_scores"], values)
    return {int(row[0]): float(row[1]) for row in await cursor.fetchall()}


async def by_vector(
    connection: Connection, tier: Tier, space: str, vector: Sequence[float], row_filter: Filter, limit: int
) -> list[TextHit]:
    """Return the nearest visible texts in a space, best first.

    A text with several parts may occur several times.
    """
    return await _nearest(connection, for_space(_BY_VECTOR[tier], space), vector, row_filter, limit)


async def by_vector_filtered(
    connection: Connection, tier: Tier, space: str, vector: Sequence[float], row_filter: Filter, limit: int
) -> list[TextHit]:
    """Return the same as `by_vector`; faster if few texts are visible, slower if many are."""
    return await _nearest(connection, for_space(_FILTERED[tier], space), vector, row_filter, limit)


async def by_vector_index(
    connection: Connection,
    tier: Tier,
    space: str,
    pool_id: str,
    vector: Sequence[float],
    row_filter: Filter,
    limit: int,
) -> list[TextHit]:
    """Return about the same by the tier's index; some texts may be missing. `pool_id` is the present pool."""
    values = {**filter_values(row_filter), "vector": as_literal(vector), "limit": limit}
    async with connection.pipeline(), connection.cursor(row_factory=class_row(TextHit)) as cursor:
        # The three statements take one round trip.
        await connection.execute(SQL["only_as_indexed"])
        await cursor.execute(for_pool(_NEAR[tier], space, pool_id), values)
        await connection.execute(SQL["in_any_way"])
        found = await cursor.fetchall()
    return sorted(found, key=lambda hit: (-hit.score, -hit.number))


async def _nearest(
    connection: Connection, statement: Composed, vector: Sequence[float], row_filter: Filter, limit: int
) -> list[TextHit]:
    values = {**filter_values(row_filter), "vector": as_literal(vector), "limit": limit}
    async with connection.cursor(row_factory=class_row(TextHit)) as cursor:
        await cursor.execute(statement, values)
        return await cursor.fetchall()


async def cosines(
    connection: Connection,
    tier: Tier,
    space: str,
    vector: Sequence[float],
    numbers: Collection[int],
    *,
    by_chance: float,
) -> dict[int, float]:
    """Return the cosines of these texts, by number; those without vectors are missing.

    It is the cosine of the nearest part, less `by_chance` for each e-fold of parts.
    """
    values = {"tier": MARK[tier], "vector": as_literal(vector), "numbers": list(numbers), "by_chance": by_chance}
    cursor = await connection.execute(for_space(SQL["cosines"], space), values)
    return {int(row[0]): float(row[1]) for row in await cursor.fetchall()}


async def around(connection: Connection, numbers: Collection[int], row_filter: Filter) -> list[Neighbour]:
    """Return the visible neighbours of some memories in their sessions."""
    async with connection.cursor(row_factory=class_row(Neighbour)) as cursor:
        await cursor.execute(SQL["around"], {**filter_values(row_filter), "numbers": list(numbers)})
        return await cursor.fetchall()


async def said_within(connection: Connection, tier: Tier, window: Window, row_filter: Filter, limit: int) -> list[str]:
    """Return the ids of the latest texts that were said in a window, and of memories that refer to a part of it."""
    values = {**filter_values(row_filter), "start": window.start, "end": window.end, "limit": limit}
    cursor = await connection.execute(_WITHIN[tier], values)
    return [str(row[0]) for row in await cursor.fetchall()]


async def near_pairs(
    connection: Connection, space: str, ids: Collection[str], least: float
) -> dict[tuple[str, str], float]:
    """Return the cosines of at least `least` between these memories, by sorted pairs of ids."""
    cursor = await connection.execute(for_space(SQL["near_pairs"], space), {"ids": list(ids), "least": least})
    return {(str(row[0]), str(row[1])): float(row[2]) for row in await cursor.fetchall()}
