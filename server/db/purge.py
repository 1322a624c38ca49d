"""Remove deleted rows from the files of the database: a deleted row stays in its page and in the write-ahead log."""

from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import Connection, sql
from psycopg.rows import TupleRow

from esker.server.core.errors import Unavailable
from esker.server.db.postmaster import former_log
from esker.server.db.statements import Statements

_SQL = Statements(Path(__file__).parent / "sql/purge.sql")
# Rounds in which the files of the log are removed, beyond one for each file: a checkpoint that had begun keeps some.
_SPARE_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class Purged:
    """Numbers of rewritten tables and of removed files of the write-ahead log (None without the right to remove
    them)."""

    tables: int
    wal_files: int | None


def purge(url: str, log: Path | None) -> Purged:
    """Rewrite all tables without their deleted rows, and remove the write-ahead log that has them.

    Requests wait while their table is rewritten. `log` is the log file of an embedded Postgres, which is emptied: its
    errors quote values. Raises Unavailable when the database cannot be reached, or when something keeps the log.
    """
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            row = connection.execute(_SQL["is_superuser"]).fetchone()
            is_superuser = bool(row and row[0])
            if is_superuser:
                connection.execute(_SQL["forget_samples"])
            tables = [str(row[0]) for row in connection.execute(_SQL["tables"])]
            for table in tables:
                _rewrite(connection, table)
            removed = _remove_wal(connection) if is_superuser else None
    except psycopg.OperationalError as error:
        raise Unavailable(f"The database cannot be purged: {str(error).strip()}") from error
    if log is not None:
        log.write_bytes(b"")
        former_log(log).unlink(missing_ok=True)
    return Purged(len(tables), removed)


def _rewrite(connection: Connection[TupleRow], table: str) -> None:
    is_catalog = table.startswith("pg_")
    statement = _SQL["rewrite_catalog" if is_catalog else "rewrite"]
    connection.execute(sql.SQL(statement).format(table=sql.Identifier(table.strip('"'))))


def _remove_wal(connection: Connection[TupleRow]) -> int:
    """Remove the files that the log has now, also those that wait to be used again; return how many."""
    connection.execute(_SQL["remove_wal"])
    try:
        removed = _replace_wal(connection)
        # A checkpoint that had begun before may have renamed a file for later use, with its old content.
        _replace_wal(connection)
        return removed
    finally:
        connection.execute(_SQL["recycle_wal"])
        connection.execute(_SQL["reload"])


def _replace_wal(connection: Connection[TupleRow]) -> int:
    """Write and remove until the log has none of its files any more; return how many it had. Raises Unavailable."""
    before = _wal_files(connection)
    for _ in range(len(before) + _SPARE_ROUNDS):
        connection.execute(_SQL["reload"])
        connection.execute(_SQL["write"])
        connection.execute(_SQL["switch"])
        connection.execute(_SQL["checkpoint"])
        if not before & _wal_files(connection):
            return len(before)
    raise Unavailable(
        "Postgres keeps older files of its write-ahead log.",
        hint="A replication slot, an archive or a backup in progress needs them; end it and purge again.",
    )


def _wal_files(connection: Connection[TupleRow]) -> set[str]:
    return {str(row[0]) for row in connection.execute(_SQL["wal_files"])}
