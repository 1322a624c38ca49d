"""SQL: every statement that ships is valid, named, explained, and used."""

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path

import psycopg
import pytest

from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.statements import Statements, as_array
from tests.support.databases import cloned
from tests.support.shipped_statements import EVERY, SERVER, with_numbered_parameters

# Utility statements, which Postgres does not prepare; other tests run them through their callers.
_UTILITIES = {"create_database", "database_exists", "create", "publish", "become_app_role", "let_app_role_in"}
_UTILITIES |= {"create_bare_table", "analyze", "bare_insert", "see_one_moment", "begin", "begin_moment", "commit"}
_UTILITIES |= {"create_directions", "draw_directions", "fill_vectors", "made_vectors"}
_UTILITIES |= {"add_needs", "make_roles", "let_owner_in", "drop", "rename"}
_UTILITIES |= {"rewrite", "rewrite_catalog", "remove_wal", "recycle_wal", "checkpoint"}


PREPARED = [(path, name) for path, name in EVERY if name not in _UTILITIES]


@pytest.fixture(scope="module")
def connection(cluster: Cluster) -> Generator[psycopg.Connection]:
    """A connection of the owner to a database with a table of vectors."""
    with cloned(cluster) as name, psycopg.connect(cluster.url(OWNER, name)) as connected:
        connected.execute("SELECT create_embedding_space('test_3', 3)")
        yield connected


def test_postgres_reads_the_literal_of_an_array_as_it_was_given(connection: psycopg.Connection) -> None:
    texts = ["plain", 'a"b', "it's", "a\\b", '\\"', "{x,y}", "NULL", "", " ", "two\nlines", "語"]
    numbers = [1.5, None, 1e-12]
    values = [as_array(texts), as_array(numbers), as_array([])]
    assert connection.execute("SELECT %s::text[], %s::float8[], %s::bigint[]", values).fetchone() == (
        texts,
        numbers,
        [],
    )


def test_postgres_accepts_every_statement(connection: psycopg.Connection) -> None:
    refused: dict[str, str] = {}
    for path, name in PREPARED:
        try:
            with connection.transaction(force_rollback=True):
                connection.execute(f"PREPARE tried AS {with_numbered_parameters(path, name)}".encode())
                connection.execute("DEALLOCATE tried")
        except psycopg.Error as error:
            refused[f"{path.stem}.{name}"] = str(error)
    assert refused == {}


def test_every_statement_is_used() -> None:
    assert [f"{path.stem}.{name}" for path, name in EVERY if not _is_used(path, name)] == []


def _is_used(path: Path, name: str) -> bool:
    in_the_code = f'"{name}"' in _code() or f'"{_for_each_tier(name)}"' in _code()
    return in_the_code or f"{{{name}}}" in path.read_text()


def _for_each_tier(name: str) -> str:
    """Return the name as the code writes it that takes the statement of each tier."""
    return re.sub("memory|passage", "{tier}", name)


@cache
def _code() -> str:
    return "\n".join(file.read_text() for file in SERVER.rglob("*.py"))


def test_the_code_contains_no_sql() -> None:
    keyword = re.compile(r"\"[^\"\n]*\b(?:SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE)\b")
    # SQL for another program's database is kept with the code about that program.
    foreign = SERVER / "agents" / "opencode.py"
    for file in (*SERVER.rglob("*.py"), *(SERVER.parent / "embedding_worker").rglob("*.py")):
        assert file == foreign or not keyword.search(file.read_text()), file


def test_a_statement_without_a_purpose_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_text("-- name: one\nSELECT 1\n")
    with pytest.raises(ValueError, match="one"):
        Statements(tmp_path / "bad.sql")
