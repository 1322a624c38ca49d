"""Errors of the driver in words: what happened, and what clients and operators can do about it."""

from dataclasses import dataclass

import psycopg
from psycopg.errors import (
    DeadlockDetected,
    InsufficientPrivilege,
    InvalidSchemaName,
    LockNotAvailable,
    QueryCanceled,
    TooManyConnections,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
)

from esker.server.core.errors import EskerError, Misconfigured, Unavailable


@dataclass(frozen=True, slots=True)
class Words:
    """A problem, and what to do about it."""

    problem: str
    hint: str


NO_CONNECTION_LEFT = Words(
    "The database has no connection left for Esker.",
    "Raise max_connections of Postgres, or the CONNECTION LIMIT of the role or the database; or lower"
    " ESKER_DATABASE_CONNECTIONS of the servers.",
)
_UNDEFINED = UndefinedTable | UndefinedColumn | UndefinedFunction | UndefinedObject | InvalidSchemaName
_MIGRATE = (
    "Run `esker migrate` with the login that owns the tables. If it finds nothing to do, esker_app may lack the right"
    " to use the schema (GRANT USAGE ON SCHEMA), or a table was removed by hand; if the schema is newer, start the"
    " newer Esker."
)
_GRANT = "`esker migrate` gave it, and somebody took it away: GRANT it again with the login that owns the tables."
# The function of Postgres that refuses a row; the message may be in any language.
_BY_A_POLICY = "ExecWithCheckOptions"
_AGAIN = "Nothing was changed; try again."
_WORDS: dict[type[psycopg.Error], Words] = {
    LockNotAvailable: Words(
        "Another session of the database holds a lock that this needs.",
        f"{_AGAIN} If it goes on, pg_stat_activity shows the session, which may be idle in a transaction.",
    ),
    QueryCanceled: Words(
        "The database took too long for a statement, or an operator ended it.",
        f"{_AGAIN} If it goes on, pg_stat_activity shows what keeps the database busy.",
    ),
    DeadlockDetected: Words("Two sessions of the database waited for each other.", _AGAIN),
    TooManyConnections: NO_CONNECTION_LEFT,
}


def esker_error(error: psycopg.Error) -> EskerError | None:
    """Return an error for which clients wait or an operator acts, or None if it is a fault of the statement."""
    if isinstance(error, _UNDEFINED):
        return Misconfigured(f"The schema does not fit this version of Esker: {first_line(error)}.", hint=_MIGRATE)
    if is_missing_right(error):
        return Misconfigured(right_refused(first_line(error)), hint=_GRANT)
    for kind, words in _WORDS.items():
        if isinstance(error, kind):
            return Unavailable(words.problem, hint=words.hint)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return Unavailable(f"The database cannot answer: {first_line(error)}.")
    return None


def is_missing_right(error: psycopg.Error) -> bool:
    """Return whether Postgres refused a right that Esker needs, as opposed to a row that a policy keeps out."""
    return isinstance(error, InsufficientPrivilege) and error.diag.source_function != _BY_A_POLICY


def right_refused(reason: str) -> str:
    """Return the words for a right that Postgres refused, of which `reason` is Postgres' own line."""
    return f"Esker lacks a right in the database: {reason}."


def first_line(error: Exception) -> str:
    """Return the first line of an error; the others may quote what the statement was given."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
