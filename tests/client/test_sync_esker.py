"""The synchronous client, which is written from the asynchronous one, and what both can do with a whole pool."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

import esker as package
from esker import Conflict, Esker, Message, NotFound, SyncEsker, Unavailable
from esker.server.client.history import History
from esker.server.client.message import HistoryItem
from esker.server.client.sync.history import SyncHistory
from tests.support.processes import ROOT, environment


@pytest.fixture
async def esker(client: httpx2.AsyncClient) -> AsyncGenerator[Esker]:
    """A client of a server with an empty pool."""
    async with Esker(str(client.base_url)) as connected:
        yield connected


def test_the_synchronous_client_is_current() -> None:
    command = [sys.executable, str(ROOT / ".ci" / "write-sync-client"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_every_name_of_the_package_can_be_imported() -> None:
    assert [name for name in package.__all__ if getattr(package, name, None) is None] == []


def agent(url: str) -> None:
    """Use a server as a program without asyncio does."""
    with SyncEsker(url) as esker:
        row = esker.remember("The ledger lives in Postgres.", project="shop")
        assert [hit.id for hit in esker.recall("ledger", project="shop").hits] == [row.id]
        right = esker.correct(row.id, "The ledger lives in SQLite.")
        with pytest.raises(Conflict):
            esker.correct(row.id, "Too late.")
        assert [one.id for one in esker.memories(project="shop", include_superseded=True)] == [right.id, row.id]
        session = esker.session("program", "s1", project="shop")
        assert session.add(Message("m1", "user", "We decided that invoices are numbered by year.")).accepted == 1
        assert session.observe().memories == 1
        assert [message.text for message in session.messages()] == ["We decided that invoices are numbered by year."]
        assert "invoices" in session.pack()
        assert session.context("Be brief.").messages
        assert esker.forget(right.id).memories >= 1
    with SyncEsker("http://127.0.0.1:1") as nowhere, pytest.raises(Unavailable, match="No Esker answers"):
        nowhere.status()


async def test_a_program_without_asyncio_has_the_same_client(client: httpx2.AsyncClient) -> None:
    await asyncio.to_thread(agent, str(client.base_url))


async def test_the_snippet_of_the_page_runs_without_asyncio(client: httpx2.AsyncClient) -> None:
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8").partition("## Without asyncio")[2]
    program = page.partition("```python\n")[2].partition("```")[0]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        cwd=ROOT,
        env=environment(PYTHONPATH=str(ROOT), ESKER_URL=str(client.base_url)),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0
    assert printed.decode().startswith("just now The ledger lives in Postgres.\nThere is no memory 'mem_none'")


async def test_a_pool_is_read_as_a_whole(esker: Esker) -> None:
    ids = await esker.remember_all(["The gate is green.", "The fence is red."], project="garden")
    assert (await esker.get(ids[0])).id == ids[0]
    with pytest.raises(NotFound):
        await esker.get("mem_none")
    await esker.session("my-agent", "s1", project="garden")
    assert [session.external_id async for session in esker.sessions(project="garden")] == ["s1"]
    assert not [session async for session in esker.sessions(project="yard")]
    assert [(found.project, found.memories) for found in await esker.projects()] == [("garden", 2)]
    assert [row.content async for row in esker.memories(kinds=["note"], project="garden")]
    types = [line["type"] async for line in esker.export()]
    assert (types[0], types.count("memory"), types[-1]) == ("header", 2, "end")
    assert (await esker.request("GET", "/v1/spend", query={"days": 1}))["days"] == []


async def test_words_are_forgotten_after_a_plan(esker: Esker) -> None:
    await esker.remember_all(["The gate is green.", "The fence is red."])
    assert [row.content for row in (await esker.plan_forgetting("gate")).memories] == ["The gate is green."]
    assert (await esker.forget_matching("gate")).memories == 1
    assert [row.content async for row in esker.memories()] == ["The fence is red."]


def item(number: int) -> HistoryItem:
    """An item of a framework: a call of a tool beside some words."""
    call = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {"at": number}}
    return HistoryItem(
        "assistant", [{"type": "text", "text": f"Step {number}."}, call], {"number": number, "x": [None]}
    )


async def test_a_history_gives_items_back_as_they_were(esker: Esker) -> None:
    session = await esker.session("framework", "s1")
    history = History(session)
    await history.add([item(1), item(2), item(3)])
    assert await history.items() == [item(number).item for number in (1, 2, 3)]
    assert await history.remove(-1) == item(3).item
    assert await history.remove(0) == item(1).item
    assert await history.remove(1) is None
    assert await history.items() == [item(2).item]
    await history.clear()
    await history.add([HistoryItem("user", [], {"empty": True})])
    assert await history.items() == [{"empty": True}]
    stored = [message async for message in session.messages()]
    assert [message.text for message in stored if message.role == "system"] == ["", "", ""], "no observer reads them"
    sent: list[dict[str, Any]] = (await session.context()).messages
    assert "item" not in str([block for message in sent for block in message["content"]])


async def test_a_history_without_asyncio_is_the_same(client: httpx2.AsyncClient) -> None:
    def use() -> list[dict[str, Any]]:
        with SyncEsker(str(client.base_url)) as esker:
            history = SyncHistory(esker.session("framework", "s1"))
            history.add([item(1), item(2)])
            history.remove(-1)
            return history.items()

    assert await asyncio.to_thread(use) == [item(1).item]
