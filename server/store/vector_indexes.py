"""Approximate vector indexes of large tiers, and how well they agree with the exact search."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from esker.server.core.arrays import Vector
from esker.server.core.records import Tier
from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements, for_space
from esker.server.store.vectors import MARK, TIER, from_half

SQL = Statements(Path(__file__).parent / "sql/vector_indexes.sql")

# The most seconds for building an index; a little more than the statement timeout in `allow_minutes`.
_INDEX_SECONDS = 3_660.0


@dataclass(frozen=True, slots=True)
class TierOfSpace:
    """One tier of one pool in one space, and whether it has an index."""

    pool_id: str
    space: str
    tier: Tier
    indexed: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """How well an index agreed with the exact search: the share of the nearest texts that it found."""

    tier: Tier
    probed_at: datetime
    questions: int
    agreement: float
    index: str


async def tiers_to_change(database: Database, large: int, small: int) -> list[TierOfSpace]:
    """Return tiers with `large` texts or more and no index, and tiers with fewer than `small` and an index."""
    rows = await database.ask(SQL["tiers_to_change"], {"large": large, "small": small})
    return [TierOfSpace(row["pool_id"], row["space"], TIER[row["tier"]], row["indexed"]) for row in rows]


async def tiers_to_probe(database: Database, since: datetime) -> list[TierOfSpace]:
    """Return the tiers whose index has not been compared with the exact search since `since`."""
    rows = await database.ask(SQL["tiers_to_probe"], {"since": since})
    return [TierOfSpace(row["pool_id"], row["space"], TIER[row["tier"]], indexed=True) for row in rows]


async def lowest_agreement(database: Database) -> float:
    """Return the lowest agreement of any index in all pools, 0 to 1; 1 without an index."""
    return float((await database.ask(SQL["lowest_agreement"]))[0]["lowest_agreement"])


async def has_vectors(connection: Connection, space: str, tier: Tier, least: int) -> bool:
    """Whether a tier of the pool has at least `least` vectors in a space."""
    counting = for_space(SQL["count_vectors"], space)
    row = await (await connection.execute(counting, {"tier": MARK[tier], "most": least})).fetchone()
    return bool(row and row[0] >= least)


async def create(connection: Connection, space: str, tier: Tier) -> bool:
    """Make the index of a tier; False if it exists, or if another one is being made.

    Writers of vectors in the space wait until this transaction ends; searches do not.
    """
    await connection.execute(SQL["allow_minutes"])
    with connection.waiting(_INDEX_SECONDS):
        row = await (await connection.execute(SQL["create_index"], {"space": space, "tier": MARK[tier]})).fetchone()
    return bool(row and row[0])


async def drop(connection: Connection, space: str, tier: Tier) -> None:
    """Drop the index of a tier, if it has one."""
    await connection.execute(SQL["drop_index"], {"space": space, "tier": MARK[tier]})


async def some_vectors(
    connection: Connection, space: str, tier: Tier, seed: str, limit: int
) -> list[tuple[int, Vector]]:
    """Return some vectors of a tier with the numbers of their texts, the same ones for the same seed."""
    values = {"tier": MARK[tier], "seed": seed, "limit": limit}
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(for_space(SQL["some_vectors"], space), values)
        return [(int(number), from_half(vector)) for number, vector in await cursor.fetchall()]


async def record_probe(
    connection: Connection, space: str, tier: Tier, now: datetime, questions: int, agreement: float
) -> None:
    """Record how well an index agreed with the exact search."""
    values = {"space": space, "tier": MARK[tier], "now": now, "questions": questions, "agreement": agreement}
    await connection.execute(SQL["record_probe"], values)


async def probes(connection: Connection) -> list[Probe]:
    """Return the last probes of the pool's indexes in the active space."""
    found = await (await connection.execute(SQL["probes"])).fetchall()
    return [Probe(TIER[mark], *rest) for mark, *rest in found]
