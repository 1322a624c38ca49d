"""Figures of a whole pool: samples of its texts, and how many are covered, stale or orphaned."""

from collections.abc import Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import LiteralString

from psycopg.rows import class_row

from esker.server.core.pool.evaluation import MessageCounts, PoolRowCounts, VectorTable
from esker.server.core.pool.known_answers import MemoryText
from esker.server.core.records import Kind, Tier
from esker.server.db.database import Connection
from esker.server.db.statements import Statements, for_space
from esker.server.store.vectors import MARK

SQL = Statements(Path(__file__).parent / "sql/evaluation.sql")
_SAMPLE: Mapping[Tier, LiteralString] = {"memory": SQL["sample_memories"], "passage": SQL["sample_passages"]}


async def sample(connection: Connection, tier: Tier, seed: int, limit: int, moment: datetime) -> list[MemoryText]:
    """Return a sample of a tier's visible texts; the same seed gives the same sample."""
    async with connection.cursor(row_factory=class_row(MemoryText)) as cursor:
        await cursor.execute(_SAMPLE[tier], {"seed": str(seed), "limit": limit, "moment": moment})
        return await cursor.fetchall()


async def term_frequencies(connection: Connection, tier: Tier, terms: Collection[str], most: int) -> dict[str, int]:
    """Return how many texts of a tier contain each of these terms, counted up to `most`."""
    values = {"tier": MARK[tier], "terms": sorted(terms), "most": most}
    cursor = await connection.execute(SQL["term_frequencies"], values)
    return {str(row[0]): int(row[1]) for row in await cursor.fetchall()}


async def same_passages(connection: Connection, ids: Collection[str]) -> dict[str, set[str]]:
    """Return, for each of these passages, all passages with identical text, including itself."""
    cursor = await connection.execute(SQL["same_passages"], {"ids": list(ids)})
    return {str(row[0]): set(row[1]) for row in await cursor.fetchall()}


async def messages(connection: Connection) -> MessageCounts:
    """Return how well the pool's messages are covered by groups."""
    async with connection.cursor(row_factory=class_row(MessageCounts)) as cursor:
        await cursor.execute(SQL["messages"])
        found = await cursor.fetchone()
    assert found is not None  # it is a count
    return found


async def rows(connection: Connection, moment: datetime, before: datetime) -> PoolRowCounts:
    """Return counts of rows; those that were not used since `before` may be stale."""
    async with connection.cursor(row_factory=class_row(PoolRowCounts)) as cursor:
        await cursor.execute(SQL["rows"], {"moment": moment, "before": before})
        found = await cursor.fetchone()
    assert found is not None  # it is a count
    return found


async def rows_by_age(connection: Connection, moment: datetime) -> dict[Kind, dict[int, int]]:
    """Return the number of live rows of each kind by age class, see `AGES`."""
    found: dict[Kind, dict[int, int]] = {}
    for kind, age, live in await (await connection.execute(SQL["rows_by_age"], {"moment": moment})).fetchall():
        found.setdefault(kind, {})[int(age)] = int(live)
    return found


async def orphaned_rows(connection: Connection, moment: datetime) -> list[str]:
    """Return the ids of live rows whose sources have all been deleted."""
    cursor = await connection.execute(SQL["orphaned_rows"], {"moment": moment})
    return [str(row[0]) for row in await cursor.fetchall()]


async def vector_tables(connection: Connection) -> list[VectorTable]:
    """Return the pool's figures in every table of vectors, including spaces that are not in its list."""
    found: list[VectorTable] = []
    for space, state, model in await (await connection.execute(SQL["vector_tables"])).fetchall():
        row = await (await connection.execute(for_space(SQL["vectors_in"], space))).fetchone()
        if row and row[0]:
            found.append(VectorTable(space, model, state, *map(int, row)))
    return found


async def largest_projects(connection: Connection, moment: datetime, limit: int) -> list[str | None]:
    """Return the projects with the most live rows; None for rows without a project."""
    cursor = await connection.execute(SQL["largest_projects"], {"moment": moment, "limit": limit})
    return [row[0] for row in await cursor.fetchall()]
