"""The registry of columns with people's words names every column of the schema that can hold a text."""

from typing import LiteralString

import psycopg

from esker.server.core.records import Space
from esker.server.db.database import Database
from esker.server.store import vectors
from esker.server.store.text_columns import HOLDS_NO_TEXT, TEXT_COLUMNS, TextShape

# Types that hold no words, and the types of a registered column by its shape.
WITHOUT_WORDS = [
    "integer", "bigint", "smallint", "boolean", "uuid", "timestamp with time zone", "double precision", "numeric",
    "date", "bigint[]",
]  # fmt: skip
SHAPES: dict[TextShape, str] = {"text": "text", "list": "text[]", "json": "jsonb"}

COLUMNS: LiteralString = """
    SELECT CASE WHEN c.relname LIKE 'embeddings\\_%%' THEN 'embeddings' ELSE c.relname END, a.attname,
           format_type(a.atttypid, NULL)
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relkind IN ('r', 'p', 'm') AND c.relnamespace = 'public'::regnamespace
      AND format_type(a.atttypid, NULL) <> ALL (%(without)s)
"""
KEYS: LiteralString = """
    SELECT c.relname, array_agg(a.attname::text ORDER BY place)
    FROM pg_index i
    JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
    CROSS JOIN LATERAL unnest(i.indkey[0:i.indnkeyatts - 1]) WITH ORDINALITY AS key (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = key.number
    WHERE i.indisprimary GROUP BY c.relname
"""


async def test_every_column_is_registered_as_text_or_listed_with_the_reason_why_it_holds_none(
    database: Database, owner_url: str
) -> None:
    await vectors.create_space(database, Space("words_3", "m", "r", 3, "", "none"))
    with psycopg.connect(owner_url) as connection:
        found = connection.execute(COLUMNS, {"without": WITHOUT_WORDS}).fetchall()
    columns = {f"{table}.{column}": kind for table, column, kind in found}
    registered = {column.name: SHAPES[column.shape] for column in TEXT_COLUMNS}
    assert registered.keys() & HOLDS_NO_TEXT.keys() == set()
    assert columns.keys() == registered.keys() | HOLDS_NO_TEXT.keys()
    # Only the gateway needs the bytes of a document.
    exact = {"hidden_calls.items": "json"}
    assert {name: columns[name] for name in registered} == registered | exact


async def test_a_registered_column_has_the_primary_key_of_its_table(owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        keys = {table: ("pool_id", *columns[1:]) for table, columns in connection.execute(KEYS).fetchall()}
    assert {column.table: ("pool_id", *column.key) for column in TEXT_COLUMNS} == {
        table: keys[table] for table in {column.table for column in TEXT_COLUMNS}
    }
