"""Whoever forgets, embeds, goes back to a model or cuts passages waits for the others in turn, and never in a circle."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress

import pytest

from server.core.errors import Conflict, InvalidInput, NotFound
from server.core.records import Filter, Principal
from server.db.database import Database
from server.providers.remote_embedder import RemoteEmbedder
from server.store import memories, vectors
from server.usecases.embed import embed_due, keep_up, make_space, register
from server.usecases.forget import forget
from server.usecases.ingest import IncomingMessage, ingest
from server.usecases.inspect import retry
from server.usecases.open_session import SessionRequest, open_session
from server.usecases.parts import Parts
from server.usecases.reembed import roll_back
from server.usecases.remember import Note, list_memories, remember
from server.usecases.switch_passages import switch_passages
from tests.support.databases import WAITING
from tests.support.embedding_server import embedding_server

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
    """Have a session say a few passages."""
    session = await open_session(parts, who.pool_id, SessionRequest("api", f"s{number}"))
    said = [IncomingMessage(f"{when} {n}", "user", f"The harbour {number} closed {when} {n}. " * 30) for n in range(8)]
    await ingest(parts, who.pool_id, session.id, said)


async def deadlocks(database: Database) -> int:
    """Return how many deadlocks there were in the test's database, as far as transactions that ended have told."""
    [stats] = await database.ask("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(stats["deadlocks"])


async def test_going_back_waits_for_a_row_that_is_being_forgotten_and_not_the_other_way_round(
    parts: Parts, who: Principal, database: Database, embedders: list[RemoteEmbedder]
) -> None:
    rows = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=3)
    ids = [row.id for row in rows]
    async with asyncio.TaskGroup() as tasks:
        async with database.tenant(who.pool_id) as connection:
            await memories.lock_to_delete(connection, ids)  # as who forgets them
            going_back = tasks.create_task(roll_back(parts))
            await until_somebody_waits(database, going_back)
            assert len(await memories.delete(connection, ids)) == len(ids)
    [went] = going_back.result()
    assert went.model == "model-8"


async def until_somebody_waits(database: Database, working: asyncio.Task[object]) -> None:
    """Return as soon as a transaction waits for a lock."""
    while not (await database.ask(WAITING))[0]["waiting"]:
        assert not working.done()


async def test_nobody_waits_in_a_circle(
    parts: Parts, who: Principal, database: Database, embedders: list[RemoteEmbedder]
) -> None:
    dice = random.Random(1)
    writing = True

    async def write_and_forget() -> None:
        for _ in range(12):
            ids = await remember(parts, who, [Note(f"River number {dice.random()} runs.") for _ in range(6)])
            await asyncio.gather(*(forget(parts, who, i, with_messages=False) for i in ids))

    async def tell_and_forget() -> None:
        for turn in range(12):
            await told(parts, who, dice.randrange(SESSIONS), f"on day {turn}")
            async with parts.database.tenant(who.pool_id) as connection:
                found = await (await connection.execute("SELECT id FROM passages")).fetchall()
            for (passage_id,) in dice.sample(found, min(3, len(found))):
                with suppress(NotFound):
                    await forget(parts, who, passage_id, with_messages=True)

    async def again_and_again(do: Callable[[], Awaitable[object]]) -> None:
        while writing:
            with suppress(NotFound, Conflict, InvalidInput):
                await do()

    async def go_back() -> None:
        await roll_back(parts)

    async def embed(embedder: RemoteEmbedder) -> None:
        await embed_due(parts, embedder, await embedder.load(), who.pool_id)

    async def make_up() -> None:
        for embedder in embedders:
            await keep_up(parts, await embedder.load())

    async def switch() -> None:
        for on in (False, True):
            await switch_passages(parts, "default", on=on, told=lambda done, total: None)

    busy = [go_back, make_up, lambda: retry(parts), switch, *(lambda e=e: embed(e) for e in embedders)]
    async with asyncio.TaskGroup() as tasks:
        ends = [tasks.create_task(ending()) for ending in (write_and_forget, write_and_forget, tell_and_forget)]
        for do in busy:
            tasks.create_task(again_and_again(do))
        await asyncio.gather(*ends)
        writing = False
    assert await deadlocks(database) == 0
