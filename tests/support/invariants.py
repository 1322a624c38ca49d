"""The invariants of a database, as tests check them."""

from esker.server.usecases.check_invariants import check_invariants
from esker.server.usecases.parts import Parts


async def broken(parts: Parts) -> list[str]:
    """Return the broken invariants of all pools with the ids of what breaks them, in words."""
    checked = await check_invariants(parts)
    assert checked.checks >= len(checked.pools)
    return [
        f"{pool}: {one.problem}: {', '.join(one.subjects)}" for pool, all_of in checked.broken.items() for one in all_of
    ]
