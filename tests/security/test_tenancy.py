"""Pools never meet, and Postgres enforces it."""

import uuid
from typing import LiteralString

import psycopg
import pytest

from esker.server.background import beside, run_jobs
from esker.server.core.errors import EskerError, Misconfigured, NotFound
from esker.server.core.records import Filter, Principal, Space
from esker.server.db.database import Database
from esker.server.store import vectors
from esker.server.usecases.authenticate import SCOPES, create_key, create_pool, keys_required, revoke_key
from esker.server.usecases.expand import ExpandRequest, expand
from esker.server.usecases.forget import forget_text
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe
from esker.server.usecases.open_session import SessionRequest, get_session, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.reflect import reflect
from esker.server.usecases.remember import Note, get_memory, get_text, list_memories, remember

# Tables that belong to no pool: the tenants themselves, and the history of the schema.
SHARED = {"pools", "schema_migrations"}
SPACE = Space("tenancy_3", "m", "r", 3, "", "none")

TABLES: LiteralString = """
    SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity,
           ARRAY(SELECT pg_get_expr(p.polqual, p.polrelid) || ' / ' || pg_get_expr(p.polwithcheck, p.polrelid)
                 FROM pg_policy p JOIN pg_roles r ON r.oid = ANY (p.polroles)
                 WHERE p.polrelid = c.oid AND r.rolname = 'esker_app')
    FROM pg_class c
    WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
    ORDER BY 1
"""


@pytest.fixture
async def stranger(parts: Parts) -> Principal:
    """Somebody in another pool."""
    pool = await create_pool(parts, "strangers")
    return Principal(pool.id, pool.name, "stranger", frozenset(SCOPES))


async def test_every_pool_table_forces_the_one_policy(database: Database, owner_url: str) -> None:
    await vectors.create_space(database, SPACE)
    with psycopg.connect(owner_url) as connection:
        tables = connection.execute(TABLES).fetchall()
    guarded = {name: (on, forced, policies) for name, on, forced, policies in tables if name not in SHARED}
    assert "embeddings_tenancy_3" in guarded
    assert len(guarded) >= 13
    policy = "(pool_id = current_pool()) / (pool_id = current_pool())"
    assert {name: state for name, state in guarded.items() if state != (True, True, [policy])} == {}


async def test_every_key_of_a_pool_table_begins_with_the_pool(database: Database, owner_url: str) -> None:
    await vectors.create_space(database, SPACE)
    with psycopg.connect(owner_url) as connection:
        keys = connection.execute(
            """
            SELECT i.indexrelid::regclass::text, a.attname
            FROM pg_index i
            JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = 'public'::regnamespace
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
            WHERE i.indisunique OR i.indisexclusion
            """
        ).fetchall()
    others = {name for name, first in keys if first != "pool_id"}
    assert others == {"pools_pkey", "pools_name_key", "schema_migrations_pkey"}


async def test_the_role_that_serves_owns_nothing_and_cannot_bypass(database: Database) -> None:
    [role] = await database.ask(
        "SELECT current_user AS name, session_user AS login, rolsuper, rolbypassrls, rolcreaterole,"
        " EXISTS (SELECT FROM pg_class WHERE relowner = r.oid) AS owns FROM pg_roles r WHERE rolname = current_user"
    )
    assert role == {
        "name": "esker_app",
        "login": "esker_app",
        "rolsuper": False,
        "rolbypassrls": False,
        "rolcreaterole": False,
        "owns": False,
    }


async def test_a_connection_of_the_owner_takes_the_app_role(owner_url: str) -> None:
    async with Database(owner_url) as database:
        [role] = await database.ask("SELECT current_user AS name")
        assert role["name"] == "esker_app"
        with pytest.raises(Misconfigured, match="must be owner"):
            await database.ask("DROP TABLE memories")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE pools SET keys_required = false",
        "INSERT INTO pools (name, keys_required) VALUES ('x', false)",
        "DELETE FROM pools",
        "UPDATE api_keys SET scopes = ARRAY['admin']",
        "UPDATE api_keys SET key_hash = sha256('x')",
        "UPDATE api_keys SET expires_at = NULL",
        "DELETE FROM api_keys",
        "UPDATE audit SET actor = 'x'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "SELECT require_keys()",
    ],
)
async def test_the_role_that_serves_cannot_open_a_door_or_change_the_record(
    parts: Parts, pool_id: str, statement: LiteralString
) -> None:
    await create_key(parts, name="a", pool="default", scopes=["read"])
    with pytest.raises((Misconfigured, psycopg.errors.FeatureNotSupported), match=r"permission denied|not supported"):
        async with parts.database.tenant(pool_id) as connection:
            await connection.execute(statement)


async def test_a_revoked_key_stays_revoked_whatever_the_role_that_serves_tries(parts: Parts, pool_id: str) -> None:
    await create_key(parts, name="a", pool="default", scopes=["read"])
    await revoke_key(parts, key="a", pool="default")
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="stays revoked"):
        async with parts.database.tenant(pool_id) as connection:
            await connection.execute("UPDATE api_keys SET revoked_at = NULL")


async def test_any_key_that_is_stored_closes_the_server(parts: Parts, pool_id: str) -> None:
    assert not await keys_required(parts)
    async with parts.database.tenant(pool_id) as connection:
        await connection.execute(
            "INSERT INTO api_keys (pool_id, id, name, prefix, key_hash, scopes, created_at)"
            " VALUES (current_pool(), 'key_1', 'a', 'esk_', sha256('x'), ARRAY['read'], now())"
        )
    assert await keys_required(parts)


async def test_outside_a_pool_no_row_is_visible(parts: Parts, who: Principal, database: Database) -> None:
    await remember(parts, who, [Note("A secret of the pool.")])
    async with Database(database.url, connections=1) as single:
        assert await single.ask("SELECT * FROM memories") == []
        async with single.tenant(who.pool_id):
            pass
        # On a connection that carried a tenant the setting reads as an empty string, which is not a uuid.
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            await single.ask("SELECT * FROM memories")


async def test_a_tenant_cannot_write_into_another_pool(database: Database, who: Principal, stranger: Principal) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        async with database.tenant(stranger.pool_id) as connection:
            await connection.execute(
                "INSERT INTO sessions (pool_id, id, client, external_id, timezone, effective_context, created_at,"
                " begun_at) VALUES (%s, 'ses_x', 'api', 'x', 'UTC', 200000, now(), now())",
                (who.pool_id,),
            )


async def test_the_pool_of_a_connection_ends_with_its_transaction(database: Database, who: Principal) -> None:
    async with Database(database.url, connections=2) as small:
        async with small.tenant(who.pool_id):
            pass
        [row] = await small.ask("SELECT coalesce(current_setting('esker.pool_id', true), '') AS pool")
        assert row["pool"] == ""


async def test_ids_of_another_pool_are_not_found(parts: Parts, who: Principal, stranger: Principal) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "Never use floats for money.")])
    async with beside("jobs", lambda: run_jobs(parts)):
        await observe(parts, who.pool_id, session.id, wait=True)
    [note] = await remember(parts, who, [Note("The vault code is 7391.")])
    before = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=100)

    other = stranger.pool_id
    [window] = (await recall(parts, who.pool_id, RecallRequest("floats money", tier="passages"))).hits
    attempts = [
        get_text(parts, other, window.id),
        expand(parts, other, ExpandRequest(window.id)),
        forget_text(parts, stranger, window.id, with_messages=True),
        get_session(parts, other, session.id),
        get_pack(parts, other, session.id),
        get_memory(parts, other, note),
        expand(parts, other, ExpandRequest(note)),
        forget_text(parts, stranger, note, with_messages=True),
        observe(parts, other, session.id, wait=True),
        reflect(parts, other, session.id, wait=True),
        ingest(parts, other, session.id, [IncomingMessage("m2", "user", "hi")]),
        recall(parts, other, RecallRequest("vault code", session_id=session.id)),
        remember(parts, stranger, [Note("x", session_id=session.id)]),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound):
            await attempt
    assert (await recall(parts, other, RecallRequest("vault code 7391"))).hits == []
    assert (await recall(parts, other, RecallRequest("floats money"))).hits == []
    assert (await recall(parts, who.pool_id, RecallRequest("floats money", tier="passages"))).hits == [window]
    assert await list_memories(parts, other, Filter(parts.clock()), before=None, limit=100) == []
    assert await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=100) == before


async def test_pools_may_use_the_same_names(parts: Parts, who: Principal, stranger: Principal) -> None:
    mine = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    theirs = await open_session(parts, stranger.pool_id, SessionRequest("api", "s1"))
    assert mine.id != theirs.id
    [one] = await remember(parts, who, [Note("Same words.", external_id="n1")])
    [other] = await remember(parts, stranger, [Note("Same words.", external_id="n1")])
    assert one != other


@pytest.mark.parametrize("name", ["x; DROP TABLE pools", "UPPER", "", "a" * 49, 'a"b'])
async def test_the_name_of_a_space_cannot_inject_sql(database: Database, name: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        await vectors.create_space(database, Space(name, "m", "r", 3, "", "none"))


@pytest.mark.parametrize("dimension", [0, -1, 4001])
async def test_a_dimension_that_no_table_can_hold_is_refused(database: Database, dimension: int) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        await vectors.create_space(database, Space("odd", "m", "r", dimension, "", "none"))


async def test_an_unknown_pool_has_no_rows(parts: Parts) -> None:
    with pytest.raises(EskerError):
        await get_memory(parts, str(uuid.uuid4()), "mem_x")
