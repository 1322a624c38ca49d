"""Rows of every table, in the columns that a version of the schema has."""

from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

NOW = "2026-03-01T12:00:00Z"
_SESSION: dict[str, Any] = {"session_id": "ses_1"}
# Values of columns by table, in the order of their foreign keys; a version of the schema has some of them.
_ROWS: dict[str, dict[str, Any]] = {
    "api_keys": {
        "id": "key_1", "name": "k", "prefix": "esk_", "key_hash": b"h" * 32, "scopes": ["read", "write"],
        "created_at": NOW,
    },
    "sessions": {
        "id": "ses_1", "client": "api", "external_id": "s1", "project": "Acme/Shop", "timezone": "UTC",
        "effective_context": 200_000, "last_seq": 2, "observed_seq": 1, "total_tokens": 9, "unobserved_tokens": 4,
        "pack_version": 2, "created_at": NOW, "begun_at": NOW, "last_sent_at": NOW,
    },
    "observation_groups": {
        "id": "grp_1", **_SESSION, "first_seq": 1, "last_seq": 1, "first_external_id": "m1", "last_external_id": "m1",
        "observer": "extractive", "input_tokens": 0, "output_tokens": 0, "created_at": NOW,
    },
    "embedding_spaces": {
        "name": "old_3", "model": "m", "revision": "r", "dimension": 3, "prefix": "", "source": "openai:http://x#m",
        "state": "active", "created_at": NOW,
    },
    "reflections": {
        "id": "ref_1", "scope": "session", **_SESSION, "reflector": "extractive", "input_ids": ["mem_1"],
        "output_ids": ["mem_2"], "tokens_before": 2, "tokens_after": 1, "input_tokens": 0, "output_tokens": 0,
        "created_at": NOW,
    },
    "packs": {
        **_SESSION, "version": 2, "text": "x", "tokens": 1, "memory_ids": ["mem_2"], "pins_left": 0,
        "sha256": "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", "reason": "initial",
        "created_at": NOW,
    },
    "jobs": {"kind": "observe", **_SESSION, "subject": "ses_1", "run_after": NOW, "created_at": NOW},
    "audit": {"at": NOW, "actor": "k", "action": "forget", "target": "mem_0"},
}  # fmt: skip
_MEMORY: dict[str, Any] = {
    "priority": "low", "category": "fact", "trust": "user", "content_hash": b"h", "author": "extractive",
    "tokens": 1, "terms": 1, "parts": 1, "said_at": NOW, "last_used_at": NOW, "created_at": NOW, **_SESSION,
}  # fmt: skip
_MEMORIES: list[dict[str, Any]] = [
    {
        **_MEMORY, "id": "mem_1", "kind": "observation", "content": "one", "group_id": "grp_1", "source_seqs": [1],
        "superseded_by": "mem_2", "superseded_at": NOW, "outdated_at": NOW,
    },
    {
        **_MEMORY, "id": "mem_2", "kind": "reflection", "content": "two", "reflection_id": "ref_1",
        "source_ids": ["mem_1"],
    },
]  # fmt: skip
_MESSAGES: list[dict[str, Any]] = [
    {
        **_SESSION, "seq": seq, "external_id": f"m{seq}", "role": "user", "trust": "user", "sent_at": NOW,
        "received_at": NOW, "content": Jsonb([]), "content_hash": b"h", "text": "x", "tokens": tokens,
        "shown_tokens": 1,
    }
    for seq, tokens in ((1, 5), (2, 4))
]  # fmt: skip


def seed(connection: psycopg.Connection, version: int) -> None:
    """Fill a database of a version of the schema with a session, what was made of it, and a space of vectors.

    From version 2 on, a reflection is linked to its sources; from version 3 on, what is searched has a number.
    """
    connection.execute("SELECT create_embedding_space('old_3', 3)")
    for table, row in _ROWS.items():
        _insert(connection, table, row)
    for row in _MESSAGES:
        _insert(connection, "messages", row)
    for row in _MEMORIES:
        _insert(connection, "memories", row)
    if version > 1:
        _insert(connection, "memory_links", {"source_id": "mem_1", "memory_id": "mem_2"})
    posting = {"term": "one", "frequency": 1, "length": 1, "memory_id": "mem_1", "number": 1, "tier": "m", "part": 1}
    _insert(connection, "postings", posting)
    if version > 2:
        connection.execute("UPDATE postings SET number = (SELECT number FROM memories WHERE id = 'mem_1')")


def _insert(connection: psycopg.Connection, table: str, row: dict[str, Any]) -> None:
    known = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
        " AND attgenerated = ''",
        [table],
    ).fetchall()
    names = [name for (name,) in known if name in row]
    connection.execute(
        sql.SQL("INSERT INTO {} (pool_id, {}) SELECT id, {} FROM pools").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, names)),
            sql.SQL(", ").join(sql.Placeholder() * len(names)),
        ),
        [row[name] for name in names],
    )
