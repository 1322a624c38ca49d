"""SQL lives in `.sql` files; this module reads them.

A file holds named statements:

    -- name: insert_session
    -- Find or make the session of a client.
    INSERT …

The line behind the name says what the statement is for. Parameters are named, `%(session)s`. Columns that several
statements of a file return stand once, in front of them, and are meant by their name in braces:

    -- columns: session
    id, client, …
    -- name: get_session
    -- One session.
    SELECT {session} FROM …

A name with `{tier}` stands for two statements, one for memories and one for passages: there `{tier}` is `memory` or
`passage` in the body, too, also in the name of columns, `{{tier}_seen}`.

The statements are typed LiteralString, so that the type checker refuses any SQL that is put together at run time; the
exceptions are the table of a space, written `{vectors}` and filled in as a quoted identifier by `for_space`, and, where
only a constant will do, the pool, written `{pool}` and filled in as a quoted uuid by `for_pool`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, LiteralString, cast
from uuid import UUID

from psycopg import sql

_NAME = re.compile(r"^-- name: ([\w{}]+)$", re.MULTILINE)
_COLUMNS = re.compile(r"^-- columns: (\w+)$", re.MULTILINE)
_PURPOSE = re.compile(r"\A-- \S")


class Statements(Mapping[str, LiteralString]):
    """The named statements of one file."""

    def __init__(self, path: Path) -> None:
        """Read `path`. Raises ValueError for a statement without a purpose, or a name that is there twice."""
        self._statements: dict[str, LiteralString] = {}
        head, *parts = _NAME.split(path.read_text(encoding="utf-8"))
        columns = _COLUMNS.split(head)
        for name, body in _each(zip(parts[::2], parts[1::2], strict=True)):
            text = body.strip()
            for shared, listed in zip(columns[1::2], columns[2::2], strict=True):
                text = text.replace(f"{{{shared}}}", listed.strip())
            if name in self._statements or not _PURPOSE.match(text):
                raise ValueError(f"{path.name}: {name} stands there twice or has no purpose line")
            self._statements[name] = cast(LiteralString, text)

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

    The driver would write a list of texts escaping every quote in it, on the event loop; one document is written row
    by row, in a thread if need be, and sent as it is.
    """
    return f"[{','.join(map(json.dumps, rows))}]"


def for_space(statement: LiteralString, space: str) -> sql.Composed:
    """Return `statement` with `{vectors}` replaced by the table of the embedding space `space`."""
    return sql.SQL(statement).format(vectors=sql.Identifier(f"embeddings_{space}"))


def for_pool(statement: LiteralString, space: str, pool_id: str) -> sql.Composed:
    """Return `statement` with the table of a space, and with `{pool}` replaced by the id of a pool.

    Postgres uses an index of one pool only for a statement that names the pool. Row-level security stays what decides.
    Raises ValueError for what is no id.
    """
    vectors = sql.Identifier(f"embeddings_{space}")
    return sql.SQL(statement).format(vectors=vectors, pool=sql.Literal(UUID(pool_id)))
