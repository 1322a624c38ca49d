"""Check the invariants of every pool: what the database must say of messages, groups, packs, vectors and counters."""

from collections.abc import Callable
from dataclasses import dataclass

from esker.server.store import invariants, pools
from esker.server.store.invariants import Violation
from esker.server.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Checked:
    """The checked pools, how many invariants were checked in all, and what is broken, by the name of the pool."""

    pools: list[str]
    checks: int
    broken: dict[str, list[Violation]]


async def check_invariants(parts: Parts, on_progress: Callable[[int, int], None] | None = None) -> Checked:
    """Check every pool, each in one snapshot; other requests are served meanwhile. `on_progress` takes the numbers of
    checked pools and of all pools.
    """
    listed = await pools.listed(parts.database)
    checks, broken = 0, dict[str, list[Violation]]()
    for done, pool in enumerate(listed, 1):
        async with parts.database.moment(pool.id) as connection:
            async for violation in invariants.violations(connection):
                checks += 1
                if violation:
                    broken.setdefault(pool.name, []).append(violation)
        if on_progress:
            on_progress(done, len(listed))
    return Checked([pool.name for pool in listed], checks, broken)
