"""The two searches of recall: by keyword and by meaning."""

from collections.abc import Collection, Sequence
from pathlib import Path

from psycopg.rows import class_row

from server.core.hits import KeywordHit, VectorHit
from server.core.records import Filter
from server.db.database import Connection
from server.db.statements import Statements, for_space
from server.store.memories import filter_values
from server.store.vectors import as_literal

SQL = Statements(Path(__file__).parent / "sql/search.sql")


async def by_keyword(connection: Connection, terms: Collection[str], what: Filter, limit: int) -> list[KeywordHit]:
    """Return the best rows by BM25."""
    if not terms:
        return []
    async with connection.cursor(row_factory=class_row(KeywordHit)) as cursor:
        await cursor.execute(SQL["keyword"], {**filter_values(what), "terms": list(terms), "limit": limit})
        return await cursor.fetchall()


async def by_vector(
    connection: Connection, space: str, vector: Sequence[float], what: Filter, limit: int
) -> list[VectorHit]:
    """Return the nearest rows in a space."""
    values = {**filter_values(what), "vector": as_literal(vector), "limit": limit}
    async with connection.cursor(row_factory=class_row(VectorHit)) as cursor:
        await cursor.execute(for_space(SQL["vector"], space), values)
        return await cursor.fetchall()


async def cosines(
    connection: Connection, space: str, vector: Sequence[float], ids: Collection[str]
) -> dict[str, float]:
    """Return how near these rows are, as far as they have vectors."""
    values = {"vector": as_literal(vector), "ids": list(ids)}
    cursor = await connection.execute(for_space(SQL["cosines"], space), values)
    return {str(row[0]): float(row[1]) for row in await cursor.fetchall()}


async def near_pairs(
    connection: Connection, space: str, ids: Collection[str], least: float
) -> dict[tuple[str, str], float]:
    """Return the cosines between those of these rows that are at least so near, by pairs of ids in order."""
    cursor = await connection.execute(for_space(SQL["near_pairs"], space), {"ids": list(ids), "least": least})
    return {(str(row[0]), str(row[1])): float(row[2]) for row in await cursor.fetchall()}
