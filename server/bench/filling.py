"""Fills the tables: the measured pool, and other pools in the same tables."""

from esker.server.bench.bench_server import BenchServer
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer
from esker.server.core.records import Principal
from esker.server.db.statements import as_json
from esker.server.usecases.authenticate import SCOPES
from esker.server.usecases.remember import Note, remember

_NOTES = 1_000
_ROWS = 50_000
_SENTENCES = 5_000
# The measured pool has one row in `_SHARE`; `_OTHERS` other pools have the rest.
_SHARE = 10
_OTHERS = 3


async def fill_table(place: BenchServer, present: int, rows: int, progress: BenchProgress) -> None:
    """Write notes until the table has `rows`, a tenth of them in the server's pool, which already has `present`."""
    writer = Writer(rows)
    pools = [place.pool_id, *[await _new_pool(place, number) for number in range(_OTHERS)]]
    own = max(0, rows // _SHARE - present)
    others = rows - present - own
    wanted = [own, *(others * (n + 1) // _OTHERS - others * n // _OTHERS for n in range(_OTHERS))]
    with progress.step(f"Filling the table with {rows:,} rows", rows - present) as advance:
        for pool_id, count in zip(pools, wanted, strict=True):
            who = Principal(pool_id, "bench", "bench", frozenset(SCOPES))
            for first in range(0, count, _NOTES):
                notes = [Note(writer.sentence()) for _ in range(min(_NOTES, count - first))]
                await remember(place.parts, who, notes)
                advance(len(notes))
    await place.rows("analyze")


async def fill_pool(place: BenchServer, name: str, rows: int, progress: BenchProgress) -> str:
    """Return the id of a new pool of `rows` rows without a keyword index; Postgres has statistics of them."""
    [[pool_id]] = await place.rows("make_pool", {"name": name})
    sentences = Writer(rows).counted_sentences(_SENTENCES)
    values = {
        "pool": pool_id,
        "now": place.parts.clock(),
        "sentences": as_json({"place": number, **sentence} for number, sentence in enumerate(sentences)),
    }
    with progress.step(f"Filling a pool with {rows:,} rows", rows) as advance:
        for first in range(0, rows, _ROWS):
            last = min(rows, first + _ROWS) - 1
            await place.rows("fill_pool", {**values, "first": first, "last": last})
            advance(last - first + 1)
    await place.rows("analyze")
    return pool_id


async def _new_pool(place: BenchServer, number: int) -> str:
    [[pool_id]] = await place.rows("make_pool", {"name": f"other-{number}"})
    return pool_id
