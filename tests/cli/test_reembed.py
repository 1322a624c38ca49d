"""`esker reembed` as a command: what it prints, and that being killed costs nothing."""

import asyncio
import json
import sys
from typing import Any

import psycopg
import pytest

from esker.server.core.records import Principal
from esker.server.store import vector_indexes, vectors
from esker.server.usecases.embed import embed_due, make_space, pools_with_work, register
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.processes import ROOT, environment, esker
from tests.worker.test_reembed import model

ROWS = 300


@pytest.fixture
async def filled(parts: Parts, who: Principal) -> Parts:
    """A pool whose memories all have vectors of a model of 8 dimensions."""
    async with model(8, "old") as (_, old):
        space = await old.load()
        await make_space(parts, space)
        await register(parts, space, or_retired=False)
        await remember(parts, who, [Note(f"River number {n} runs.") for n in range(ROWS)])
        while await pools_with_work(parts, space):
            await embed_due(parts, old, space, who.pool_id)
    return parts


async def run(database_url: str, *arguments: str, code: int = 0) -> Any:
    """Run `esker reembed` and return what it printed as JSON."""
    done = await asyncio.to_thread(esker, "reembed", *arguments, "--json", ESKER_DATABASE_URL=database_url)
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


async def test_a_switch_can_be_rolled_back_and_repeated_without_embedding_again(
    filled: Parts, database_url: str
) -> None:
    [before] = await run(database_url, "--status")
    assert (before["pool"], before["state"], before["texts"], before["missing"]) == ("default", "active", ROWS, 0)
    async with embedding_server(24) as endpoint:
        active, retired = await run(database_url, "--to", f"openai:{endpoint.url}#new")
        assert (active["model"], active["dimension"]) == ("new", 24)
        assert (active["state"], active["texts"], active["missing"], active["failed"]) == ("active", ROWS, 0, 0)
        assert (retired["model"], retired["state"]) == ("old", "retired")
        [back] = await run(database_url, "--rollback")
        assert (back["model"], back["left"], back["queued"]) == ("old", "new", 0)
        await run(database_url, "--to", f"openai:{endpoint.url}#new")
        embedded = [text for texts in endpoint.asked for text in texts if text.startswith("River number")]
        assert len(embedded) == ROWS  # existing vectors are not made again
    [dropped] = await run(database_url, "--drop-retired")
    assert (dropped["model"], dropped["vectors"]) == ("old", ROWS)
    assert "no model to go back to" in (await run(database_url, "--rollback", code=1))["error"]


async def test_a_killed_run_continues_where_it_stopped(
    filled: Parts, database_url: str, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering, held = asyncio.Event(), asyncio.Event()
    held.set()
    answer = EmbeddingServer.answer

    async def answers_when_let(server: EmbeddingServer, request: Any) -> Any:
        if len(server.asked) > 6:
            answering.set()
            await held.wait()
        return await answer(server, request)

    monkeypatch.setattr(EmbeddingServer, "answer", answers_when_let)
    async with embedding_server(24) as endpoint:
        held.clear()
        to = f"openai:{endpoint.url}#new"
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "esker", "reembed", "--to", to, "--json"),
            cwd=ROOT,
            env=environment(ESKER_DATABASE_URL=database_url),
            stdout=asyncio.subprocess.DEVNULL,
        )
        await answering.wait()
        process.kill()
        await process.wait()
        held.set()
        with psycopg.connect(owner_url, autocommit=True) as connection:
            # As if enough time had passed for the leases of the killed process to expire.
            connection.execute("UPDATE embedding_attempts SET lease_until = now() WHERE lease_until IS NOT NULL")
        states = {space["state"]: space for space in await run(database_url, "--status")}
        assert states["active"]["model"] == "old"
        assert 0 < states["building"]["missing"] < ROWS
        active, _ = await run(database_url, "--to", to)
        assert (active["model"], active["missing"], active["waiting"]) == ("new", 0, 0)


async def test_an_impossible_switch_is_explained_and_changes_nothing(filled: Parts, database_url: str) -> None:
    async with embedding_server(4_001) as endpoint:
        refused = await run(database_url, "--to", f"openai:{endpoint.url}#huge", code=1)
    assert "4,001 dimensions" in refused["error"]
    magic = await run(database_url, "--to", "magic", code=1)
    assert (magic["error"].split()[0], "--to" in magic["hint"]) == ("--to", True)
    nowhere = await run(database_url, "--to", "sentence-transformers:/nowhere", code=1)
    assert "there is no such folder" in nowhere["error"]
    assert "no model" in (await run(database_url, code=1))["error"]  # ESKER_EMBEDDER is none here
    assert "use one" in (await run(database_url, "--status", "--rollback", code=2))["error"]
    [space] = await run(database_url, "--status")
    assert space["model"] == "old"


async def test_the_output_has_a_table_and_the_setting_to_change(filled: Parts, database_url: str) -> None:
    async with embedding_server(24) as endpoint:
        to = f"openai:{endpoint.url}#new"
        done = await asyncio.to_thread(esker, "reembed", "--to", to, ESKER_DATABASE_URL=database_url)
    assert done.returncode == 0, done.stderr
    assert "active" in done.stdout
    assert f"ESKER_EMBEDDER={to}" in done.stderr


async def test_doctor_names_an_index_that_misses_too_much(filled: Parts, who: Principal, database_url: str) -> None:
    async with filled.database.tenant(who.pool_id) as connection:
        [space] = await vectors.spaces(connection)
        assert await vector_indexes.create(connection, space.name, "memory")
        await vector_indexes.record_probe(connection, space.name, "memory", filled.clock(), 20, 0.95)
    done = await asyncio.to_thread(esker, "doctor", "--quick", "--json", ESKER_DATABASE_URL=database_url)
    [finding] = [each for each in json.loads(done.stdout) if "index" in each["what"]]
    assert finding["status"] == "warning"
    assert "finds 95.0%" in finding["what"]
    assert "DROP INDEX near_" in finding["hint"]
