"""Do upkeep in one pool after the other; a failure in one pool does not stop it in the others."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from esker.server.core.errors import EskerError

log = logging.getLogger(__name__)

_T = TypeVar("_T")


async def in_each_pool(what: str, pool_ids: Sequence[str], work: Callable[[str], Awaitable[_T]]) -> list[_T]:
    """Return the results of work in each pool; failures are logged, and the next upkeep tries again."""
    done: list[_T] = []
    for pool_id in pool_ids:
        try:
            done.append(await work(pool_id))
        except EskerError as error:
            log.warning("%s failed in pool %s: %s", what, pool_id, error)
        except Exception:
            log.exception("%s failed in pool %s", what, pool_id)
    return done
