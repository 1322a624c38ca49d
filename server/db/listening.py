"""Notifications of Postgres, which wake a loop that looks for work."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection, sql

from esker.server.db.connection import KEEPALIVE
from esker.server.db.driver_errors import first_line

log = logging.getLogger(__name__)


@asynccontextmanager
async def listening(url: str, channel: str, wake: asyncio.Event) -> AsyncGenerator[None]:
    """Set `wake` at every notification on `channel` while the block runs, reconnecting when the database returns.

    Notifications are hints and can be lost: the caller must also poll.
    """
    task = asyncio.create_task(_listen(url, channel, wake))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _listen(url: str, channel: str, wake: asyncio.Event) -> None:
    listens = True
    while True:
        try:
            async with await AsyncConnection.connect(url, autocommit=True, **KEEPALIVE) as connection:
                await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
                listens = True
                wake.set()  # a notification may have been missed before LISTEN
                async for _ in connection.notifies():
                    wake.set()
        except psycopg.Error as error:
            if listens:  # logged once for each outage
                log.warning("lost the connection that listens on %s; reconnecting: %s", channel, first_line(error))
            listens = False
            await asyncio.sleep(1)
