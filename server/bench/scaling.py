"""`python -m esker.server.bench.scaling --rows 100000`: what a million rows cost, by a smaller number of them.

Fills a Postgres of its own with made-up notes and with the messages of conversations, gives all texts vectors, and
reads the sizes of tables and indexes, the log that was written, and the seconds for it. Prints JSON.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from psycopg import AsyncConnection

from esker.server.bench.bench_server import SQL
from esker.server.bench.texts import Writer
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.records import Principal, Space, Tier
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, embedded, prepare
from esker.server.db.statements import Statements, for_space
from esker.server.store import vector_indexes, vectors
from esker.server.usecases.authenticate import SCOPES, require_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember

_SPACE = Space("scaling_384", "made up", "", 384, "", "none")
_TIERS: tuple[Tier, ...] = ("memory", "passage")
_BATCH = 1_000
_SESSION = 1_000
"""Messages of one session."""

_SQL = Statements(Path(__file__).parent / "sql/scaling.sql")


@dataclass(frozen=True, slots=True)
class _Measuring:
    """The database to fill, seen by the app and by its owner, and the principal that writes."""

    parts: Parts
    owner: AsyncConnection
    who: Principal

    async def one(self, name: str) -> int:
        """Return the value of a statement with one row and one column."""
        row = await (await self.owner.execute(_SQL[name])).fetchone()
        assert row
        return int(row[0])

    async def step(self, name: str, rows: int, work: Callable[[], Awaitable[object]]) -> dict[str, float]:
        """Do a step; return its seconds for a million rows, and its bytes of write-ahead log for one row."""
        print(f"{name} …", file=sys.stderr)
        began, written = time.perf_counter(), await self.one("written")
        await work()
        seconds, wal = time.perf_counter() - began, await self.one("written") - written
        return {"seconds for a million": 1e6 * seconds / rows, "wal for one": wal / rows}


async def _measure(rows: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="esker-scaling-") as name, embedded(Path(name), "serve") as cluster:
        prepare(cluster)
        async with AsyncExitStack() as stack:
            database = await stack.enter_async_context(Database(cluster.url()))
            owner = await AsyncConnection.connect(cluster.url(OWNER), autocommit=True)
            await stack.enter_async_context(owner)
            parts = Parts(database, system_clock, Settings.from_environment({"ESKER_EMBEDDER": "none"}))
            stack.push_async_callback(parts.processes.close)
            pool = await require_pool(parts, "default")
            return await _filled(_Measuring(parts, owner, Principal(pool.id, pool.name, "m", frozenset(SCOPES))), rows)


async def _filled(place: _Measuring, rows: int) -> dict[str, object]:
    writer = Writer(rows)
    steps = {
        "notes": await place.step("Writing notes", rows, lambda: _notes(place, writer, rows)),
        "messages": await place.step("Writing messages", rows, lambda: _messages(place, writer, rows)),
    }
    counts: dict[Tier, int] = {tier: await place.one(f"count_{tier}") for tier in _TIERS}
    await vectors.create_space(place.parts.database, _SPACE)
    async with place.parts.database.tenant(place.who.pool_id) as connection:
        await vectors.register_space(connection, _SPACE, place.parts.clock())
    for tier, count in counts.items():
        filling = for_space(_SQL[f"vectors_of_{tier}"], _SPACE.name)
        steps[f"{tier} vectors"] = await place.step("Storing vectors", count, partial(place.owner.execute, filling))
        steps[f"{tier} index"] = await place.step("Making an index", count, partial(_index, place, tier))
    await place.owner.execute(SQL["analyze"])
    tables = await (await place.owner.execute(_SQL["table_sizes"])).fetchall()
    indexes = await (await place.owner.execute(_SQL["index_sizes"])).fetchall()
    return {
        "rows": {**counts, "message": await place.one("count_messages")},
        "steps": steps,
        "tables": {n: {"rows": r, "bytes": t, "index bytes": i} for n, r, t, i in tables},
        "indexes": dict(indexes),
        "database bytes": await place.one("database_size"),
    }


async def _notes(place: _Measuring, writer: Writer, rows: int) -> None:
    for first in range(0, rows, _BATCH):
        notes = [Note(writer.sentence()) for _ in range(min(_BATCH, rows - first))]
        await remember(place.parts, place.who, notes)


async def _messages(place: _Measuring, writer: Writer, rows: int) -> None:
    pool_id = place.who.pool_id
    for first in range(0, rows, _SESSION):
        session = await open_session(place.parts, pool_id, SessionRequest("scaling", f"s{first}"))
        batch = [
            IncomingMessage(f"m{number}", "assistant" if number % 2 else "user", writer.turn())
            for number in range(first, min(first + _SESSION, rows))
        ]
        await ingest(place.parts, pool_id, session.id, batch)


async def _index(place: _Measuring, tier: Tier) -> None:
    async with place.parts.database.tenant(place.who.pool_id) as connection:
        await vector_indexes.create(connection, _SPACE.name, tier)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000, help="How many notes, and how many messages.")
    print(json.dumps(asyncio.run(_measure(parser.parse_args().rows)), indent=2))


if __name__ == "__main__":
    main()
