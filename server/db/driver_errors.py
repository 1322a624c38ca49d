"""Errors of the driver in words: what happened, and what clients and operators can do about it."""

from dataclasses import dataclass

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    LockNotAvailable,
    QueryCanceled,
    TooManyConnections,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedTable,
)

from esker.server.core.errors import EskerError, Misconfigured, Unavailable


@dataclass(frozen=True, slots=True)
class _Words:
    problem: str
    hint: str


_AGAIN = "Nothing was changed; try again."
_WORDS: dict[type[psycopg.Error], _Words] = {
    LockNotAvailable: _Words(
        "Another session of the database holds a lock that this needs.",
        f"{_AGAIN} If it goes on, pg_stat_activity shows the session, which may be idle in a transaction.",
    ),
    QueryCanceled: _Words(
        "The database took too long for a statement, or an operator ended it.",
        f"{_AGAIN} If it goes on, pg_stat_activity shows what keeps the database busy.",
    ),
    DeadlockDetected: _Words("Two sessions of the database waited for each other.", _AGAIN),
    TooManyConnections: _Words(
        "The database has no connection left for Esker.",
        "Raise max_connections of Postgres, or lower ESKER_DATABASE_CONNECTIONS of the servers.",
    ),
}


def esker_error(error: psycopg.Error) -> EskerError | None:
    """Return an error for which clients wait or an operator acts, or None if it is a fault of the statement."""
    if isinstance(error, UndefinedTable | UndefinedColumn | UndefinedFunction):
        return Misconfigured("The database has not been migrated.", hint="Run `esker migrate`.")
    for kind, words in _WORDS.items():
        if isinstance(error, kind):
            return Unavailable(words.problem, hint=words.hint)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(f"The database cannot answer: {first_line(error)}.")
    return None


def first_line(error: Exception) -> str:
    """Return the first line of an error; the others may quote what the statement was given."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
