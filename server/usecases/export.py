"""Export: everything that a pool remembers at one moment, as lines of JSON."""

import json
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

from esker.server.core.pool.lines import FORMAT, TYPES, VERSION, LineType
from esker.server.db.database import Connection
from esker.server.store import pool_export
from esker.server.usecases.parts import Parts


async def export(parts: Parts, pool_id: str, pool_name: str) -> AsyncGenerator[bytes]:
    """Yield the lines of a pool's file (see `server/core/pool/lines.py`), each with its line end.

    A connection of its own stays open until the last line, and only a few lines are in memory. Raises Unavailable, also
    midway: a file without the end line is incomplete.
    """
    written: Counter[LineType] = Counter()
    async with parts.database.moment_apart(pool_id) as connection:
        yield _header(pool_name, await pool_export.counts(connection), parts.clock())
        async for line_type, line in _lines(connection):
            written[line_type] += 1
            yield line.encode() + b"\n"
    yield _line({"type": "end", "counts": {name: written[name] for name in TYPES}})


def _header(pool_name: str, counts: dict[LineType, int], now: datetime) -> bytes:
    made = {"exported_at": now.isoformat(), "counts": counts}
    return _line({"type": "header", "format": FORMAT, "version": VERSION, "pool": pool_name, **made})


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


async def _lines(connection: Connection) -> AsyncGenerator[tuple[LineType, str]]:
    async for session_id, line in pool_export.sessions(connection):
        yield "session", line
        async for of_session in _of_session(connection, session_id):
            yield of_session
    async for line in pool_export.memories(connection):
        yield "memory", line
    async for line in pool_export.reflections(connection):
        yield "reflection", line


async def _of_session(connection: Connection, session_id: str) -> AsyncGenerator[tuple[LineType, str]]:
    """Yield the messages of a session, and each group after the last message that it covers."""
    groups = dict(await pool_export.groups(connection, session_id))
    async for seq, line in pool_export.messages(connection, session_id):
        yield "message", line
        if seq in groups:
            yield "group", groups[seq]
