"""Put a dump in the place of a database: it is restored beside it, checked, and takes its name when it is right.

A restore that is killed leaves the database as it was, and a database `…_restoring`, which the next one replaces.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from esker.server.core.errors import Conflict, InvalidInput, Misconfigured
from esker.server.db.dumps import OnProgress, script
from esker.server.db.migrate import connected
from esker.server.db.statements import Statements

_SQL = Statements(Path(__file__).parent / "sql/dumps.sql")
_COPY_BYTES = 1_000_000
_ENTRY = b"-- Name: "
# `psql` reads these; and a server before Postgres 17 does not know the setting.
_NOT_SQL = (b"\\restrict ", b"\\unrestrict ", b"SET transaction_timeout = ")


@dataclass(slots=True)
class Kept:
    """The decisions that outlived a restore: tombstones and receipts the backup did not have, by pool id; revoked keys.

    `unknown`: pools whose forgettings could not be kept, since the backup has another key for their hashes.
    """

    tombstones: dict[str, int] = field(default_factory=dict[str, int])
    receipts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    revoked_keys: int = 0
    unknown: list[str] = field(default_factory=list[str])


def require_replaceable(url: str, *, replace: bool) -> None:
    """Raise Conflict if the database is in use, or stores anything and may not be replaced."""
    with connected(url) as connection:
        if others := _value(connection, "others"):
            raise Conflict(
                f"The database is in use by {others} other connections.",
                hint="Stop the servers and workers of this database first.",
            )
        if not replace and _value(connection, "has_schema") and _value(connection, "holds_anything"):
            raise Conflict(
                "The database stores memories already; nothing was changed.",
                hint="--replace puts the backup in their place. Everything stored since it was made is lost.",
            )


def exists(admin_url: str, name: str) -> bool:
    """Return whether a server has a database of this name."""
    with connected(admin_url) as connection:
        return connection.execute(_SQL["exists"], {"name": name}).fetchone() is not None


def is_free(url: str) -> bool:
    """Return whether a database contains no schema of Esker, so that a dump can be restored into it as it is."""
    with connected(url) as connection:
        return not _value(connection, "has_schema")


@contextmanager
def beside(url: str, admin_url: str) -> Generator[str]:
    """Make an empty database beside the one of `url` and yield its URL; at the end it takes the place of that one.

    After an error it is dropped. `admin_url` leads to a database of the same server that is neither of them, or to the
    one that is replaced. Raises Misconfigured when the login may not make databases.
    """
    name = _name(url)
    fresh, former = f"{name}_restoring", f"{name}_replaced"
    fresh_url = of_database(url, fresh)
    with connected(admin_url) as connection:
        if not _value(connection, "may_create"):
            raise Misconfigured(
                "This login may not make databases, so the present one cannot be replaced.",
                hint="Make an empty database with the extensions vector and btree_gist, and restore into that.",
            )
        _on(connection, "drop", fresh)
        _on(connection, "create", fresh)
    try:
        yield fresh_url
    except BaseException:
        with connected(admin_url) as connection:
            _on(connection, "drop", fresh)
        raise
    _swap(admin_url, fresh_url, name, fresh, former)


def _swap(admin_url: str, fresh_url: str, name: str, fresh: str, former: str) -> None:
    """Give `fresh` the name of `name`. Between the two renamings, a kill leaves both databases under other names."""
    with connected(fresh_url) as connection:
        _on(connection, "drop", former)
        replaced = connection.execute(_SQL["exists"], {"name": name}).fetchone()
        if replaced:
            _rename(connection, name, former)
    there = former if replaced and _name(admin_url) == name else _name(admin_url)
    with connected(of_database(admin_url, there)) as connection:
        _rename(connection, fresh, name)
    with connected(of_database(admin_url, name)) as connection:
        _on(connection, "drop", former)


def finish(url: str, admin_url: str) -> bool:
    """Finish the swap of a restore that was killed between its two renamings; return whether there was one."""
    name = _name(url)
    with connected(admin_url) as connection:
        names = [name, f"{name}_restoring", f"{name}_replaced"]
        there = [connection.execute(_SQL["exists"], {"name": each}).fetchone() is not None for each in names]
        if there != [False, True, True]:
            return False
        _rename(connection, f"{name}_restoring", name)
        _on(connection, "drop", f"{name}_replaced")
    return True


def play(dump: Path, url: str, on_progress: OnProgress) -> None:
    """Restore a dump into an empty database, all of it or nothing. `on_progress` counts the entries of the dump.

    Raises InvalidInput when the dump is damaged or not complete, or the database is not empty.
    """
    with script(dump) as (lines, total), connected(url) as connection, connection.transaction():
        connection.execute(_SQL["make_roles"])
        try:
            _play(lines, connection, lambda done: on_progress(done, total))
            on_progress(total, total)  # some entries have no name
        except psycopg.Error as error:
            if connection.broken:
                raise  # the dump is not the cause
            raise InvalidInput(
                f"{dump} cannot be restored: {str(error).strip()}",
                hint="It needs an empty database of Postgres 16 or newer with pgvector 0.8.4 or newer.",
            ) from error
        connection.execute("RESET search_path")
        connection.execute(_SQL["let_owner_in"])
        connection.execute(_SQL["analyze"])


def _play(lines: Iterable[bytes], connection: Connection[TupleRow], on_entry: Callable[[int], None]) -> None:
    statements, done = list[bytes](), 0
    rows = iter(lines)
    for line in rows:
        if line.startswith(_NOT_SQL):
            continue
        if line.startswith(_ENTRY):
            _execute(connection, statements)
            done += 1
            on_entry(done)
        elif line.startswith(b"COPY ") and line.endswith(b" FROM stdin;\n"):
            _execute(connection, statements)
            _copy(connection, line, rows)
            continue
        statements.append(line)
    _execute(connection, statements)


def _execute(connection: Connection[TupleRow], statements: list[bytes]) -> None:
    connection.execute(b"".join(statements))
    statements.clear()


def _copy(connection: Connection[TupleRow], statement: bytes, rows: Iterable[bytes]) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        batch, size = list[bytes](), 0
        for row in rows:
            if row == b"\\.\n":
                break
            batch.append(row)
            size += len(row)
            if size > _COPY_BYTES:
                copy.write(b"".join(batch))
                batch, size = [], 0
        copy.write(b"".join(batch))


def keep_decisions(present_url: str, restored_url: str) -> Kept:
    """Carry over what was decided since the backup: forgettings, revoked keys, and versions of packs given out.

    Tombstones alone delete nothing: `usecases/forget_again.py` does.
    """
    kept = Kept()
    with connected(present_url) as connection:
        rows = connection.execute(_SQL["decisions"]).fetchall() if _value(connection, "has_schema") else []
    with connected(restored_url) as connection, connection.transaction():
        for pool_id, name, key, starts, tombstones, revoked, versions, closed in rows:
            same = connection.execute(_SQL["same_pool"], {"id": pool_id, "name": name}).fetchone()
            if same is None:
                continue  # the pool is younger than the backup
            pool = {"pool": same[0]}
            kept.revoked_keys += connection.execute(_SQL["keep_revoked"], {**pool, "revoked": revoked}).rowcount
            connection.execute(_SQL["keep_pack_versions"], {**pool, "versions": versions})
            if closed:
                connection.execute(_SQL["keep_closed"], pool)
            if key is None:
                continue
            if not connection.execute(_SQL["keep_forget_key"], {**pool, "key": key, "starts": starts}).fetchone():
                kept.unknown.append(name)
                continue
            new = connection.execute(_SQL["keep_tombstones"], {**pool, "tombstones": tombstones}).fetchall()
            if new:
                kept.tombstones[same[0]] = len(new)
                kept.receipts[same[0]] = sorted({receipt for (receipt,) in new})
    return kept


def of_database(url: str, name: str) -> str:
    """Return a connection string for another database of the same server."""
    return make_conninfo(url, dbname=name)


def _name(url: str) -> str:
    """Return the name of the database of a connection string."""
    parts = conninfo_to_dict(url)
    return str(parts.get("dbname") or parts.get("user") or "")


def _value(connection: Connection[TupleRow], name: str) -> Any:
    row = connection.execute(_SQL[name]).fetchone()
    return row[0] if row else None


def _on(connection: Connection[TupleRow], name: str, database: str) -> None:
    connection.execute(sql.SQL(_SQL[name]).format(name=sql.Identifier(database)))


def _rename(connection: Connection[TupleRow], name: str, new: str) -> None:
    connection.execute(sql.SQL(_SQL["rename"]).format(name=sql.Identifier(name), new=sql.Identifier(new)))
