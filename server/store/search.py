"""The two searches of recall, by keyword and by meaning, each in one tier."""

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

# Looking up 20,000 rows costs some 20 ms, and so does passing by a thousand.
_COUNTED = 20_000
_NARROW = 4


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """The terms of a query; `words` says, place by place, which of them are forms of one word.

    `names` are those that are identifiers: a text that holds one of them, as few do, is marked as `named`.
    """

    terms: list[str]
    words: list[int]
    names: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class TermBudget:
    """How much of a query is read, term by term from the rarest on.

    A term is read while there are less than `enough` postings, or if with its own there are at most `most`. The best
    texts are looked for among the best parts, `looked_up` for each of them, in which the other terms are looked up.
    """

    enough: int = 2_000
    most: int = 20_000
    looked_up: int = 3


EVERYTHING = TermBudget(enough=2**53)


@dataclass(frozen=True, slots=True)
class Weights:
    """What a query's terms weigh in one tier, for scores of other texts in the same search.

    `told` is how much scores count where words decide alone: less than 1 where most of the query is in words that
    nobody has said.
    """

    terms: list[str]
    weights: list[float]
    mean_terms: float
    ideal: float
    word_factor: float


@dataclass(frozen=True, slots=True)
class Size:
    """How many parts the texts of a tier have, and those in a session or project, up to a limit.

    `in_scope` is None where the whole pool is searched.
    """

    in_tier: int
    in_scope: int | None

    @property
    def searched(self) -> int:
        """Among how many parts of texts is searched?"""
        return self.in_tier if self.in_scope is None else self.in_scope

    @property
    def is_narrow(self) -> bool:
        """Whether it is cheaper to look up what is in scope than to pass by all else."""
        return self.in_scope is not None and self.in_scope < min(_COUNTED, self.in_tier // _NARROW)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What stands next to a text, which is known by its number, in a session, and how long both are."""

    of_number: int
    of_tokens: int
    id: str
    number: int
    tokens: int


async def size(connection: Connection, tier: Tier, what: Filter) -> Size:
    """Return among how many texts a recall searches."""
    values = {"session": what.session, "project": what.project, "most": _COUNTED}
    async with connection.cursor(row_factory=class_row(Size)) as cursor:
        await cursor.execute(_SIZE[tier], values)
        found = await cursor.fetchone()
    assert found is not None  # it is a count
    return found


async def by_keyword(
    connection: Connection,
    tier: Tier,
    asked: QueryTerms,
    what: Filter,
    limit: int,
    *,
    narrow: bool,
    reading: TermBudget = TermBudget(),
) -> tuple[list[TextHit], Weights | None]:
    """Return the best texts by BM25, best first, and, if there are any, what the terms weigh.

    Whether the scope is `narrow` decides by which way they are found. Of very common words in a
    large pool only those texts are scored that stand out by the others; where these are few, as a filter may leave
    them, all are. A score is a share of what the query's most telling words could give at most.
    """
    first, found = await _scored(connection, tier, asked, what, limit, reading, narrow=narrow)
    if first["looked_up"] < reading.looked_up * limit and not first["is_whole"]:
        first, found = await _scored(connection, tier, asked, what, limit, EVERYTHING, narrow=narrow)
    if not found:
        return [], None
    factor = word_factor(float(first["known"]), float(first["unknown"]))
    return found, Weights(asked.terms, first["weights"], float(first["mean_terms"]), float(first["ideal"]), factor)


async def _scored(
    connection: Connection,
    tier: Tier,
    asked: QueryTerms,
    what: Filter,
    limit: int,
    reading: TermBudget,
    *,
    narrow: bool,
) -> tuple[DictRow, list[TextHit]]:
    """Return what is known of the search as a whole, and the texts that were found."""
    values: dict[str, Any] = {
        **filter_values(what),
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
    """Return the scores of some texts, by number, in a search that was made; 0 for those that are left out."""
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
    connection: Connection, tier: Tier, space: str, vector: Sequence[float], what: Filter, limit: int
) -> list[TextHit]:
    """Return the nearest of all texts in a space that may be seen, best first.

    One with several parts may come several times.
    """
    return await _nearest(connection, for_space(_BY_VECTOR[tier], space), vector, what, limit)


async def by_vector_filtered(
    connection: Connection, tier: Tier, space: str, vector: Sequence[float], what: Filter, limit: int
) -> list[TextHit]:
    """Return the same, in a way that is fast where few may be seen and slow where many may."""
    return await _nearest(connection, for_space(_FILTERED[tier], space), vector, what, limit)


async def by_vector_index(
    connection: Connection, tier: Tier, space: str, pool_id: str, vector: Sequence[float], what: Filter, limit: int
) -> list[TextHit]:
    """Return nearly the same by the tier's index; there may be fewer than there are. `pool_id` is the present pool."""
    values = {**filter_values(what), "vector": as_literal(vector), "limit": limit}
    async with connection.pipeline(), connection.cursor(row_factory=class_row(TextHit)) as cursor:
        # All three go in one trip.
        await connection.execute(SQL["only_as_indexed"])
        await cursor.execute(for_pool(_NEAR[tier], space, pool_id), values)
        await connection.execute(SQL["in_any_way"])
        found = await cursor.fetchall()
    return sorted(found, key=lambda hit: (-hit.score, -hit.number))


async def _nearest(
    connection: Connection, statement: Composed, vector: Sequence[float], what: Filter, limit: int
) -> list[TextHit]:
    values = {**filter_values(what), "vector": as_literal(vector), "limit": limit}
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
    """Return how near these texts are, by number, as far as they have vectors.

    That is the cosine of the nearest part, less `by_chance` for each e-fold of parts.
    """
    values = {"tier": MARK[tier], "vector": as_literal(vector), "numbers": list(numbers), "by_chance": by_chance}
    cursor = await connection.execute(for_space(SQL["cosines"], space), values)
    return {int(row[0]): float(row[1]) for row in await cursor.fetchall()}


async def around(connection: Connection, numbers: Collection[int], what: Filter) -> list[Neighbour]:
    """Return what stands next to some memories in their sessions, as far as it may be seen."""
    async with connection.cursor(row_factory=class_row(Neighbour)) as cursor:
        await cursor.execute(SQL["around"], {**filter_values(what), "numbers": list(numbers)})
        return await cursor.fetchall()


async def said_within(connection: Connection, tier: Tier, window: Window, what: Filter, limit: int) -> list[str]:
    """Return the ids of the latest texts that were said in a time, and of memories that are about some of it."""
    values = {**filter_values(what), "start": window.start, "end": window.end, "limit": limit}
    cursor = await connection.execute(_WITHIN[tier], values)
    return [str(row[0]) for row in await cursor.fetchall()]


async def near_pairs(
    connection: Connection, space: str, ids: Collection[str], least: float
) -> dict[tuple[str, str], float]:
    """Return the cosines between those of these memories that are at least so near, by pairs of ids in order."""
    cursor = await connection.execute(for_space(SQL["near_pairs"], space), {"ids": list(ids), "least": least})
    return {(str(row[0]), str(row[1])): float(row[2]) for row in await cursor.fetchall()}
