"""Every SQL statement that ships, as Postgres gets it."""

import re
from pathlib import Path
from typing import LiteralString
from uuid import UUID

from esker.server.db.statements import Statements, for_column, for_pool, for_space

SERVER = Path(__file__).parents[2] / "server"
FILES = sorted(SERVER.rglob("*.sql"))
EVERY = [(path, name) for path in FILES for name in Statements(path)]

SPACE = "test_3"
"""The embedding space whose table of vectors the statements use."""


def with_numbered_parameters(path: Path, name: str) -> str:
    """Return a statement with `$1`, `$2`, … for its parameters."""
    numbers: dict[str, int] = {}
    return re.sub(
        r"%\((\w+)\)[sb]", lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", _filled_in(path, name)
    )


def _filled_in(path: Path, name: str) -> LiteralString:
    statement = Statements(path)[name]
    if "{table}" in statement:
        return for_column(statement, *_a_column_for(statement))
    if "{vectors}" not in statement:
        return statement
    return for_pool(statement, SPACE, str(UUID(int=0))) if "{pool}" in statement else for_space(statement, SPACE)


def _a_column_for(statement: LiteralString) -> tuple[str, str, tuple[str, ...]]:
    """Return a table, a column of the type that a statement writes, and the key."""
    if "ARRAY (" in statement:
        return "memories", "tags", ("id",)
    return "messages", "content" if "= new.it -> 0" in statement else "text", ("session_id", "seq")
