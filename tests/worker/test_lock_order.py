"""Forgetting, embedding, going back to a model and cutting passages wait for each other, but never deadlock."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

import pytest

from esker.server.background import beside, run_jobs
from esker.server.core.conversation.records import NewMessage
from esker.server.core.errors import Conflict, InvalidInput, NotFound
from esker.server.core.records import Filter, Principal
from esker.server.db import database as databases
from esker.server.db.database import Database
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.store import memories, messages, sessions, vectors
from esker.server.store.messages import MessageToStore
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.embed import embed_due, keep_up, make_space, register
from esker.server.usecases.export import export
from esker.server.usecases.forget import forget_text
from esker.server.usecases.import_pool import import_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.inspect import retry
from esker.server.usecases.observe import observe
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.reembed import roll_back
from esker.server.usecases.remember import Note, list_memories, remember
from esker.server.usecases.switch_passages import switch_passages
from tests.support.databases import until_one_waits
from tests.support.embedding_server import embedding_server
from tests.support.waiting import PATIENCE

SESSIONS = 4


@pytest.fixture
async def embedders(parts: Parts, who: Principal) -> AsyncGenerator[list[RemoteEmbedder]]:
    """The models of a pool with notes and passages: one that it used before, and the one that it uses."""
    await remember(parts, who, [Note(f"River number {n} runs.") for n in range(60)])
    for number in range(SESSIONS):
        await told(parts, who, number, "at first")
    async with AsyncExitStack() as stack:
        made: list[RemoteEmbedder] = []
        for dimension in (8, 16):
            endpoint = await stack.enter_async_context(embedding_server(dimension))
            endpoint.refuses = {"number 7 ", "number 31 ", "number 45 "}
            embedder = RemoteEmbedder(endpoint.url, f"model-{dimension}", None, f"openai:{endpoint.url}#{dimension}")
            stack.push_async_callback(embedder.close)
            space = await embedder.load()
            await make_space(parts, space)
            await register(parts, space, or_retired=False)
            made.append(embedder)
        async with parts.database.tenant(who.pool_id) as connection:
            await vectors.activate(connection, (await made[1].load()).name, parts.clock())
        yield made


async def told(parts: Parts, who: Principal, number: int, when: str) -> None:
    """Send a few passages in a session."""
    session = await open_session(parts, who.pool_id, SessionRequest("api", f"s{number}"))
    said = [IncomingMessage(f"{when} {n}", "user", f"The harbour {number} closed {when} {n}. " * 30) for n in range(8)]
    await ingest(parts, who.pool_id, session.id, said)


async def test_going_back_waits_for_a_row_that_is_being_forgotten_but_not_vice_versa(
    parts: Parts, who: Principal, database: Database, embedders: list[RemoteEmbedder]
) -> None:
    rows = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=3)
    ids = [row.id for row in rows]
    async with asyncio.TaskGroup() as tasks, database.tenant(who.pool_id) as connection:
        await memories.lock_to_delete(connection, ids)  # as who forgets them
        going_back = tasks.create_task(roll_back(parts))
        await until_one_waits(database, going_back)
        assert len(await memories.delete(connection, ids)) == len(ids)
    [went] = going_back.result()
    assert went.model == "model-8"


async def test_forgetting_a_passage_locks_all_its_sessions_in_order(
    parts: Parts, who: Principal, database: Database
) -> None:
    ids: list[str] = []
    async with beside("jobs", lambda: run_jobs(parts)):
        for name in ("first", "second"):
            ids.append((await open_session(parts, who.pool_id, SessionRequest("api", name, project="shop"))).id)
            await ingest(parts, who.pool_id, ids[-1], [IncomingMessage("m", "user", "Never use floats for money.")])
            await observe(parts, who.pool_id, ids[-1], wait=True)
    [row] = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=10)
    assert [source.session_id for source in row.sources] == ids
    ids.sort()
    async with database.tenant(who.pool_id) as connection:
        cursor = await connection.execute("SELECT id FROM passages WHERE session_id = %s", [ids[1]])
        [[passage_id]] = await cursor.fetchall()
    async with asyncio.TaskGroup() as tasks, database.tenant(who.pool_id) as connection:
        await sessions.lock(connection, ids[0])
        forgetting = tasks.create_task(forget_text(parts, who, passage_id, with_messages=False))
        await until_one_waits(database, forgetting)
        await sessions.lock(connection, ids[1])
    assert forgetting.result().memories == 1


async def test_an_import_waits_for_a_writer_of_its_session_and_sees_the_new_message(
    parts: Parts, who: Principal, database: Database
) -> None:
    await told(parts, who, 1, "at first")
    lines = [line async for line in export(parts, who.pool_id, who.pool_name)]
    other = replace(who, pool_id=(await create_pool(parts, "other")).id, pool_name="other")
    await import_pool(parts, other, b"".join(lines[:4]))
    session_id, now = json.loads(lines[1])["id"], parts.clock()
    own = MessageToStore(NewMessage("own", "user", [], now), b"", {}, "user", "", tokens=1, shown_tokens=0)
    async with asyncio.TaskGroup() as tasks, database.tenant(other.pool_id) as connection:
        session = await sessions.lock(connection, session_id)
        importing = tasks.create_task(_refused(import_pool(parts, other, b"".join(lines))))
        await until_one_waits(database, importing)
        await messages.append(connection, session_id, session.last_seq, [own], now)
        await sessions.extend(connection, session_id, [own], now)
    assert importing.result().startswith("Line 5: message 3 ")


async def _refused(working: Awaitable[object]) -> str:
    with pytest.raises(Conflict) as refused:
        await working
    return str(refused.value)


@dataclass
class Crowd:
    """All operations that lock rows, for as long as notes are written."""

    parts: Parts
    who: Principal
    embedders: list[RemoteEmbedder]
    dice: random.Random
    rounds: int
    writing: bool = True

    async def write_and_forget(self) -> None:
        """Write notes, and forget them all at once."""
        for _ in range(self.rounds):
            notes = [Note(f"River number {self.dice.random()} runs.") for _ in range(6)]
            ids = await remember(self.parts, self.who, notes)
            await asyncio.gather(*(forget_text(self.parts, self.who, i, with_messages=False) for i in ids))

    async def tell_and_forget(self) -> None:
        """Send more messages in sessions, and forget them."""
        for turn in range(self.rounds):
            await told(self.parts, self.who, self.dice.randrange(SESSIONS), f"on day {turn}")
            async with self.parts.database.tenant(self.who.pool_id) as connection:
                found = await (await connection.execute("SELECT id FROM passages")).fetchall()
            for (passage_id,) in self.dice.sample(found, min(3, len(found))):
                with suppress(NotFound):
                    await forget_text(self.parts, self.who, passage_id, with_messages=True)

    async def go_back(self) -> None:
        """Go back to the other model."""
        with suppress(InvalidInput):
            await roll_back(self.parts)

    async def embed(self) -> None:
        """Embed the rows that are due."""
        for embedder in self.embedders:
            await embed_due(self.parts, embedder, await embedder.load(), self.who.pool_id)

    async def look_after(self) -> None:
        """Queue missed rows, delete vectors without a row, and retry dead rows."""
        for embedder in self.embedders:
            await keep_up(self.parts, await embedder.load())
        await retry(self.parts)

    async def switch(self) -> None:
        """Switch passages off and on."""
        for on in (False, True):
            await switch_passages(self.parts, self.who.pool_name, on=on, on_progress=lambda done, total: None)

    async def bring_back(self) -> None:
        """Import a recent export of the pool, including rows that were forgotten since."""
        lines = [line async for line in export(self.parts, self.who.pool_id, self.who.pool_name)]
        with suppress(Conflict):  # a session went on meanwhile, or a note was written again
            await import_pool(self.parts, self.who, b"".join(lines))

    async def again_and_again(self, do: Callable[[], Awaitable[None]]) -> None:
        """Repeat an operation for as long as notes are written."""
        while self.writing:
            await do()


@pytest.mark.parametrize("rounds", [1, pytest.param(24, marks=pytest.mark.slow)])
async def test_concurrent_operations_never_deadlock(
    parts: Parts,
    who: Principal,
    database: Database,
    embedders: list[RemoteEmbedder],
    rounds: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine a lock is held for long; Postgres notices a deadlock all the same.
    monkeypatch.setitem(databases._OWN, "options", f"{databases._OPTIONS} -c lock_timeout=0 -c statement_timeout=0")
    unlimited = Database(database.url, answer_seconds=PATIENCE, wait_seconds=PATIENCE)
    crowd = Crowd(replace(parts, database=unlimited), who, embedders, random.Random(1), rounds)  # noqa: S311 - always the same
    async with unlimited, asyncio.TaskGroup() as tasks:
        for do in (crowd.go_back, crowd.embed, crowd.embed, crowd.look_after, crowd.switch, crowd.bring_back):
            tasks.create_task(crowd.again_and_again(do))
        await asyncio.gather(crowd.write_and_forget(), crowd.write_and_forget(), crowd.tell_and_forget())
        crowd.writing = False
    [stats] = await database.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    assert stats["deadlocks"] == 0
