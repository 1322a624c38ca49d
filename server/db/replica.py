"""A streaming replica that recalls are read from, as far as it has caught up.

A recall first reads some figures from the primary, and with them the position of its log. All that was committed before
the recall began, by whichever server, is in the log up to there, and the replica is read from only if it shows as much:
everyone finds what he has just written. A replica that is behind or does not answer is left alone for a while.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, LiteralString, Protocol, TypeVar

from psycopg.rows import DictRow

from esker.server.core.errors import EskerError
from esker.server.db.pipeline import Query
from esker.server.db.statements import Statements

log = logging.getLogger(__name__)

FOLLOWER_SECONDS = 1.0
"""The most seconds to wait for a connection to the replica."""
# The most seconds to wait for the replica to catch up, and between two looks.
_PATIENCE_SECONDS = 0.1
_LOOK_SECONDS = 0.01
# Seconds without a look at a replica that was behind, and at one that gave no answer.
_BEHIND_SECONDS = 1.0
_SILENT_SECONDS = 10.0

_SQL = Statements(Path(__file__).parent / "sql/replica.sql")


class Askable(Protocol):
    """A database of which a question about no pool can be asked."""

    async def ask(self, statement: LiteralString, values: Mapping[str, Any] | None = None) -> list[DictRow]:
        """Run one statement and return its rows."""
        ...


AnyDatabase = TypeVar("AnyDatabase", bound=Askable)


class Replica(Generic[AnyDatabase]):
    """A replica and what is known of it; `follower` is its database."""

    def __init__(self, follower: AnyDatabase) -> None:
        self.follower = follower
        self._unused_until = 0.0

    async def reaches(self, position: str) -> bool:
        """Return whether the replica shows all up to `position` now or within a tenth of a second."""
        began = time.monotonic()
        if began < self._unused_until:
            return False
        try:
            while not await self._has_reached(position):
                if time.monotonic() - began > _PATIENCE_SECONDS:
                    self._leave(_BEHIND_SECONDS, "is behind")
                    return False
                await asyncio.sleep(_LOOK_SECONDS)
        except EskerError as error:
            self._leave(_SILENT_SECONDS, f"gives no answer ({error})")
            return False
        return True

    async def _has_reached(self, position: str) -> bool:
        [row] = await self.follower.ask(_SQL["has_reached"], {"position": position})
        return bool(row["reached"])

    def _leave(self, seconds: float, why: str) -> None:
        self._unused_until = time.monotonic() + seconds
        log.warning("the replica %s; recalls are read from the primary for %g s", why, seconds)


def log_position() -> Query[str | None]:
    """Return the query for the position of the log of a primary; its answer is None on any other server."""
    return Query(_SQL["position"], {}, lambda rows: rows[0][0])
