"""Connections for which nothing waits while a test keeps Postgres away.

A short limit from the start would end requests of a busy machine as well.
"""

from esker.server.db.connection import KEEPALIVE
from esker.server.db.database import Database
from tests.support.waiting import PATIENCE

_HARDLY_SECONDS = 0.05
_RECONNECT_SECONDS = 5.0
# The driver waits at least this long for the answer to a new connection.
_ANSWER_SECONDS = 2


def wait_hardly(database: Database) -> None:
    """Give up at once on connections that cannot be had, and soon on those that nothing answers."""
    _set(database, _HARDLY_SECONDS, _HARDLY_SECONDS, _ANSWER_SECONDS)


def wait_long(database: Database) -> None:
    """Wait for connections again."""
    _set(database, PATIENCE, _RECONNECT_SECONDS, KEEPALIVE["connect_timeout"])


def _set(database: Database, wait_seconds: float, reconnect_seconds: float, answer_seconds: int) -> None:
    pool = database._pool
    pool.timeout, pool.reconnect_timeout = wait_seconds, reconnect_seconds
    pool.kwargs = {**pool.kwargs, "connect_timeout": answer_seconds} if isinstance(pool.kwargs, dict) else pool.kwargs
