"""SQL lives in `.sql` files; this module reads them.

A file holds named statements:

    -- name: insert_session
    -- Find or make the session of a client.
    INSERT …

The line after the name is the statement's purpose. Parameters are named, `%(session)s`. Arrays of vectors are
sent in binary, `%(vectors)b`: the driver would write out an array as text otherwise. Columns that several
statements return are listed once, before them, and inserted by their name in braces:

    -- columns: session
    id, client, …
    -- name: get_session
    -- One session.
    SELECT {session} FROM …

A statement may contain an earlier one of the file in the same way, by its name in braces.

A name with `{tier}` defines two statements, one for memories and one for passages: `{tier}` becomes `memory` or
`passage` in the name and in the body, also in names of columns, `{{tier}_seen}`.

The statements are typed LiteralString, so the type checker refuses SQL that is built at run time. Three exceptions
are the table of a space, `{vectors}`, which `for_space` inserts as a quoted identifier, a registered column, which
`for_column` inserts with its table and key, and the pool, `{pool}`, which `for_pool` inserts as a quoted uuid where
Postgres needs a constant.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, LiteralString, cast
from uuid import UUID

from psycopg import sql

_NAME = re.compile(r"^-- name: ([\w{}]+)$", re.MULTILINE)
_COLUMNS = re.compile(r"^-- columns: (\w+)$", re.MULTILINE)
_PURPOSE = re.compile(r"\A-- \S")
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)

# Statements for pools with an index of vectors that are kept ready.
_POOLS = 1_000


class Statements(Mapping[str, LiteralString]):
    """The named statements of one file."""

    def __init__(self, path: Path) -> None:
        """Read `path`. Raises ValueError for a statement without a purpose, and for a duplicate name."""
        self._statements: dict[str, LiteralString] = {}
        head, *parts = _NAME.split(path.read_text(encoding="utf-8"))
        columns = _COLUMNS.split(head)
        for name, body in _each(zip(parts[::2], parts[1::2], strict=True)):
            text = body.strip()
            for shared, listed in zip(columns[1::2], columns[2::2], strict=True):
                text = text.replace(f"{{{shared}}}", listed.strip())
            for earlier, statement in self._statements.items():
                text = text.replace(f"{{{earlier}}}", statement)
            if name in self._statements or not _PURPOSE.match(text):
                raise ValueError(f"{path.name}: {name} is a duplicate or has no purpose line")
            # The driver reads a statement each time, so it gets no comments.
            self._statements[name] = cast(LiteralString, _COMMENT.sub("", text))

    def __getitem__(self, name: str) -> LiteralString:
        return self._statements[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._statements)

    def __len__(self) -> int:
        return len(self._statements)


def _each(named: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for name, body in named:
        if "{tier}" in name:
            yield from ((name.replace("{tier}", tier), body.replace("{tier}", tier)) for tier in ("memory", "passage"))
        else:
            yield name, body


def as_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as one JSON array, for `jsonb_to_recordset`.

    The driver would escape every quote of a list of texts, on the event loop; this document is sent as it is and
    can be built in a thread.
    """
    return f"[{','.join(map(json.dumps, rows))}]"


def as_array(values: Iterable[str | float | None]) -> str:
    """Return values as the literal of an array, for a parameter whose type the statement tells.

    The driver takes many times as long for a list: it looks up how to send each element, and escapes it twice.
    """
    return f"{{{','.join(map(_element, values))}}}"


def _element(value: str | float | None) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(value)


@cache
def for_space(statement: LiteralString, space: str) -> LiteralString:
    """Return `statement` with `{vectors}` replaced by the table of the embedding space `space`."""
    return cast(LiteralString, sql.SQL(statement).format(vectors=sql.Identifier(f"embeddings_{space}")).as_string())


@cache
def for_column(
    statement: LiteralString, table: str, column: str, key: tuple[str, ...] = (), *, is_first: bool = False
) -> LiteralString:
    """Return `statement` with `{table}`, `{column}` and `{key}` replaced by those of a registered column, quoted.

    `{key_of_t}` and `{key_of_old}` are the key of the rows `t` and `old`; `{is_next}` is true of the rows behind the
    key in the parameters `%(after_…)s`, and of all rows if `is_first`.
    """
    names: dict[str, sql.Composable] = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
    comma = sql.SQL(", ")
    names["key"] = comma.join(map(sql.Identifier, key))
    for row in ("t", "old"):
        names[f"key_of_{row}"] = comma.join(sql.Identifier(row, part) for part in key)
    behind = sql.SQL("({key}) > ({after})")
    after = comma.join(sql.Placeholder(f"after_{part}") for part in key)
    names["is_next"] = sql.SQL("true") if is_first else behind.format(key=names["key"], after=after)
    return cast(LiteralString, sql.SQL(statement).format(**names).as_string())


@lru_cache(maxsize=_POOLS)
def for_pool(statement: LiteralString, space: str, pool_id: str) -> LiteralString:
    """Return `statement` with the table of a space, and with `{pool}` replaced by the id of a pool.

    Postgres uses the index of a pool only for a statement with the pool as a constant. Row-level security applies
    too. Raises ValueError for a pool id that is not a uuid.
    """
    vectors, pool = sql.Identifier(f"embeddings_{space}"), sql.Literal(UUID(pool_id))
    return cast(LiteralString, sql.SQL(statement).format(vectors=vectors, pool=pool).as_string())
