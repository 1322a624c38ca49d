"""The invariants of a pool as statements, which `esker doctor`, a restore and the tests run."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import LiteralString

from esker.server.db.database import Connection
from esker.server.db.statements import Statements, for_space

SQL = Statements(Path(__file__).parent / "sql/invariants.sql")

_CHECK_SECONDS = 3_600.0
_MOST_SUBJECTS = 20
"""The most records that are named for each violation."""

OF_POOLS: Mapping[str, str] = {
    "messages_once_in_order": "messages are missing, or stored twice, in sessions",
    "messages_covered_once": "messages are in no observation group, or in two, in sessions",
    "counters_of_sessions": "counters of tokens are wrong in sessions",
    "facts_have_sources": "memories lack sources, or have other sources than their group",
    "superseded_by_something": "memories were replaced by something that does not exist",
    "packs_as_frozen": "packs are not the bytes that were frozen, in sessions",
    "packs_show_nothing_forgotten": "packs show memories that do not exist, in sessions",
    "keywords_of_texts": "keyword search lacks texts, or has deleted ones",
    "counters_of_tiers": "the counters by which keyword search weighs are wrong for",
    "leases": "jobs, or rows that wait for vectors, have a state that does not agree with their lease",
    "queue_of_texts": "texts that do not exist wait for vectors",
    "dimension_of_spaces": "the tables of vectors have another dimension than their models, in spaces",
}
"""Every invariant of a pool, and the words for its violation, which precede the ids of the records that break it."""
OF_SPACES: Mapping[str, str] = {
    "vectors_of_texts": "vectors belong to texts that do not exist",
    "texts_have_vectors": "texts have no vector, and do not wait for one",
}
"""The same for the vectors of a pool in each space. A worker repairs these every few minutes."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that some records of a pool break: its name, what is wrong, and the first of their ids."""

    invariant: str
    problem: str
    subjects: list[str]
    complete: bool
    """Whether `subjects` names all records that break the invariant."""

    @property
    def is_repaired(self) -> bool:
        """Whether a worker repairs it."""
        return self.invariant in OF_SPACES

    @property
    def is_of_imports(self) -> bool:
        """Whether an import breaks it until its last part is there: a replaced memory may come before its successor."""
        return self.invariant == "superseded_by_something"


async def violations(connection: Connection) -> AsyncGenerator[Violation | None]:
    """Yield for each invariant how the pool breaks it, or None; the transaction must have one snapshot."""
    with connection.waiting(_CHECK_SECONDS):
        await connection.execute(SQL["take_time"])
        for name in OF_POOLS:
            yield await _violation(connection, name, SQL[name])
        for (space,) in await (await connection.execute(SQL["spaces"], {})).fetchall():
            for name in OF_SPACES:
                yield await _violation(connection, name, for_space(SQL[name], space), space)


async def _violation(
    connection: Connection, name: str, statement: LiteralString, space: str | None = None
) -> Violation | None:
    async with connection.cursor(f"breaking_{name}") as cursor:
        await cursor.execute(statement, {"space": space})
        found = [str(subject) for (subject,) in await cursor.fetchmany(_MOST_SUBJECTS + 1)]
    problem = {**OF_POOLS, **OF_SPACES}[name]
    return Violation(name, problem, found[:_MOST_SUBJECTS], len(found) <= _MOST_SUBJECTS) if found else None
