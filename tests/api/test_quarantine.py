"""Quarantine takes everything from a source out of recall and packs in one step, and gives it back."""

import asyncio
import json
from typing import Any

import httpx2
import pytest

from esker.server.core.facts.forgetting import ForgetRequest, Selection
from esker.server.core.records import Principal
from esker.server.db.database import Connection, Database
from esker.server.usecases import quarantine
from esker.server.usecases.forget import forget
from esker.server.usecases.forgotten_places import with_new_names
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.quarantine import (
    begin_quarantine,
    extend_all_quarantines,
    lift_quarantine,
    list_quarantines,
)
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, remember
from tests.api.test_hygiene import POSTGRES, REDIS, ScriptedServer
from tests.support.api import contents, opened, recalled
from tests.support.databases import until_one_waits
from tests.support.model_server import ModelServer


@pytest.fixture
def memory(scripted_client: httpx2.AsyncClient, model: ModelServer) -> ScriptedServer:
    """A server with the scripted model."""
    return ScriptedServer(scripted_client, model)


async def begun(http: httpx2.AsyncClient, **limits: Any) -> dict[str, Any]:
    """Begin a quarantine and return what it did."""
    answer = await http.post("/v1/quarantines", json=limits)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def state(memory: ScriptedServer, session: str) -> dict[str, Any]:
    """Return all that a quarantine may change, as clients see it."""
    client = memory.client
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()
    return {
        "rows": (await client.get("/v1/memories?include_superseded=true")).json(),
        "pack": (pack["text"], pack["memory_ids"]),
        "recall": contents(await recalled(client, "Where are the sessions kept?", include_superseded=True)),
        "passages": contents(await recalled(client, "sessions in Redis or Postgres", tier="passages")),
        "briefing": (await client.get("/v1/briefing?project=shop")).json()["text"],
    }


async def poisoned(memory: ScriptedServer) -> tuple[str, str]:
    """Keep a fact in a session, and have another session replace it; return both."""
    good = await opened(memory.client, "good", project="shop")
    await memory.hears(good, REDIS)
    bad = await opened(memory.client, "bad", project="shop")
    [row] = await memory.rows()
    await memory.client.get(f"/v1/sessions/{bad}/pack")
    report = await memory.hears(bad, POSTGRES, replaces=row["id"])
    assert report["replaced"] == 1
    return good, bad


async def test_a_session_in_quarantine_is_out_and_what_it_replaced_is_live_again(memory: ScriptedServer) -> None:
    good, bad = await poisoned(memory)
    before = await state(memory, good)
    assert await memory.live() == [POSTGRES]
    done = await begun(memory.client, session_id=bad)
    assert (done["memories"], done["revived"], done["passages"], done["sessions"]) == (1, 1, 1, 1)
    during = await state(memory, good)
    assert await memory.live() == [REDIS]
    assert (during["recall"], "Postgres" in str(during)) == ([REDIS], False)
    lifted = (await memory.client.delete(f"/v1/quarantines/{done['id']}")).json()
    assert (lifted["memories"], lifted["passages"]) == (2, 1)
    assert await state(memory, good) == before
    assert (await memory.client.delete(f"/v1/quarantines/{done['id']}")).status_code == 409
    [listed] = (await memory.client.get("/v1/quarantines")).json()["quarantines"]
    assert (listed["id"], listed["session_id"], listed["lifted_at"] is None) == (done["id"], bad, False)


@pytest.mark.parametrize(
    ("limits", "hidden"),
    [
        ({"client": "codex"}, ["codex"]),
        ({"project": "codex-project"}, ["codex"]),
        ({"source": "assistant"}, ["api", "codex"]),
        ({"source": "test"}, ["api", "codex"]),
        ({"source": "external"}, []),
        ({"client": "api", "source": "assistant"}, ["api"]),
    ],
)
async def test_limits_say_what_is_in_quarantine(
    parts: Parts, who: Principal, limits: dict[str, Any], hidden: list[str]
) -> None:
    for client in ("api", "codex"):
        session = await open_session(parts, who.pool_id, SessionRequest(client, "s1", project=f"{client}-project"))
        await remember(parts, who, [Note(f"The tent of {client} is blue.", session_id=session.id)])
    done = await begin_quarantine(parts, who, Selection(**limits))
    found = await recall(parts, who.pool_id, RecallRequest("Which tent is blue?"))
    shown = sorted(hit.content.split()[3] for hit in found.hits)
    assert shown == sorted({"api", "codex"} - {*hidden})
    await lift_quarantine(parts, who, done.id)
    found = await recall(parts, who.pool_id, RecallRequest("Which tent is blue?"))
    assert len(found.hits) == 2


async def test_additions_within_the_limits_are_in_quarantine_too(parts: Parts, who: Principal) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("codex", "s1"))
    await begin_quarantine(parts, who, Selection(client="codex"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "The tent is blue.")])
    await remember(parts, who, [Note("The tent is blue.", session_id=session.id)])
    await extend_all_quarantines(parts)
    assert (await recall(parts, who.pool_id, RecallRequest("Is the tent blue?"))).hits == []


async def test_a_memory_that_is_written_or_imported_within_the_limits_is_never_shown(memory: ScriptedServer) -> None:
    _, bad = await poisoned(memory)
    file = (await memory.client.get("/v1/export")).text
    await begun(memory.client, session_id=bad)
    await memory.client.post("/v1/memories", json={"content": "The tent is blue.", "session_id": bad})
    [forged] = [line for line in map(json.loads, file.splitlines()) if line.get("content") == POSTGRES]
    forged |= {"id": "mem_forged", "content": "The boat is red.", "superseded_by": None}
    answer = await memory.client.post("/v1/import", content=f"{file.splitlines()[0]}\n{json.dumps(forged)}")
    assert (answer.status_code, answer.json()["new"]["memory"]) == (200, 1)
    assert await memory.live() == [REDIS]


async def test_lifting_one_of_two_quarantines_leaves_the_other(parts: Parts, who: Principal) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("codex", "s1"))
    await remember(parts, who, [Note("The tent is blue.", session_id=session.id)])
    one = await begin_quarantine(parts, who, Selection(client="codex"))
    other = await begin_quarantine(parts, who, Selection(session_id=session.id))
    await lift_quarantine(parts, who, one.id)
    assert (await recall(parts, who.pool_id, RecallRequest("Is the tent blue?"))).hits == []
    await lift_quarantine(parts, who, other.id)
    assert len((await recall(parts, who.pool_id, RecallRequest("Is the tent blue?"))).hits) == 1


async def test_a_note_that_was_written_again_meanwhile_stays_the_newer_one(parts: Parts, who: Principal) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("codex", "s1"))
    await remember(parts, who, [Note("The tent is blue.", session_id=session.id, external_id="tent")])
    done = await begin_quarantine(parts, who, Selection(client="codex"))
    [newer] = await remember(parts, who, [Note("The tent is red.", external_id="tent")])
    await lift_quarantine(parts, who, done.id)
    found = await recall(parts, who.pool_id, RecallRequest("What colour is the tent?"))
    assert [hit.id for hit in found.hits] == [newer]


async def test_a_row_whose_newer_version_was_forgotten_in_quarantine_is_live_after_it(memory: ScriptedServer) -> None:
    await poisoned(memory)
    [newer] = [row for row in await memory.rows() if row["content"] == POSTGRES]
    done = await begun(memory.client, project="shop")
    assert await memory.live() == []
    await memory.client.delete(f"/v1/memories/{newer['id']}?echoes=false")
    await memory.client.delete(f"/v1/quarantines/{done['id']}")
    assert await memory.live() == [REDIS]


async def test_an_export_has_the_rows_as_they_were_before_quarantines(memory: ScriptedServer) -> None:
    _, bad = await poisoned(memory)

    async def memories() -> list[dict[str, Any]]:
        lines = map(json.loads, (await memory.client.get("/v1/export")).content.splitlines())
        return [line for line in lines if line["type"] == "memory"]

    before = await memories()
    assert [row["superseded_by"] is None for row in before] == [False, True]
    first = await begun(memory.client, session_id=bad)
    assert await memories() == before
    second = await begun(memory.client, project="shop")
    assert await memories() == before
    for one in (first, second):
        await memory.client.delete(f"/v1/quarantines/{one['id']}")
        assert await memories() == before
    assert await memory.live() == [POSTGRES]


@pytest.mark.parametrize(("body", "status"), [({}, 422), ({"session_id": "ses_x"}, 404), ({"words": ["x"]}, 422)])
async def test_a_quarantine_needs_limits_that_exist(
    client: httpx2.AsyncClient, body: dict[str, Any], status: int
) -> None:
    assert (await client.post("/v1/quarantines", json=body)).status_code == status
    assert (await client.delete("/v1/quarantines/qua_x")).status_code == 404


async def test_a_name_that_is_forgotten_as_a_quarantine_begins_does_not_come_back(
    parts: Parts, who: Principal, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await open_session(parts, who.pool_id, SessionRequest("api", "s1", project="xanadu"))
    forgetting: list[asyncio.Task[object]] = []

    async def and_forget(connection: Connection, limits: Selection) -> Selection:
        found = await with_new_names(connection, limits)
        request = ForgetRequest(Selection(words=["xanadu"]))
        forgetting.append(asyncio.create_task(forget(parts, who, request)))
        await until_one_waits(database, forgetting[0])
        return found

    monkeypatch.setattr(quarantine, "with_new_names", and_forget)
    await begin_quarantine(parts, who, Selection(project="xanadu"))
    await forgetting[0]
    [begun] = await list_quarantines(parts, who.pool_id)
    assert "xanadu" not in (begun.project or "")
