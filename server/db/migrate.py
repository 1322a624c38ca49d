"""Bringing the schema up to date: `migrations/*.sql`, in order, forward only, each in a transaction of its own.

Old servers keep working during an upgrade and after it: a migration only adds, unless its first line says `-- contract:
NNNN`, which names the last migration that a server must know to work with it.
"""

import hashlib
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.errors import (
    DeadlockDetected,
    InsufficientPrivilege,
    InvalidSchemaName,
    LockNotAvailable,
    ReadOnlySqlTransaction,
)
from psycopg.rows import TupleRow

from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db.database import check_url
from esker.server.db.driver_errors import first_line
from esker.server.db.reachability import reason_of, words_of
from esker.server.db.statements import Statements

_FILE = re.compile(r"(\d{4})_(\w+)\.sql\Z")
_CONTRACT = re.compile(r"-- contract: (\d{4})\n")
_SQL = Statements(Path(__file__).parent / "sql/history.sql")
_LOST = "Run the same command again: Postgres has undone what was half done."


# The most tries of a migration that other transactions block, and the pause between two tries.
_TRIES = 60
_PAUSE_SECONDS = 0.5
_OWNER = (
    "Set ESKER_DATABASE_URL to the login that owns the tables or, for the first migration, to one that may create"
    " tables, extensions and roles."
)

# Migrations 3, 5, 10, 11, 20, 21 and 22 were edited after they had been applied. Both wordings give the same schema,
# that of 21 together with migration 28, so both checksums are accepted.
_FORMER_CHECKSUMS = {
    3: "8be57d4a72677c0301959f33574457d6c1432f47fe9ca058a231718e1301ec05",
    5: "ef85c3b82f026cc87fbc16652e126dc7c978b97291ff61cfc885ec53119f041c",
    10: "a84d34b35c764857d14ab2a13e11fbd156bad9f6f49b7a2822cb23a6164f7348",
    11: "16711c0a0bcd5fb3c33556b58b477cba1c8fc0648e71844813e7fb10b67cd876",
    20: "b98c203d4f1bb52354df075e809f64677b9707dff61f1d0fb032d9549e116a58",
    21: "57daa3816376186a31c8e7dc3d9ce6dfe7fbdc25761afee92a31e104cfc95dd1",
    22: "b93681e809f8b636c6763ead454ced18241d8ab3f449c184ed4002bbcb25873c",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `migrations/`."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def needs(self) -> int:
        """Return the last migration that a server must know to work with this one; 0 if it only adds."""
        named = _CONTRACT.match(self.text)
        return int(named[1]) if named else 0


def migrations() -> list[Migration]:
    """Return all migrations of this version of Esker, in order."""
    found = (
        Migration(int(match[1]), match[2], entry.read_text(encoding="utf-8"))
        for entry in files("esker.migrations").iterdir()
        if (match := _FILE.match(entry.name))
    )
    return sorted(found, key=lambda migration: migration.version)


def newest() -> int:
    """Return the number of the last migration of this version of Esker."""
    return migrations()[-1].version


def migrate(url: str, on_step: Callable[[str], None] = lambda step: None) -> list[Migration]:
    """Apply the missing migrations and return them. The login must be allowed to create tables, extensions and a role.

    A second migrator waits for the first; a killed one is continued by the next. `on_step` is told what is done now.
    Raises Misconfigured when the database is newer than this version, when an applied file was changed, or when a
    migration fails; Unavailable when the database cannot be reached.
    """
    with connected(url) as connection:
        if connection.execute(_SQL["try_lock"]).fetchone() == (False,):
            on_step("Another migration runs; waiting for it.")
            connection.execute(_SQL["lock"])
        _make_history(connection)
        missing = list(_missing(_history(connection)))
        for migration in missing:
            on_step(f"Applying {migration.version:04d} {migration.name}.")
            _apply(connection, migration)
        connection.execute(_SQL["publish"])
    return missing


def pending(url: str) -> list[Migration]:
    """Return the migrations that are not applied yet, without applying them. Raises like `migrate`.

    A newer schema is no error if this version can work with it, as old servers do during an upgrade. Misconfigured is
    also raised if the login may not use the schema.
    """
    with connected(url) as connection:
        if not _has_history(connection):
            return migrations()
        history = _history(connection)
    if max((needs for _, needs in history.values()), default=0) <= newest():
        history = {version: found for version, found in history.items() if version <= newest()}
    return list(_missing(history))


@contextmanager
def connected(url: str) -> Generator[Connection[TupleRow]]:
    """Connect during the block, in which each statement is committed.

    Raises Misconfigured for a wrong URL, and Unavailable if there is no connection or it is lost meanwhile.
    """
    check_url(url)
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as error:
        words = words_of(error)
        raise Unavailable(f"{words.problem} ({reason_of(error)})", hint=words.hint) from error
    try:
        with connection:
            yield connection
    except psycopg.OperationalError as error:
        if not connection.broken:
            raise
        raise Unavailable(f"The connection to the database was lost: {first_line(error)}.", hint=_LOST) from error


def _has_history(connection: Connection[TupleRow]) -> bool:
    """Return whether the database was ever migrated. Raises Misconfigured if the login may not see that."""
    row = connection.execute(_SQL["exists"]).fetchone()
    known, has_schema = row or (False, True)
    if not known and not has_schema:
        raise Misconfigured(
            "The login of ESKER_DATABASE_URL may not use any schema of its search path, so it finds no table of Esker.",
            hint="Let the owner GRANT USAGE ON SCHEMA public TO the login.",
        )
    return bool(known)


def _make_history(connection: Connection[TupleRow]) -> None:
    """Make the list of applied migrations if it is missing. Raises Misconfigured, and Unavailable if it is read-only.

    A login that may not change the schema is told first if there is nothing that it could change.
    """
    if _has_history(connection):
        list(_missing(_history(connection)))
    try:
        connection.execute(_SQL["create"])
        connection.execute(_SQL["add_needs"])
    except (InsufficientPrivilege, InvalidSchemaName) as error:
        raise Misconfigured(f"This login may not change the schema: {first_line(error)}.", hint=_OWNER) from error
    except ReadOnlySqlTransaction as error:
        raise Unavailable(
            "The database takes no writes, so it cannot be migrated.",
            hint="Migrate the primary; default_transaction_read_only must be off there.",
        ) from error


def _history(connection: Connection[TupleRow]) -> dict[int, tuple[str, int]]:
    """Return the checksum of each applied migration, and the last one that a server must know to work with it."""
    rows = connection.execute(_SQL["applied"])
    return {int(version): (str(checksum), int(needs)) for version, checksum, needs in rows}


def _missing(applied: Mapping[int, tuple[str, int]]) -> Iterator[Migration]:
    known = {migration.version: migration for migration in migrations()}
    if unknown := sorted(applied.keys() - known.keys()):
        raise Misconfigured(
            f"The database has migration {unknown[-1]:04d}, which this version of Esker does not know.",
            hint="Install the newer version again; a schema cannot be downgraded.",
        )
    for version, migration in known.items():
        if version not in applied:
            yield migration
        elif applied[version][0] not in (migration.checksum, _FORMER_CHECKSUMS.get(version)):
            raise Misconfigured(
                f"Migration {version:04d} was changed after it had been applied.",
                hint="Restore the file and put the change into a new migration.",
            )


def _apply(connection: Connection[TupleRow], migration: Migration) -> None:
    """Apply a migration and record it, all or nothing; it gives way to other transactions that hold a table."""
    for _ in range(_TRIES - 1):
        try:
            return _try(connection, migration)
        except (LockNotAvailable, DeadlockDetected):
            time.sleep(_PAUSE_SECONDS)
    try:
        _try(connection, migration)
    except (LockNotAvailable, DeadlockDetected) as error:
        raise Unavailable(
            f"Migration {migration.version:04d} was rolled back: other transactions hold its tables for too long.",
            hint="Look for a long transaction (pg_stat_activity), end it, and run `esker migrate` again.",
        ) from error


def _try(connection: Connection[TupleRow], migration: Migration) -> None:
    values = {name: getattr(migration, name) for name in ("version", "name", "checksum", "needs")}
    try:
        with connection.transaction():
            connection.execute(_SQL["be_brief"])
            connection.execute(cast(LiteralString, migration.text))
            connection.execute(_SQL["record"], values)
    except (LockNotAvailable, DeadlockDetected):
        raise
    except psycopg.OperationalError as error:
        raise Unavailable(
            f"The connection was lost during migration {migration.version:04d}, which was rolled back:"
            f" {str(error).strip()}",
            hint="Run `esker migrate` again; it continues there.",
        ) from error
    except psycopg.Error as error:
        raise Misconfigured(
            f"Migration {migration.version:04d} failed and was rolled back: {str(error).strip()}",
            hint="It needs Postgres 16 or newer with pgvector 0.8.4 or newer, and a login that may create roles.",
        ) from error
