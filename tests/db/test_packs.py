"""Packs in a database: the order of the whole pool, and no row that is forgotten while a pack is frozen."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import psycopg
import pytest

from esker.server.core.conversation.records import StoredSession
from esker.server.core.pack.walks import best, next_pages, walks_for
from esker.server.core.ranking import pack_score
from esker.server.core.records import Principal
from esker.server.db.database import Connection, Database
from esker.server.db.pipeline import fetch
from esker.server.store import memories, sessions
from esker.server.usecases.expire import mark_expired
from esker.server.usecases.forget import forget_text
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import freeze_pack, get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.clock import START
from tests.support.databases import until_one_waits
from tests.support.filling import fill_pool


async def walked(connection: Connection, session: StoredSession, tokens: int) -> list[str]:
    """Return the ids of the best rows, by the walks."""
    walks = walks_for(session.project)
    while pages := next_pages(walks, tokens):
        walks = await fetch(
            connection,
            memories.walked(walks, pages, project=session.project, without_session=session.id, now=START),
        )
    return [row.id for row in best(walks, tokens)]


def sorted_ids(owner_url: str, pool_id: str, session: StoredSession) -> list[str]:
    """Return the ids of all rows that a pack may show, in the order of their scores."""
    statement = """
        SELECT id, kind, priority, last_used_at FROM memories
        WHERE pool_id = %(pool)s AND kind <> 'manual' AND superseded_at IS NULL
          AND (valid_until IS NULL OR valid_until > %(now)s)
          AND (kind = 'note' OR session_id IS DISTINCT FROM %(session)s)
          AND (%(project)s::text IS NULL OR project IS NULL OR project = %(project)s)
    """
    values = {"pool": pool_id, "now": START, "session": session.id, "project": session.project}
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute(statement, values).fetchall()
    return [i for i, *_ in sorted(rows, key=lambda row: (-pack_score(row[1], row[2], row[3]), row[0]))]


@pytest.mark.parametrize("project", [None, "large", "small", "unknown"])
async def test_walks_give_the_order_of_a_full_sort(
    parts: Parts, database: Database, who: Principal, owner_url: str, project: str | None
) -> None:
    session_id = (await open_session(parts, who.pool_id, SessionRequest("api", "s", project=project))).id
    fill_pool(owner_url, who.pool_id, 4_000, now=START, session_id=session_id)
    async with database.tenant(who.pool_id) as connection:
        session = await sessions.get(connection, session_id)
        for tokens in (200, 3_000, 15_000, 10**7):
            found = await walked(connection, session, tokens)
            assert found == sorted_ids(owner_url, who.pool_id, session)[: len(found)]
    assert len(found) > 500


async def test_marking_expired_rows_does_not_change_a_pack(
    parts: Parts, database: Database, who: Principal, owner_url: str
) -> None:
    fill_pool(owner_url, who.pool_id, 2_000, now=START)
    before = await get_pack(parts, who.pool_id, (await open_session(parts, who.pool_id, SessionRequest("api", "1"))).id)
    expired = "SELECT count(*) FROM memories WHERE valid_until <= %s AND superseded_at IS NULL"
    with psycopg.connect(owner_url) as connection:
        [count] = connection.execute(expired, [parts.clock()]).fetchone() or [0]
    assert await mark_expired(parts) == count > 50
    assert await mark_expired(parts) == 0
    after = await get_pack(parts, who.pool_id, (await open_session(parts, who.pool_id, SessionRequest("api", "2"))).id)
    assert after.text == before.text


@asynccontextmanager
async def freezing(parts: Parts, pool_id: str, session_id: str) -> AsyncGenerator[Connection]:
    """Freeze a pack and commit it at the end of the block."""
    async with parts.database.tenant(pool_id) as connection:
        session = await sessions.lock(connection, session_id)
        await freeze_pack(parts, connection, session, "initial", parts.clock())
        yield connection


async def test_forgetting_a_row_during_the_freezing_of_a_pack_removes_it_from_the_pack(
    parts: Parts, database: Database, who: Principal
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s"))
    [secret] = await remember(parts, who, [Note("The river is the Rhine.")])
    async with freezing(parts, who.pool_id, session.id):
        forgetting = asyncio.create_task(forget_text(parts, who, secret, with_messages=False))
        await until_one_waits(database)
    assert (await forgetting).packs == 1
    assert "Rhine" not in (await get_pack(parts, who.pool_id, session.id)).text


async def test_a_pack_that_is_frozen_during_forgetting_does_not_show_the_forgotten_row(
    parts: Parts, database: Database, who: Principal, owner_url: str
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s"))
    [secret] = await remember(parts, who, [Note("The river is the Rhine.")])
    # Forgetting has reached its last step and cannot commit: the table that it writes is locked.
    with psycopg.connect(owner_url) as connection:
        connection.execute("LOCK TABLE audit IN EXCLUSIVE MODE")
        forgetting = asyncio.create_task(forget_text(parts, who, secret, with_messages=False))
        await until_one_waits(database)
        frozen = asyncio.create_task(get_pack(parts, who.pool_id, session.id))
        await asyncio.wait([frozen], timeout=0)
        while (await database.ask("SELECT count(*) AS n FROM pg_locks WHERE NOT granted"))[0]["n"] < 2:
            assert not frozen.done()
    assert (await forgetting).memories == 1
    assert "Rhine" not in (await frozen).text
