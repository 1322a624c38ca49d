"""The invariants hold in a pool that has some of everything, and each is broken by what it speaks of."""

import hashlib
from collections.abc import AsyncGenerator
from typing import LiteralString

import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.statements import for_space
from esker.server.store.invariants import OF_POOLS, OF_SPACES, SQL
from tests.support.databases import cloned
from tests.support.invariants import broken
from tests.support.pool_files import fill
from tests.support.reflecting import scripted

# A vector of each text, in a space with three dimensions.
_EMBED: LiteralString = """
    SELECT create_embedding_space('test_3', 3);
    INSERT INTO embedding_spaces (pool_id, name, model, revision, dimension, prefix, source, state, created_at)
    SELECT id, 'test_3', 'm', 'r', 3, '', 'openai:http://x#m', 'active', now() FROM pools;
    INSERT INTO embeddings_test_3 (pool_id, tier, number, part, content_hash, embedding, created_at)
    SELECT pool_id, 'm', number, 0, content_hash, '[1,2,3]'::halfvec, now() FROM memories
    UNION ALL SELECT pool_id, 'p', number, 0, content_hash, '[1,2,3]', now() FROM passages;
"""


@pytest.fixture(scope="module")
async def filled(cluster: Cluster) -> AsyncGenerator[str]:
    """The name of a database whose pool has some of everything, without a server."""
    with cloned(cluster) as name:
        async with scripted(cluster.url(database=name)) as (client, model):
            await fill(client, model)
        with psycopg.connect(cluster.url(OWNER, name)) as connection:
            connection.execute(_EMBED)
        yield name


async def test_a_pool_with_some_of_everything_breaks_no_invariant(cluster: Cluster, filled: str) -> None:
    async with Database(cluster.url(database=filled)) as database:
        parts = make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), database)
        assert await broken(parts) == []


async def test_a_violation_is_named_with_the_records_that_break_it(cluster: Cluster, filled: str) -> None:
    with cloned(cluster, filled) as name:
        with psycopg.connect(cluster.url(OWNER, name)) as connection:
            changed = connection.execute("UPDATE packs SET text = text || 'x' RETURNING session_id").fetchall()
        async with Database(cluster.url(database=name)) as database:
            parts = make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), database)
            found = await broken(parts)
        sessions = ", ".join(sorted(session for (session,) in changed))
        assert found == [f"default: packs are not the bytes that were frozen, in sessions: {sessions}"]


_BREAKING: dict[str, list[LiteralString]] = {
    "messages_once_in_order": [
        "DELETE FROM messages WHERE seq = 1 AND session_id IN (SELECT session_id FROM messages WHERE seq = 2)",
        "DELETE FROM messages WHERE seq = (SELECT max(seq) FROM messages m WHERE m.session_id = messages.session_id)",
        "UPDATE sessions SET last_seq = last_seq + 1 WHERE observed_seq < last_seq",
    ],
    "messages_covered_once": [
        "DELETE FROM observation_groups WHERE first_seq = 1",
        "UPDATE observation_groups SET last_seq = last_seq + 1",
        "UPDATE observation_groups SET first_seq = first_seq + 1, last_seq = last_seq + 1",
        "UPDATE sessions SET observed_seq = 1 WHERE observed_seq = 0 AND last_seq > 1",
    ],
    "counters_of_sessions": [
        "UPDATE sessions SET total_tokens = total_tokens + 1 WHERE last_seq > 0",
        "UPDATE sessions SET unobserved_tokens = unobserved_tokens - 1 WHERE unobserved_tokens > 1",
        "UPDATE messages SET tokens = tokens + 1",
    ],
    "facts_have_sources": [
        "UPDATE memories SET source_seqs = '{999}' WHERE kind = 'observation'",
        "DELETE FROM observation_groups",
        "UPDATE memory_sources SET seqs = '{999}'",
        "DELETE FROM memory_links",
    ],
    "superseded_by_something": [
        "DELETE FROM reflections",
        "UPDATE memories SET superseded_by = 'mem_0', superseded_at = now(), outdated_at = now()",
    ],
    "packs_as_frozen": [
        "UPDATE packs SET text = text || 'x'",
        "UPDATE sessions SET pack_version = 0",
        (
            "INSERT INTO former_packs (pool_id, session_id, version, tokens, reason, created_at)"
            " SELECT pool_id, session_id, version, 1, 'initial', now() FROM packs"
        ),
    ],
    "packs_show_nothing_forgotten": ["DELETE FROM memories"],
    "keywords_of_texts": [
        "DELETE FROM postings WHERE tier = 'm'",
        "DELETE FROM postings WHERE tier = 'p'",
        "DELETE FROM passages",
    ],
    "counters_of_tiers": [
        "UPDATE tier_sizes SET parts = parts + 1 WHERE tier = 'm'",
        "UPDATE tier_sizes SET terms = terms - 1 WHERE tier = 'p'",
        "DELETE FROM tier_sizes",
    ],
    "leases": [
        (
            "ALTER TABLE jobs DROP CONSTRAINT jobs_check;"
            " INSERT INTO jobs (pool_id, kind, subject, state, run_after, created_at)"
            " SELECT id, 'reflect_pool', 'x', 'running', now(), now() FROM pools"
        ),
        (
            "INSERT INTO embedding_attempts (pool_id, space, tier, number, not_before, urgency, dead, lease_token,"
            " lease_until) SELECT pool_id, 'test_3', 'm', number, now(), 1, true, gen_random_uuid(), now()"
            " FROM memories"
        ),
    ],
    "queue_of_texts": [
        (
            "INSERT INTO embedding_attempts (pool_id, space, tier, number, not_before, urgency)"
            " SELECT id, 'test_3', 'm', 0, now(), 1 FROM pools"
        ),
        (
            "INSERT INTO embedding_attempts (pool_id, space, tier, number, not_before, urgency)"
            " SELECT pool_id, 'unknown_3', 'm', number, now(), 1 FROM memories"
        ),
    ],
    "dimension_of_spaces": [
        "UPDATE embedding_spaces SET dimension = 4",
        "ALTER TABLE embeddings_test_3 RENAME TO embeddings_other",
    ],
    "vectors_of_texts": ["DELETE FROM memories", "DELETE FROM passages"],
    "texts_have_vectors": [
        "DELETE FROM embeddings_test_3 WHERE tier = 'm'",
        "DELETE FROM embeddings_test_3 WHERE tier = 'p'",
        "UPDATE embeddings_test_3 SET content_hash = ''",
    ],
}


@pytest.mark.parametrize(
    ("name", "breaking"), [(name, breaking) for name, all_of in _BREAKING.items() for breaking in all_of]
)
def test_each_invariant_is_broken_by_what_it_speaks_of(
    cluster: Cluster, filled: str, name: str, breaking: LiteralString
) -> None:
    with psycopg.connect(cluster.url(OWNER, filled)) as connection:
        # Without foreign keys and triggers, which would prevent it or repair it.
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute(breaking)
        connection.execute("SELECT set_config('esker.pool_id', id::text, true) FROM pools")
        connection.execute("SET LOCAL ROLE esker_app")
        assert connection.execute(for_space(SQL[name], "test_3"), {"space": "test_3"}).fetchall()
        connection.rollback()


def test_every_invariant_is_tested_and_has_words() -> None:
    assert _BREAKING.keys() == OF_POOLS.keys() | OF_SPACES.keys() == SQL.keys() - {"take_time", "spaces"}


def test_the_hash_of_a_pack_is_that_of_its_bytes_as_utf8(cluster: Cluster) -> None:
    text = "Brücke 日本 🏔"
    with psycopg.connect(cluster.url(OWNER)) as connection:
        row = connection.execute("SELECT encode(sha256(convert_to(%s, 'UTF8')), 'hex')", [text]).fetchone()
    assert row == (hashlib.sha256(text.encode()).hexdigest(),)
