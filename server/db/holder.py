"""Leases that end with the process that holds them, however it dies.

A process holds a lock on a number of its own, on a connection of its own; when the process dies, the connection ends
and the lock with it. The token of a lease contains the number, so others see which leases nobody holds any longer.
"""

import asyncio
import logging
import secrets
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg

from esker.server.core.clock import SharedClock
from esker.server.db.connection import KEEPALIVE, LimitedConnection
from esker.server.db.database import read_clock
from esker.server.db.driver_errors import first_line
from esker.server.db.statements import Statements

log = logging.getLogger(__name__)

_SQL = Statements(Path(__file__).parent / "sql/tenancy.sql")

_BEAT_SECONDS = 1.5
_ANSWER_SECONDS = 10.0
_RECONNECT_SECONDS = 0.5
# Version 8 of a uuid is for contents of one's own; random ones are version 4.
_VERSION, _VARIANT = 8 << 76, 2 << 62


class Holder:
    """The holder of the leases of this process. `is_held`: it has the lock on its number."""

    def __init__(self) -> None:
        # From 2^47 on, so that no number is that of another lock of Esker, which are hashes of 32 bits.
        self.number = 1 << 47 | secrets.randbits(47)
        self.is_held = False

    def token(self) -> uuid.UUID:
        """Return a token for a new lease; without the lock, one that does not name this process."""
        if not self.is_held:
            return uuid.uuid4()
        return uuid.UUID(
            int=self.number << 80 | _VERSION | secrets.randbits(12) << 64 | _VARIANT | secrets.randbits(62)
        )

    @asynccontextmanager
    async def held(self, url: str, clock: SharedClock) -> AsyncGenerator[None]:
        """Hold the lock during the block, on a new connection when one is lost, and keep `clock` right."""
        task = asyncio.create_task(self._hold(url, clock))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self.is_held = False

    async def _hold(self, url: str, clock: SharedClock) -> None:
        while True:
            try:
                async with await LimitedConnection.connect(url, autocommit=True, **KEEPALIVE) as connection:
                    connection.answer_seconds = _ANSWER_SECONDS
                    while True:
                        await connection.execute(_SQL["live"], {"number": self.number})
                        self.is_held = True
                        await read_clock(connection, clock)
                        await asyncio.sleep(_BEAT_SECONDS)
            except psycopg.Error as error:
                # The leases of this process are still its own: the lock is back before others miss it for long.
                if self.is_held:  # logged once for each outage
                    log.warning("lost the connection that holds the leases; reconnecting: %s", first_line(error))
            self.is_held = False
            await asyncio.sleep(_RECONNECT_SECONDS)
