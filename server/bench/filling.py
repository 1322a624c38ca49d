"""Many rows: the server's own pool grows, and so do other pools in the same table."""

from server.bench.place import Place
from server.bench.progress import Progress
from server.bench.texts import Writer
from server.core.records import Principal
from server.usecases.authenticate import SCOPES
from server.usecases.remember import Note, remember

_BATCH = 1_000
# The pool that is asked has this share of the table, the others hold the rest.
_SHARE = 10
_OTHERS = 3


async def fill_table(place: Place, there: int, rows: int, progress: Progress) -> None:
    """Write notes until the table has so many rows, a tenth of them in the server's pool, which has `there` already."""
    writer = Writer(rows)
    pools = [place.pool_id, *[await _new_pool(place, number) for number in range(_OTHERS)]]
    own = max(0, rows // _SHARE - there)
    others = rows - there - own
    wanted = [own, *(others * (n + 1) // _OTHERS - others * n // _OTHERS for n in range(_OTHERS))]
    with progress.step(f"Filling the table with {rows:,} rows", rows - there) as advance:
        for pool_id, count in zip(pools, wanted, strict=True):
            who = Principal(pool_id, "bench", "bench", frozenset(SCOPES))
            for first in range(0, count, _BATCH):
                notes = [Note(writer.sentence()) for _ in range(min(_BATCH, count - first))]
                await remember(place.parts, who, notes)
                advance(len(notes))
    await place.rows("analyze")


async def _new_pool(place: Place, number: int) -> str:
    [[pool_id]] = await place.rows("make_pool", {"name": f"other-{number}"})
    return pool_id
