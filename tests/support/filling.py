"""Pools with many rows, written as their owner would restore them."""

import random
from datetime import datetime, timedelta
from typing import LiteralString

import psycopg

from esker.server.core.ranking import KIND_BIAS
from esker.server.core.records import PRIORITIES
from esker.server.core.text.tokens import estimate_tokens

_COLUMNS: LiteralString = """
    COPY memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, session_id, project,
                   source_ids, tokens, terms, parts, said_at, valid_until, last_used_at, superseded_by, superseded_at,
                   outdated_at, reflection_id, created_at)
    FROM STDIN
"""


def fill_pool(owner_url: str, pool_id: str, rows: int, *, now: datetime, session_id: str | None = None) -> None:
    """Write notes and reflections of two projects and of none, some of them superseded, some expired.

    Every tenth belongs to the session, and many were used at the same moment.
    """
    draw = random.Random(rows)  # noqa: S311 - the same rows every time
    with psycopg.connect(owner_url) as connection, connection.cursor() as cursor, cursor.copy(_COLUMNS) as copy:
        for n in range(rows):
            kind = draw.choice([kind for kind in KIND_BIAS if kind != "observation"])
            used = now - timedelta(hours=draw.choice([1, 2, draw.randrange(2_000), draw.randrange(2_000)]))
            superseded = used if draw.random() < 0.2 else None
            ends = draw.choice([None, None, None, now - timedelta(minutes=1), now + timedelta(days=9)])
            content = f"Row {n} says {'a few words ' * draw.randrange(1, 12)}".strip()
            copy.write_row(
                (
                    pool_id,
                    f"mem_{n:09d}",
                    kind,
                    draw.choice(PRIORITIES),
                    "fact",
                    "user",
                    content,
                    content.encode(),
                    "test",
                    session_id if n % 10 == 0 else None,
                    draw.choice([None, "large", "large", "large", "small" if n % 40 == 0 else "large"]),
                    ["mem_0"] if kind == "reflection" else [],
                    estimate_tokens(content),
                    len(content.split()),
                    1,
                    used,
                    ends,
                    used,
                    "mem_0" if superseded else None,
                    superseded,
                    superseded,
                    "ref_0" if kind == "reflection" else None,
                    used,
                )
            )
