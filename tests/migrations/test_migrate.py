"""Migrations: forward only, in order, and once, also with concurrent runs."""

import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.db import migrate as module
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.migrate import Migration, migrate, migrations, pending
from esker.server.db.programs import BINARIES
from tests.support.databases import cloned

FOLDER = Path(__file__).parents[2] / "migrations"
# Existing databases have applied these; add each new one when it is released.
DONE = {
    1: "cb20a556735763dbb4f78d9a699f9342be1fde8a76de6d6260ca3f0fb295e3d0",
    2: "4dc5614e4df0e8859451b4e61b4a00f2b2be859973f8ed65c0d718d1c38e8a59",
    3: "21e6780e0723afd7d284ebf2019453b09b7b906649a8b70ad60dde464003f3c9",
    4: "8860216190b3ddcdb50eba3c6dc9d96a5610a99eb8b8d1ed97a2b172643cb989",
    5: "c8e725f694fb0415ba5c0006496f4bc164271a70e25915a52cd2e35fbc0b814c",
    6: "e7763f530968366556e5056dbd1170892b12994741ad03cfdb22875e7d2ff000",
    7: "3f15d50f2abd4854e29d300b3b69ceda35855e7759cd67db6f724a472c09e2df",
    8: "10008c9ac7403c417f390e4ae1ee5430eac7b12525fcb60ee7eb1af6ba9a3ced",
    9: "87583987deb9a178253017e80bd753c87d49249863a544317d9f075c46d85573",
    10: "aaf8667f993900ca58ca41196a9f779fe28543dc1345911d37ff020bb6972fd8",
    11: "50ff48db55c4cd9c5cacd33a90bd4c3df30e073557bbd5d277ce5a54ac2c5681",
    12: "0ca2bed6cbc4b30c72739fcd3645fc2a92cc00197f7a94256a8e3c4ca158265b",
    13: "cda94e9a6dc7627f72616ddcd120f81628683dacdccb5ec1e0c2ffd94c404d83",
    14: "5f681d9cba61b2c164c8296cef4a3c7971c94ed2f520f99a3dbef579ac3b3785",
    15: "f6577219e8dc3c35571570bfce6c147ef52d742c471ca91d851898bf46d41feb",
    16: "0af85e1f75a7cdd1e4894e5a98ccbe69e101bea2358425c720e7a2e3a82ca538",
    17: "998db280209e2703941d362b0d26d6168f476eef60baabe750363da422e1be2f",
    18: "9b5cf80e115fee965a5f6b8781288a3c88fc973d8425c46ca12a42dab492e539",
    19: "37a3053d0f8dda70a8515870f8045693a1b32e1c82540a59971491c1aba62510",
    20: "83e1e36f81e58dbc0b4b2c815b7e297f1ab6703ca0eb55fc81479c4034ed3110",
    21: "acf2860e62dfd110e1c8f7b5854cfaeb6df3f836aa53b6a04020e47177952706",
    22: "ebbf1d8e04d7a6ba370660f5db3383ccb2e4bdc4a24f9f8a91fcb38be9503db8",
    23: "504d76cb0ecff2c9413f98a7a0b6ec07e6c1f6203495108bec5c487d97fb3c96",
    24: "83abe37b8f81e99481ba732fb80268f983a38785893df7a6e0cf4b41655ececc",
    25: "799759de0319cf0c152105e058c8729b70665378f7eb13f216e3c283c6d230f3",
    26: "5dc7fd617b9bab949f17322e6475e59585b2c4792e64482157562802860debd1",
    27: "7baaac9ee6e1f90457948e7a6949b483a745a2b7bb305e1106503a4e0bbbdf90",
    28: "097d524a75efd18531f2d39c861bc5386a7aeca64f740e2bad53896e2aaf6218",
}


@pytest.fixture
def empty_url(cluster: Cluster) -> Generator[str]:
    """An empty database, as its owner."""
    with cloned(cluster, template="template1") as name:
        yield cluster.url(OWNER, name)


def test_an_empty_database_becomes_current_and_stays_current(empty_url: str) -> None:
    assert pending(empty_url) == migrations()
    assert migrate(empty_url) == migrations()
    assert pending(empty_url) == []
    assert migrate(empty_url) == []


def test_released_migrations_are_never_edited() -> None:
    assert {migration.version: migration.checksum for migration in migrations()} == DONE


# Checksums of migrations 3, 5, 10, 11, 20, 21 and 22 before they were edited; some databases have them.
FORMER_CHECKSUMS = {
    3: "8be57d4a72677c0301959f33574457d6c1432f47fe9ca058a231718e1301ec05",
    5: "ef85c3b82f026cc87fbc16652e126dc7c978b97291ff61cfc885ec53119f041c",
    10: "a84d34b35c764857d14ab2a13e11fbd156bad9f6f49b7a2822cb23a6164f7348",
    11: "16711c0a0bcd5fb3c33556b58b477cba1c8fc0648e71844813e7fb10b67cd876",
    20: "b98c203d4f1bb52354df075e809f64677b9707dff61f1d0fb032d9549e116a58",
    21: "57daa3816376186a31c8e7dc3d9ce6dfe7fbdc25761afee92a31e104cfc95dd1",
    22: "b93681e809f8b636c6763ead454ced18241d8ab3f449c184ed4002bbcb25873c",
}


def test_a_former_wording_of_a_migration_is_accepted(empty_url: str) -> None:
    migrate(empty_url)
    with psycopg.connect(empty_url, autocommit=True) as connection:
        for version, checksum in FORMER_CHECKSUMS.items():
            connection.execute("UPDATE schema_migrations SET checksum = %s WHERE version = %s", (checksum, version))
    assert pending(empty_url) == []
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("UPDATE schema_migrations SET checksum = %s WHERE version = 4", (FORMER_CHECKSUMS[3],))
    with pytest.raises(Misconfigured, match="0004 was changed"):
        pending(empty_url)


def test_the_index_of_the_first_wording_of_migration_21_becomes_that_of_today(empty_url: str) -> None:
    definition = "SELECT pg_get_indexdef('memories_live'::regclass)"
    with psycopg.connect(empty_url, autocommit=True) as connection:
        migrate(empty_url)
        today = connection.execute(definition).fetchone()
        connection.execute("DROP INDEX memories_live")
        connection.execute(
            "CREATE INDEX memories_live ON memories (pool_id, kind, project, said_at) WHERE superseded_at IS NULL"
        )
        connection.execute("DELETE FROM schema_migrations WHERE version = 28")
        migrate(empty_url)
        assert connection.execute(definition).fetchone() == today


def test_psql_can_apply_every_file(cluster: Cluster, empty_url: str) -> None:
    for file in sorted(FOLDER.glob("*.sql")):
        subprocess.run(
            [BINARIES / "psql", "-v", "ON_ERROR_STOP=1", "-q", "-d", empty_url, "-f", file],
            check=True,
            capture_output=True,
        )
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT name FROM pools").fetchall() == [("default",)]


def test_two_migrators_at_once_apply_everything_once(empty_url: str) -> None:
    applied: list[Migration] = []
    threads = [threading.Thread(target=lambda: applied.extend(migrate(empty_url))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert applied == migrations()


def test_a_migration_edited_after_it_was_applied_is_refused(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(empty_url)
    changed = [Migration(m.version, m.name, m.text + "\n-- changed") for m in migrations()]
    monkeypatch.setattr(module, "migrations", lambda: changed)
    with pytest.raises(Misconfigured, match="was changed"):
        migrate(empty_url)


def test_a_database_of_a_newer_version_is_refused(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute("INSERT INTO schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')")
    with pytest.raises(Misconfigured, match="9999"):
        migrate(empty_url)


def test_a_migration_that_fails_leaves_nothing_behind(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Migration(2, "bad", "CREATE TABLE half_made (a int); SELECT 1/0;")
    monkeypatch.setattr(module, "migrations", lambda: [*_shipped, bad])
    with pytest.raises(Misconfigured, match="0002 failed and was rolled back"):
        migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT to_regclass('half_made'), to_regclass('memories')").fetchone() == (
            None,
            "memories",
        )


_shipped = migrations()


def test_an_unreachable_database_is_explained() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        migrate("postgresql://nobody@127.0.0.1:1/nothing")


@pytest.mark.parametrize("url", ["post gres://me:hunter22@host/db", "host=h password='hunter22", "hunter22"])
def test_an_invalid_connection_string_is_refused_without_repeating_it(url: str) -> None:
    for use in (migrate, Database):
        with pytest.raises(Misconfigured, match="ESKER_DATABASE_URL") as refused:
            use(url)
        assert "hunter22" not in f"{refused.value} {refused.value.hint}"


def test_versions_have_no_gaps_and_no_duplicates() -> None:
    assert [m.version for m in migrations()] == list(range(1, len(migrations()) + 1))
    assert len(list(FOLDER.glob("*.sql"))) == len(migrations())


def test_a_login_that_is_not_a_superuser_can_migrate_and_serve(cluster: Cluster, empty_url: str) -> None:
    """A managed Postgres gives no superuser; extensions are made by its operator."""
    name = empty_url.split("/")[-1].split("?")[0]
    with psycopg.connect(empty_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE EXTENSION btree_gist")
        connection.execute(
            "DO $$ BEGIN CREATE ROLE plain LOGIN CREATEROLE; EXCEPTION WHEN duplicate_object THEN END $$"
        )
        connection.execute("GRANT esker_app TO plain WITH ADMIN TRUE, SET TRUE")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO plain")  # type: ignore[arg-type]
        connection.execute("GRANT ALL ON SCHEMA public TO plain WITH GRANT OPTION")
    migrate(cluster.url("plain", name))
    with psycopg.connect(cluster.url("plain", name), autocommit=True) as connection:
        connection.execute("SET ROLE esker_app")
        connection.execute("SELECT create_embedding_space('plain_3', 3)")
        assert connection.execute("SELECT count(*) FROM pools_with_jobs(ARRAY ['observe'], now())").fetchone() == (0,)
        pool = connection.execute("SELECT id FROM pools").fetchone()
        assert pool is not None
        with connection.transaction():
            connection.execute("SELECT set_config('esker.pool_id', %s, true)", (str(pool[0]),))
            connection.execute(
                "INSERT INTO api_keys (pool_id, id, name, prefix, key_hash, scopes, created_at)"
                " VALUES (%s, 'k', 'k', 'k', sha256('k'), '{read}', now())",
                (pool[0],),
            )
        # The functions that look into all pools see rows although the owner is subject to row-level security.
        found = connection.execute("SELECT key_id FROM find_api_key(sha256('k'), now())").fetchone()
        assert found == ("k",)
        # Outside a pool there is nothing to see, and after a transaction in one not even an answer.
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            connection.execute("SELECT count(*) FROM api_keys")


def test_data_of_the_previous_version_survives_the_upgrade(empty_url: str) -> None:
    spine, lose_nothing = migrations()[:2]
    with psycopg.connect(empty_url, autocommit=True) as connection:
        for statements in (spine.text, BEFORE, lose_nothing.text):
            connection.execute(statements.encode())
        jobs = connection.execute("SELECT kind, subject, session_id, state FROM jobs ORDER BY kind").fetchall()
        reflection = connection.execute("SELECT state, level, project, dropped_ids FROM reflections").fetchall()
        links = connection.execute("SELECT source_id, memory_id FROM memory_links").fetchall()
        coverage = connection.execute("SELECT * FROM coverage()").fetchall()
    assert jobs == [("observe", "ses_1", "ses_1", "ready"), ("reflect", "ses_1", "ses_1", "dead")]
    assert reflection == [("committed", 0, "shop", ["mem_3"])]
    assert links == [("mem_2", "mem_1")]
    assert coverage == [(2, 1, 0, 0.5)]


def test_the_upgrade_gives_sessions_their_start_and_end_times(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "migrations", lambda: _shipped[:8])
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute(_BEFORE_TIMES)
    monkeypatch.setattr(module, "migrations", lambda: _shipped)
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        times = connection.execute(
            "SELECT id, begun_at::date::text, last_sent_at::date::text FROM sessions ORDER BY begun_at DESC, id DESC"
        ).fetchall()
    assert times == [
        ("ses_empty", "2026-03-02", None),
        ("ses_ahead", "2026-03-01", "2026-03-04"),
        ("ses_old", "2025-02-01", "2025-02-03"),
    ]


def test_keys_that_could_forget_by_writing_can_still_forget(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "migrations", lambda: _shipped[:9])
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute(
            "INSERT INTO api_keys (pool_id, id, name, prefix, key_hash, scopes, created_at)"
            " SELECT p.id, k.id, k.id, 'esk_', sha256(k.id::bytea), k.scopes, now()"
            " FROM pools p, (VALUES ('reads', ARRAY['read']), ('writes', ARRAY['read', 'write'])) AS k (id, scopes)"
        )
    monkeypatch.setattr(module, "migrations", lambda: _shipped)
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        scopes = connection.execute("SELECT id, scopes FROM api_keys ORDER BY id").fetchall()
        required = connection.execute("SELECT keys_required FROM pools").fetchall()
    assert scopes == [("reads", ["read"]), ("writes", ["read", "write", "forget"])]
    # The older server had set this itself.
    assert required == [(False,)]


# One session of the year before, one of a clock that runs ahead, one of which nothing was sent.
_BEFORE_TIMES = """
    INSERT INTO sessions (pool_id, id, client, external_id, timezone, effective_context, last_seq, total_tokens,
                          unobserved_tokens, created_at)
    SELECT p.id, s.id, 'api', s.id, 'UTC', 200000, s.messages, s.messages, s.messages, s.opened::timestamptz
    FROM pools p, (VALUES ('ses_old', 2, '2026-03-01Z'), ('ses_ahead', 1, '2026-03-01Z'),
                          ('ses_empty', 0, '2026-03-02Z')) AS s (id, messages, opened);
    INSERT INTO messages (pool_id, session_id, seq, external_id, role, trust, sent_at, received_at, content,
                          content_hash, text, tokens, shown_tokens)
    SELECT p.id, m.session, m.seq, m.seq::text, 'user', 'user', m.sent::timestamptz, '2026-03-04Z', '[]', 'h', 'x', 1, 1
    FROM pools p, (VALUES ('ses_old', 1, '2025-02-03Z'), ('ses_old', 2, '2025-02-01Z'),
                          ('ses_ahead', 1, '2199-01-01Z')) AS m (session, seq, sent);
"""


# A session with an observed and a raw message, a reflection that left something out, a waiting and a dead job.
BEFORE = """
    INSERT INTO sessions (pool_id, id, client, external_id, project, timezone, effective_context, last_seq,
                          observed_seq, total_tokens, unobserved_tokens, created_at)
    SELECT id, 'ses_1', 'api', 's1', 'shop', 'UTC', 200000, 2, 1, 9, 4, now() FROM pools;
    INSERT INTO observation_groups (pool_id, id, session_id, first_seq, last_seq, first_external_id, last_external_id,
                                    observer, input_tokens, output_tokens, created_at)
    SELECT id, 'grp_1', 'ses_1', 1, 1, 'm1', 'm1', 'extractive', 0, 0, now() FROM pools;
    INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, session_id,
                          group_id, source_seqs, source_ids, tokens, terms, said_at, last_used_at, superseded_by,
                          superseded_at, outdated_at, reflection_id, created_at)
    SELECT p.id, m.id, m.kind, 'low', 'fact', 'user', m.id, '', 'extractive', 'ses_1', m.grp, m.seqs::bigint[],
           m.sources::text[], 1, 1, now(), now(), m.by, m.gone, m.gone, m.ref, now()
    FROM pools p CROSS JOIN (VALUES
        ('mem_1', 'reflection', NULL, '{}', '{mem_2}', NULL, NULL::timestamptz, 'ref_1'),
        ('mem_2', 'observation', 'grp_1', '{1}', '{}', 'mem_1', now(), NULL),
        ('mem_3', 'observation', 'grp_1', '{1}', '{}', 'ref_1', now(), NULL)
    ) AS m (id, kind, grp, seqs, sources, by, gone, ref);
    INSERT INTO reflections (pool_id, id, scope, session_id, reflector, input_ids, output_ids, tokens_before,
                             tokens_after, input_tokens, output_tokens, created_at)
    SELECT id, 'ref_1', 'session', 'ses_1', 'extractive', '{mem_2,mem_3}', '{mem_1}', 2, 1, 0, 0, now() FROM pools;
    INSERT INTO jobs (pool_id, kind, session_id, state, run_after, last_error, error_kind, created_at)
    SELECT id, kind, 'ses_1', state, now(), error, error, now()
    FROM pools, (VALUES ('observe', 'ready', NULL), ('reflect', 'dead', 'x')) AS j (kind, state, error);
"""


def test_the_upgrade_keeps_every_row_findable(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """0003 gives what is searched a number: postings, vectors and the queue must still be those of their rows."""
    monkeypatch.setattr(module, "migrations", lambda: _shipped[:2])
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute(_BEFORE_NUMBERS)
    monkeypatch.setattr(module, "migrations", lambda: _shipped)
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        postings = connection.execute(
            "SELECT m.id, p.term, p.frequency, p.length FROM postings p JOIN memories m USING (pool_id, number)"
            " WHERE p.tier = 'm' ORDER BY m.id, p.term"
        ).fetchall()
        vectors = connection.execute(
            "SELECT m.id, v.part, v.embedding::text FROM embeddings_old_3 v JOIN memories m USING (pool_id, number)"
        ).fetchall()
        waiting = connection.execute(
            "SELECT m.id, a.tier, a.urgency FROM embedding_attempts a JOIN memories m USING (pool_id, number)"
        ).fetchall()
        sizes = connection.execute("SELECT sum(parts), sum(terms) FROM tier_sizes WHERE tier = 'm'").fetchall()
        numbers = connection.execute("SELECT id FROM memories ORDER BY number").fetchall()
    assert postings == [("mem_a", "elb", 1, 3), ("mem_a", "rhine", 2, 3), ("mem_b", "rhine", 1, 1)]
    assert vectors == [("mem_a", 0, "[1,2,3]")]
    assert waiting == [("mem_b", "m", 2)]
    assert sizes == [(2, 4)]
    assert numbers == [("mem_a",), ("mem_b",)]


def test_the_upgrade_makes_one_project_of_all_spellings(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "migrations", lambda: _shipped[:14])
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        connection.execute(_BEFORE_NAMES)
    monkeypatch.setattr(module, "migrations", lambda: _shipped)
    migrate(empty_url)
    with psycopg.connect(empty_url) as connection:
        sessions = connection.execute("SELECT project FROM sessions ORDER BY id").fetchall()
        memories = connection.execute("SELECT project FROM memories ORDER BY id").fetchall()
    assert sessions == [("acme/shop",), ("acme/shop",), ("c:/work/shop",), (r"a\b",), (None,)]
    assert memories == [("acme/shop",)]


_BEFORE_NAMES = r"""
    INSERT INTO sessions (pool_id, id, client, external_id, project, timezone, effective_context, created_at, begun_at)
    SELECT p.id, s.id, 'api', s.id, s.project, 'UTC', 200000, now(), now()
    FROM pools p, (VALUES ('1', 'Acme/Shop'), ('2', 'acme/shop'), ('3', 'C:\Work\Shop'), ('4', 'a\B'), ('5', NULL))
        AS s (id, project);
    INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, project, tokens,
                          parts, terms, said_at, last_used_at, created_at)
    SELECT id, 'mem_a', 'note', 'medium', 'fact', 'user', 'x', 'h', 'a', 'ACME/Shop', 1, 1, 1, now(), now(), now()
    FROM pools;
"""


_BEFORE_NUMBERS = """
    SELECT create_embedding_space('old_3', 3);
    INSERT INTO embedding_spaces (pool_id, name, model, revision, dimension, prefix, source, state, created_at)
    SELECT id, 'old_3', 'm', 'r', 3, '', 'openai:http://x#m', 'active', now() FROM pools;
    INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, tokens, terms,
                          said_at, last_used_at, created_at)
    SELECT p.id, new.id, 'note', 'medium', 'fact', 'user', 'x', 'h', 'a', 1, new.terms, now(), now(), now()
    FROM pools p, (VALUES ('mem_b', 1), ('mem_a', 3)) AS new (id, terms);
    INSERT INTO postings (pool_id, term, memory_id, frequency, length)
    SELECT p.id, new.* FROM pools p, (VALUES ('rhine', 'mem_a', 2, 3), ('elb', 'mem_a', 1, 3), ('rhine', 'mem_b', 1, 1))
        AS new (term, memory_id, frequency, length);
    INSERT INTO embeddings_old_3 (pool_id, memory_id, content_hash, embedding, created_at)
    SELECT p.id, new.id, 'h', '[1,2,3]', now() FROM pools p, (VALUES ('mem_a'), ('mem_gone')) AS new (id);
    INSERT INTO embedding_attempts (pool_id, space, memory_id, not_before, urgency)
    SELECT id, 'old_3', 'mem_b', now(), 2 FROM pools;
"""
