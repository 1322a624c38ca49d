"""A forgotten fact is gone from every column, and another fact about the same thing stays."""

import asyncio
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.core.facts.forgetting import ForgetRequest, Selection
from esker.server.core.records import Principal
from esker.server.providers.text_processes import LONG, TextProcesses
from esker.server.store import audit, sessions
from esker.server.usecases import find_phrases
from esker.server.usecases import ingest as ingesting
from esker.server.usecases.authenticate import SCOPES, create_pool
from esker.server.usecases.export import export
from esker.server.usecases.forget import forget
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.api.test_hygiene import ScriptedServer
from tests.support.api import contents, observed, opened, recalled, said, tool_text
from tests.support.databases import contents as contents_of
from tests.support.databases import dump
from tests.support.model_server import ModelServer, ScriptedAnswer
from tests.support.reflecting import fact, session_reflected
from tests.support.reflecting import row as reflected_row

VAULT = "Our vault is called Xanadu."
ECHO = "Understood, Xanadu it is."


@pytest.fixture
def memory(scripted_client: httpx2.AsyncClient, model: ModelServer) -> ScriptedServer:
    """A server with the scripted model."""
    return ScriptedServer(scripted_client, model)


async def told(memory: ScriptedServer) -> tuple[str, str]:
    """Tell the name of the vault, which the model notes in all it writes; return the session and the row."""
    session = await opened(memory.client, project="bank")
    seq = await memory.told(session, VAULT)
    await memory.told(session, ECHO, role="assistant")
    other = await memory.told(session, "Never use floats for money.")
    memory.model.say(
        {
            "facts": [
                {"text": VAULT, "sources": [seq], "priority": "high", "category": "fact"},
                {"text": "Never use floats for money.", "sources": [other], "priority": "high", "category": "fact"},
            ],
            "current_task": "Guarding Xanadu",
            "suggested_continuation": "Ask whether Xanadu is locked.",
            "thread_title": "The vault Xanadu",
        }
    )
    await observed(memory.client, session)
    [row] = [row for row in await memory.rows() if "Xanadu" in row["content"]]
    return session, row["id"]


async def forgotten(http: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    """Forget, and return the receipt or the plan."""
    answer = await http.post("/v1/forget", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_forgotten_word_is_shown_nowhere_even_if_the_messages_stay(memory: ScriptedServer) -> None:
    session, row_id = await told(memory)
    receipt = (await memory.client.delete(f"/v1/memories/{row_id}")).json()
    assert (receipt["memories"], receipt["messages"]) == (1, 0)
    assert receipt["notes"] == 3
    assert receipt["left"] == {"messages (observer text)": 2, "messages (content)": 2}
    shown = [
        (await memory.client.get(path)).text
        for path in (
            "/v1/briefing?project=bank",
            f"/v1/sessions/{session}",
            f"/v1/sessions/{session}/pack",
            "/v1/memories",
        )
    ]
    shown.append(await tool_text(memory.client, "recall_memory", query="What is the vault called, Xanadu?"))
    shown.append(
        (await memory.client.post("/v1/recall", json={"query": "vault called Xanadu"})).json()["hits"].__repr__()
    )
    assert [text for text in shown if "Guarding" in text or "vault is called Xanadu" in text or ECHO in text] == []
    assert await memory.live() == ["Never use floats for money."]


async def test_a_fact_forgotten_with_its_messages_takes_its_echoes_along(
    memory: ScriptedServer, owner_url: str
) -> None:
    _, row_id = await told(memory)
    receipt = (await memory.client.delete(f"/v1/memories/{row_id}?messages=true")).json()
    assert (receipt["messages"], receipt["left"]) == (2, {})
    left = dump(owner_url).lower()
    assert "xanadu" not in left
    assert "floats" in left


async def test_echoes_can_be_kept_and_the_receipt_says_where_the_word_is(memory: ScriptedServer) -> None:
    _, row_id = await told(memory)
    receipt = await forgotten(memory.client, ids=[row_id], messages=True, echoes=False)
    assert receipt["messages"] == 1
    assert receipt["left"]["messages (observer text)"] == 1


async def test_a_dry_run_shows_what_would_go_and_changes_nothing(memory: ScriptedServer, owner_url: str) -> None:
    session, row_id = await told(memory)
    before = (await memory.client.get(f"/v1/sessions/{session}/messages")).json()
    plan = await forgotten(memory.client, ids=[row_id], messages=True, dry_run=True)
    assert plan["names"] == ["Xanadu"]
    assert plan["memories"] == [{"id": row_id, "kind": "observation", "content": VAULT, "why": "asked"}]
    assert [(one["seq"], one["why"], one["text"], one["blanked"]) for one in plan["messages"]] == [
        (1, "said", VAULT, True),
        (2, "echo", ECHO, True),
    ]
    assert plan["notes"] == ["Ask whether Xanadu is locked.", "Guarding Xanadu", "The vault Xanadu"]
    assert (await memory.client.get(f"/v1/sessions/{session}/messages")).json() == before
    assert len(await memory.rows()) == 2


async def test_a_plan_shows_the_beginning_of_a_long_message_and_that_it_goes_on(client: httpx2.AsyncClient) -> None:
    session = await opened(client, "s1")
    texts = [f"Xanadu {'x' * length}" for length in (193, 194)]
    for number, text in enumerate(texts):
        await said(client, session, {"external_id": f"m{number}", "role": "user", "content": text})
    plan = await forgotten(client, words=["Xanadu"], dry_run=True)
    assert [message["text"] for message in plan["messages"]] == [texts[0], f"{texts[0]}…"]


async def test_a_plan_says_of_the_sources_of_a_reflection_that_they_are_its_sources(memory: ScriptedServer) -> None:
    session = await opened(memory.client, "s2", project="shop")
    for text in ("The weather of today was discussed at some length.", "The coffee of today was discussed as well."):
        await memory.hears(session, text, priority="low", category="fact")
    ids = [row["id"] for row in await memory.rows()]
    memory.model.say(ScriptedAnswer(json.dumps({"rows": [reflected_row("Small talk.", *ids)]})))
    await session_reflected(memory.client, session)
    [reflection] = [row["id"] for row in await memory.rows() if row["content"] == "Small talk."]
    for asked, expected in (
        (reflection, {reflection: "asked", ids[0]: "source", ids[1]: "source"}),
        (ids[0], {ids[0]: "asked", reflection: "drawn"}),
        (await passage_of(memory.client, "weather today"), {ids[0]: "drawn", ids[1]: "drawn", reflection: "drawn"}),
    ):
        plan = await forgotten(memory.client, ids=[asked], dry_run=True)
        assert {row["id"]: row["why"] for row in plan["memories"]} == expected


async def test_words_are_forgotten_in_every_text_of_the_pool(memory: ScriptedServer, owner_url: str) -> None:
    await told(memory)
    client = memory.client
    elsewhere = await opened(client, "s2", project="shop")
    call = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "x.py", "text": "open('Xanadu')"}}
    await said(client, elsewhere, {"external_id": "a1", "role": "assistant", "content": [call]})
    await client.post("/v1/memories", json={"content": "The XANADU hinge needs oil.", "tags": ["door"]})
    kept = await client.post("/v1/memories", json={"content": "The cellar is dry."})
    await client.get(f"/v1/sessions/{elsewhere}/pack")
    receipt = await forgotten(client, words=["xanadu"])
    assert (receipt["memories"], receipt["messages"], receipt["left"]) == (2, 3, {})
    assert "xanadu" not in dump(owner_url).lower()
    assert [row["id"] for row in await memory.rows() if "cellar" in row["content"]] == [kept.json()["id"]]


async def test_a_project_that_is_called_so_gets_another_name_and_stays_one_project(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await opened(client, project="xanadu-web", cwd="/home/me/xanadu-web")
    await said(client, session, {"external_id": "m1", "role": "user", "content": "Never use floats for money."})
    await observed(client, session)
    await client.post("/v1/memories", json={"content": "The cellar is dry.", "project": "xanadu-web"})
    receipt = await forgotten(client, words=["Xanadu"])
    assert (receipt["memories"], receipt["left"]) == (0, {})
    assert "xanadu" not in dump(owner_url).lower()
    rows = (await client.get("/v1/memories")).json()["memories"]
    [project] = {row["project"] for row in rows}
    assert (len(rows), project.startswith("forgotten-")) == (2, True)
    assert (await client.get(f"/v1/sessions/{session}")).json()["project"] == project


async def test_ids_of_clients_that_say_a_forgotten_word_get_other_names_and_come_back_as_these(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    message = {"external_id": "turn-xanadu-1", "role": "user", "content": "Never use floats for money."}
    event = {"kind": "session_end", "dedupe_key": "end of Xanadu"}
    session = await opened(client, "chat about Xanadu")
    await said(client, session, message)
    await client.post(f"/v1/sessions/{session}/events", json=event)
    await observed(client, session)
    exported = (await client.get("/v1/export")).text
    plan = await forgotten(client, words=["Xanadu"], dry_run=True)
    assert plan["renamed"] == ["chat about Xanadu", "end of Xanadu", "turn-xanadu-1"]
    receipt = await forgotten(client, words=["Xanadu"])
    assert (receipt["left"], "xanadu" in dump(owner_url).lower()) == ({}, False)
    assert receipt["renamed"] == len(plan["renamed"])
    assert await opened(client, "chat about Xanadu") == session
    [found] = (await client.get("/v1/sessions", params={"external_id": "chat about Xanadu"})).json()["sessions"]
    assert found["id"] == session
    assert (await said(client, session, message))["accepted"] == 0
    assert (await client.post(f"/v1/sessions/{session}/events", json=event)).json()["repeated"]
    imported = await client.post("/v1/import", content=exported)
    assert (imported.status_code, set(imported.json()["new"].values())) == (200, {0}), imported.text
    assert "xanadu" not in dump(owner_url).lower()


async def test_a_client_whose_name_says_a_forgotten_word_gets_another_name_and_comes_back_as_that(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    sent = {"client": "xanadu-bot", "external_id": "chat"}
    session = (await client.post("/v1/sessions", json=sent)).json()["id"]
    known = (await client.post("/v1/sessions", json=sent | {"client": "codex"})).json()["id"]
    await said(client, session, {"external_id": "a", "role": "user", "content": "Never use floats for money."})
    exported = (await client.get("/v1/export")).text
    assert (await forgotten(client, words=["Xanadu", "Codex"], dry_run=True))["renamed"] == ["xanadu-bot"]
    assert (await forgotten(client, words=["Xanadu", "Codex"]))["left"] == {"sessions (client)": 1}
    again = (await client.post("/v1/sessions", json=sent)).json()
    assert (again["id"], again["client"].startswith("forgotten-")) == (session, True)
    assert (await client.post("/v1/sessions", json=sent | {"client": "codex"})).json()["id"] == known
    imported = await client.post("/v1/import", content=exported)
    assert (imported.status_code, set(imported.json()["new"].values())) == (200, {0}), imported.text
    assert "xanadu" not in dump(owner_url).lower()


async def test_quarantines_and_later_requests_name_a_forgotten_project_or_client_by_its_other_name(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    sent = {"client": "xanadu-bot", "external_id": "chat", "project": "xanadu-shop"}
    session = (await client.post("/v1/sessions", json=sent)).json()["id"]
    await said(client, session, {"external_id": "a", "role": "user", "content": "Never use floats for money."})
    limits = [{"project": "xanadu-shop"}, {"client": "xanadu-bot"}, {"source": "xanadu-bot"}, {"source": "external"}]
    begun = [(await client.post("/v1/quarantines", json=each)).json()["id"] for each in limits]
    receipt = await forgotten(client, words=["Xanadu", "external"])
    assert (receipt["renamed"], receipt["left"]) == (2, {"quarantines (source)": 1})
    assert "xanadu" not in dump(owner_url).lower()
    covering = {one["id"]: one for one in (await client.get("/v1/quarantines")).json()["quarantines"]}
    stored = (await client.get(f"/v1/sessions/{session}")).json()
    assert covering[begun[0]]["project"] == stored["project"]
    assert (covering[begun[1]]["client"], covering[begun[3]]["source"]) == (stored["client"], "external")
    again = (await client.post("/v1/quarantines", json={"client": "xanadu-bot"})).json()["id"]
    [found] = [one for one in (await client.get("/v1/quarantines")).json()["quarantines"] if one["id"] == again]
    assert found["client"] == stored["client"]
    plan = await forgotten(client, project="xanadu-shop", client="xanadu-bot", dry_run=True)
    assert [one["text"] for one in plan["messages"]] == ["Never use floats for money."]
    assert "xanadu" not in dump(owner_url).lower()


async def test_ids_and_places_forgotten_during_an_observation_do_not_come_back(
    memory: ScriptedServer, owner_url: str
) -> None:
    session = await opened(memory.client, "chat about Xanadu", project="xanadu-shop", cwd="/home/ann/xanadu")
    message = {"external_id": "turn-xanadu-1", "role": "user", "content": "Never use floats for money."}
    await said(memory.client, session, message)
    release = asyncio.Event()
    memory.model.arrived.clear()
    facts = {"facts": [fact("Never use floats for money.", sources=[1])]}
    memory.model.say(ScriptedAnswer(json.dumps(facts), wait_for=release))
    observing = asyncio.create_task(observed(memory.client, session))
    await memory.model.arrived.wait()
    assert (await forgotten(memory.client, words=["Xanadu"]))["left"] == {}
    release.set()
    assert (await observing)["memories"] == 1
    assert "xanadu" not in dump(owner_url).lower()


@pytest.mark.parametrize("path", ["/v1/sessions/{}/reflect", "/v1/reflect"])
@pytest.mark.parametrize("is_better", [True, False])
async def test_a_project_forgotten_during_a_reflection_does_not_come_back(
    memory: ScriptedServer, owner_url: str, path: str, is_better: bool
) -> None:
    session = await opened(memory.client, project="xanadu-shop")
    for text in ("The weather of today was discussed at some length.", "The coffee of today was discussed as well."):
        await memory.hears(session, text, priority="low", category="fact")
    ids = [row["id"] for row in await memory.rows()]
    release = asyncio.Event()
    memory.model.arrived.clear()
    text = "Small talk." if is_better else "The small talk in Xanadu took 99 minutes."
    memory.model.say(ScriptedAnswer(json.dumps({"rows": [reflected_row(text, *ids)]}), wait_for=release))
    options = {} if "sessions" in path else {"project": "xanadu-shop", "min_age_days": 0}
    reflecting = asyncio.create_task(memory.client.post(f"{path.format(session)}?wait=true", json=options))
    await memory.model.arrived.wait()
    assert (await forgotten(memory.client, words=["Xanadu"]))["left"] == {}
    release.set()
    report = (await reflecting).json()
    assert (report["superseded"], bool(report["rejected"])) == ((2, False) if is_better else (0, True))
    assert "xanadu" not in dump(owner_url).lower()


async def test_a_client_that_goes_on_naming_a_forgotten_project_writes_and_reads_under_its_other_name(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    place = {"project": "xanadu-shop"}
    await client.post("/v1/memories", json={"content": "The cellar is dry.", **place})
    await forgotten(client, words=["Xanadu"])
    [other] = {row["project"] for row in (await client.get("/v1/memories")).json()["memories"]}
    written = (
        await client.post("/v1/memories", json={"content": "The roof is green.", "priority": "high", **place})
    ).json()
    assert written["project"] == other
    assert len((await client.get("/v1/memories", params=place)).json()["memories"]) == 2
    assert (await recalled(client, "roof", **place))["hits"][0]["content"] == "The roof is green."
    assert "The roof is green." in (await client.get("/v1/briefing", params=place)).text
    assert "xanadu" not in dump(owner_url).lower()


async def test_ids_that_were_forgotten_and_allowed_can_be_forgotten_again(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    message = {"external_id": "turn-xanadu-1", "role": "user", "content": "Never use floats for money."}
    event = {"kind": "session_end", "dedupe_key": "end of Xanadu"}
    kept = await opened(client, "money")
    for _ in range(3):
        session = await opened(client, "chat about Xanadu")
        for each in (session, kept):
            assert (await said(client, each, message))["accepted"] == 1
            assert not (await client.post(f"/v1/sessions/{each}/events", json=event)).json()["repeated"]
        receipt = await forgotten(client, words=["Xanadu"])
        assert (receipt["left"], "xanadu" in dump(owner_url).lower()) == ({}, False)
        assert await opened(client, "chat about Xanadu") == session
        await client.delete(f"/v1/forget/{receipt['id']}")


async def test_an_import_says_how_many_memories_it_leaves_out(client: httpx2.AsyncClient) -> None:
    for content in ("Our vault is called Xanadu.", "The cellar is dry."):
        await client.post("/v1/memories", json={"content": content})
    exported = (await client.get("/v1/export")).text
    await forgotten(client, words=["Xanadu"])
    report = (await client.post("/v1/import", content=exported)).json()
    assert (report["new"]["memory"], report["known"]["memory"], report["forgotten"]) == (0, 1, 1)


async def test_a_forgotten_session_stays_forgotten_as_another_one_without_times(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    call = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "open Xanadu"}}]
    told = [
        {"external_id": "m1", "role": "user", "content": "Our vault is called Xanadu."},
        {
            "external_id": "m2",
            "role": "assistant",
            "content": "Xanadu is the vault below the old mill; its northern hinge needs fresh oil every winter.",
        },
        {"external_id": "m3", "role": "assistant", "content": call},
    ]
    session = await opened(client, "first")
    await said(client, session, *told)
    await forgotten(client, session_id=session)
    await said(client, await opened(client, "under another name"), *told)
    renamed = [one | {"external_id": f"new {one['external_id']}"} for one in told[1:]]
    await said(client, await opened(client, "with other ids"), *renamed)
    assert "xanadu" not in dump(owner_url).lower()


async def test_forgetting_in_a_misspelt_project_is_refused_with_similar_names(
    client: httpx2.AsyncClient,
) -> None:
    await client.post("/v1/memories", json={"content": "The cellar is dry.", "project": "xanadu-web"})
    for named in ({}, {"words": ["cellar"]}):
        refused = await client.post("/v1/forget", json={**named, "project": "xanadu-wep"})
        assert (refused.status_code, "xanadu-web" in refused.json()["detail"]) == (404, True)
    audited = (await client.get("/v1/audit")).json()["entries"]
    assert not [entry for entry in audited if entry["action"] == "forget"]


async def test_a_forgotten_project_name_is_in_no_frozen_pack(client: httpx2.AsyncClient, owner_url: str) -> None:
    await client.post("/v1/memories", json={"content": "The cellar is dry.", "project": "xanadu-web"})
    session = await opened(client)
    before = (await client.get(f"/v1/sessions/{session}/pack")).json()
    assert "(project xanadu-web)" in before["text"]
    receipt = await forgotten(client, words=["Xanadu"])
    assert (receipt["packs"], receipt["left"]) == (1, {})
    after = (await client.get(f"/v1/sessions/{session}/pack")).json()
    assert ("The cellar is dry." in after["text"], after["version"] > before["version"]) == (True, True)
    assert "xanadu" not in dump(owner_url).lower()


@pytest.mark.parametrize(
    ("limit", "kept"),
    [
        ({"project": "bank"}, ["shop"]),
        ({"client": "api"}, []),
        ({"client": "codex"}, ["bank", "shop"]),
        ({"source": "user"}, []),
        ({"source": "external"}, ["bank", "shop"]),
        ({"since": "2026-03-02T12:00:00Z", "until": "2026-03-02T13:00:00Z"}, ["bank"]),
        ({"words": ["Never use"], "project": "bank"}, ["shop"]),
    ],
)
async def test_limits_select_what_is_forgotten(
    client: httpx2.AsyncClient, limit: dict[str, Any], kept: list[str]
) -> None:
    for month, project in ((1, "bank"), (3, "shop")):
        session = await opened(client, project, project=project)
        message = {"external_id": "m1", "role": "user", "content": f"Never use floats for money in the {project}."}
        await said(client, session, {**message, "sent_at": f"2026-0{month}-02T12:30:00Z"})
        await observed(client, session)
    await forgotten(client, **limit)
    rows = (await client.get("/v1/memories")).json()["memories"]
    assert sorted(row["project"] for row in rows) == kept
    sessions = (await client.get("/v1/sessions")).json()["sessions"]
    texts = {
        one["project"]: (await client.get(f"/v1/sessions/{one['id']}/messages")).json()["messages"][0]["content"]
        for one in sessions
    }
    assert sorted(name for name, content in texts.items() if "forgotten" not in str(content)) == kept


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"words": ["x"]}, 422),
        ({"ids": ["mem_x"], "project": "p"}, 422),
        ({"ids": ["mem_x"]}, 404),
        ({"ids": ["psg_x"]}, 404),
        ({"wrods": ["xanadu"]}, 422),
    ],
)
async def test_a_request_that_names_nothing_or_too_much_is_refused(
    client: httpx2.AsyncClient, body: dict[str, Any], status: int
) -> None:
    assert (await client.post("/v1/forget", json=body)).status_code == status
    assert (await client.post("/v1/forget", json={**body, "dry_run": True})).status_code == status


async def test_a_fact_that_shares_a_name_is_kept_with_its_messages(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="shop")
    for number, text in enumerate(("We decided to keep all sessions in Zanzibar.", "Zanzibar listens on port 6380.")):
        await said(client, session, {"external_id": f"m{number}", "role": "user", "content": text})
    await observed(client, session)
    rows = (await client.get("/v1/memories")).json()["memories"]
    [sessions] = [row for row in rows if "sessions" in row["content"]]
    await client.delete(f"/v1/memories/{sessions['id']}?messages=true")
    assert [
        "port 6380" in text for text in contents(await recalled(client, "Which port does Zanzibar listen on?"))
    ] == [True]
    second = (await client.get(f"/v1/sessions/{session}/messages")).json()["messages"][1]
    assert "6380" in str(second["content"])


@pytest.mark.parametrize("words", [True, False])
async def test_a_row_that_only_quotes_the_word_loses_the_quotation_and_stays(
    client: httpx2.AsyncClient, owner_url: str, words: bool
) -> None:
    session = await opened(client, project="bank")
    told = (
        ("user", VAULT),
        ("assistant", "Understood. I will keep Xanadu to myself."),
        ("user", "Never use floats for money."),
    )
    batch = [{"external_id": f"m{n}", "role": role, "content": text} for n, (role, text) in enumerate(told)]
    await said(client, session, *batch)
    await observed(client, session)
    rows = (await client.get("/v1/memories")).json()["memories"]
    [vault], [floats] = ([row for row in rows if text in row["content"]] for text in ("vault is", "floats"))
    assert "(in answer to: “I will keep Xanadu" in floats["content"]
    request = {"words": ["Xanadu"]} if words else {"ids": [vault["id"]], "messages": True}
    receipt = await forgotten(client, **request)
    assert (receipt["memories"], receipt["left"]) == (1, {})
    assert "xanadu" not in dump(owner_url).lower()
    [left] = (await client.get("/v1/memories")).json()["memories"]
    assert (left["id"], left["content"]) == (floats["id"], "User preference: Never use floats for money.")


# Texts that come back -----------------------------------------------------------------------------------------------


async def exported(client: httpx2.AsyncClient) -> bytes:
    """Return the pool's file."""
    return (await client.get("/v1/export")).content


async def imported(client: httpx2.AsyncClient, lines: bytes) -> None:
    """Import a pool's file."""
    answer = await client.post("/v1/import", content=lines, headers={"content-type": "application/x-ndjson"})
    assert answer.status_code == 200, answer.text


async def test_an_import_does_not_bring_back_what_was_forgotten(memory: ScriptedServer, owner_url: str) -> None:
    _, row_id = await told(memory)
    lines = await exported(memory.client)
    assert b"Xanadu" in lines
    await memory.client.delete(f"/v1/memories/{row_id}?messages=true")
    await imported(memory.client, lines)
    assert "xanadu" not in dump(owner_url).lower()
    assert await memory.live() == ["Never use floats for money."]


async def test_a_forgotten_project_name_comes_back_neither_by_an_import_nor_by_a_new_session(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await opened(client, project="xanadu-web", cwd="/home/me/xanadu-web")
    await said(client, session, {"external_id": "m1", "role": "user", "content": "Never use floats for money."})
    await observed(client, session)
    await client.post("/v1/memories", json={"content": "The cellar is dry.", "project": "xanadu-web"})
    lines = await exported(client)
    await forgotten(client, words=["Xanadu"])
    project = (await client.get(f"/v1/sessions/{session}")).json()["project"]
    await imported(client, lines)
    again = await opened(client, "s2", project="xanadu-web", cwd="/home/me/xanadu-web")
    assert (await client.get(f"/v1/sessions/{again}")).json()["project"] == project
    assert "xanadu" not in dump(owner_url).lower()


async def test_an_import_brings_no_project_with_a_forgotten_name_that_the_pool_never_had(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    await client.post("/v1/memories", json={"content": "The cellar is dry.", "project": "xanadu-web"})
    session = await opened(client, project="xanadu-api")
    await client.post("/v1/memories", json={"content": "The tent is blue.", "session_id": session})
    lines = await exported(client)
    await client.post("/v1/memories", json={"content": "The boat is red."})
    await forgotten(client, project="xanadu-web")
    await forgotten(client, words=["xanadu-api", "Xanadu"])
    await imported(client, lines)
    assert "xanadu" not in dump(owner_url).lower()
    rows = (await client.get("/v1/memories")).json()["memories"]
    assert sorted(row["content"] for row in rows) == ["The boat is red.", "The tent is blue."]


async def test_no_field_beside_a_text_brings_a_forgotten_word_back_by_an_import(
    memory: ScriptedServer, owner_url: str
) -> None:
    session = await opened(memory.client, project="bank")
    await memory.hears(session, "Never use floats for money.")
    for note in ("The tent is blue.", "The boat is red."):
        await memory.client.post("/v1/memories", json={"content": note, "project": "bank"})
    lines = [json.loads(line) for line in (await exported(memory.client)).splitlines()]
    [first, *_] = [line["id"] for line in lines if line["type"] == "memory"]
    tokens = dict.fromkeys(("tokens_before", "tokens_after", "input_tokens", "output_tokens", "level"), 1)
    reflection = {
        "type": "reflection", "id": "ref_1", "scope": "pool", "session_id": None, "project": "bank",
        "state": "rejected", "reflector": "x", "reason": "y", "input_ids": [first], "output_ids": [], "dropped_ids": [],
        "undone_at": None, "created_at": lines[0]["exported_at"], **tokens,
    }  # fmt: skip
    forged: list[dict[str, Any]] = [*lines[:-1], reflection, lines[-1]]
    for line in forged:
        line |= {name: "Xanadu 7" for name in ("author", "observer", "reflector", "reason") if name in line}
        line |= {"tags": ["Xanadu"]} if "boat" in line.get("content", "") else {}
        line |= {"calls": {"t1": "Xanadu"}} if line["type"] == "message" else {}
    assert (await memory.client.post("/v1/forget", json={"project": "bank"})).status_code == 200
    await forgotten(memory.client, words=["Xanadu"])
    again = re.sub(r"\b(ses|mem|grp)_01", r"\1_02", "\n".join(map(json.dumps, forged))).replace('"s1"', '"s2"')
    await imported(memory.client, again.encode())
    assert "xanadu" not in dump(owner_url).lower()


@pytest.mark.parametrize("messages", [True, False])
async def test_a_transcript_that_is_sent_again_under_another_name_stays_forgotten(
    memory: ScriptedServer, messages: bool
) -> None:
    _, row_id = await told(memory)
    await memory.client.delete(f"/v1/memories/{row_id}?messages={str(messages).lower()}")
    fork = await opened(memory.client, "fork", project="bank")
    texts = (("user", VAULT), ("assistant", ECHO), ("user", "Hi!"))
    again = [{"external_id": f"x{n}", "role": role, "content": text} for n, (role, text) in enumerate(texts)]
    report = await said(memory.client, fork, *again)
    assert (report["accepted"], report["forgotten"]) == (3, 2 if messages else 0)
    memory.model.say({"facts": []})
    await observed(memory.client, fork)
    # As long as its messages are kept, an observer may read them.
    assert ("Xanadu" in memory.model.prompt()) is not messages
    hits = (await recalled(memory.client, "vault called Xanadu", tier="passages"))["hits"]
    assert hits == []


async def passage_of(http: httpx2.AsyncClient, words: str) -> str:
    """Return the id of the passage that says some words."""
    [hit] = (await recalled(http, words, tier="passages"))["hits"]
    return hit["id"]


async def test_after_a_passage_was_forgotten_people_can_say_continue_again(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    texts = ("The vault is called Xanadu.", "continue", "yes")
    sent = [{"external_id": f"m{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
    await said(client, session, *sent)
    receipt = (await client.delete(f"/v1/memories/{await passage_of(client, 'vault Xanadu')}?messages=true")).json()
    assert receipt["messages"] == 3
    later = await opened(client, "s2")
    anew = [{"external_id": f"x{n}", "role": "user", "content": text} for n, text in enumerate(texts[1:])]
    assert (await said(client, later, *anew))["forgotten"] == 0
    stored = (await client.get(f"/v1/sessions/{later}/messages")).json()["messages"]
    assert [message["content"][0]["text"] for message in stored] == ["continue", "yes"]
    fork = await opened(client, "fork")
    assert (await said(client, fork, *sent))["forgotten"] == 3


class CountingProcesses(TextProcesses):
    """Does all work itself, and remembers it with the length of its texts."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, int]] = []

    async def run(self, characters: int, work: Any, *arguments: Any) -> Any:
        self.made.append((work.__name__, characters))
        return work(*arguments)


async def test_a_message_is_compared_once_and_before_its_session_is_locked(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = CountingProcesses()
    parts = replace(parts, processes=processes)
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", VAULT)])
    await forget(parts, who, ForgetRequest(Selection(words=[VAULT])))
    locked = sessions.locked

    def locking(session_id: str) -> Any:
        processes.made.append(("lock", 0))
        return locked(session_id)

    monkeypatch.setattr(sessions, "locked", locking)
    processes.made.clear()
    text = "word " * 20_000
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m2", "user", text)])
    steps = [name for name, _ in processes.made]
    assert steps.count("_hashes_of_batch") == 1
    assert steps.index("_hashes_of_batch") < steps.index("lock")
    assert dict(processes.made)["_hashes_of_batch"] > len(text)


async def test_what_is_forgotten_while_a_message_is_on_its_way_is_not_stored(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    hash_messages, request = ingesting.hash_messages, ForgetRequest(Selection(words=["Xanadu"]))

    async def forgetting(*arguments: Any) -> Any:
        made = await hash_messages(*arguments)
        await forget(parts, who, request)
        return made

    monkeypatch.setattr(ingesting, "hash_messages", forgetting)
    sent = IncomingMessage("m1", "user", VAULT, sent_at=datetime(2026, 3, 2, tzinfo=UTC))
    assert (await ingest(parts, who.pool_id, session.id, [sent])).forgotten == 1


async def test_a_spooled_message_from_before_is_stored_without_the_forgotten_word(
    memory: ScriptedServer, owner_url: str
) -> None:
    await told(memory)
    await forgotten(memory.client, words=["Xanadu"])
    session = await opened(memory.client, "s2")
    early, late = "2026-03-02T12:00:00Z", "2190-01-01T00:00:00Z"
    spooled = {"external_id": "x1", "role": "user", "content": "I painted Xanadu.", "sent_at": early}
    assert (await said(memory.client, session, spooled))["forgotten"] == 1
    assert "xanadu" not in dump(owner_url).lower()
    anew = {**spooled, "external_id": "x2", "sent_at": late}
    assert (await said(memory.client, session, anew))["forgotten"] == 0


async def test_an_observer_of_kept_messages_does_not_bring_the_fact_back(memory: ScriptedServer) -> None:
    session, row_id = await told(memory)
    await memory.client.delete(f"/v1/memories/{row_id}")
    seq = await memory.told(session, "What else?", minute=1)
    fact = {"text": "The vault is called Xanadu.", "sources": [1, seq]}
    report = await memory.observes(session, fact)
    assert report["memories"] == 0


async def test_a_receipt_proves_that_nothing_is_left(memory: ScriptedServer) -> None:
    _, row_id = await told(memory)
    receipt = (await memory.client.delete(f"/v1/memories/{row_id}")).json()
    proof = (await memory.client.get(f"/v1/forget/{receipt['id']}")).json()
    assert proof["left"] == {"messages (observer text)": 2, "messages (content)": 2, "messages (hash)": 2}
    receipt = await forgotten(memory.client, words=["xanadu"])
    proof = (await memory.client.get(f"/v1/forget/{receipt['id']}")).json()
    assert proof["left"] == {}
    assert proof["texts"] > 10
    assert (await memory.client.get("/v1/forget/fgt_x")).status_code == 404


async def test_a_lifted_receipt_lets_it_come_back(memory: ScriptedServer) -> None:
    _, row_id = await told(memory)
    lines = await exported(memory.client)
    receipt = (await memory.client.delete(f"/v1/memories/{row_id}?messages=true")).json()
    assert (await memory.client.delete(f"/v1/forget/{receipt['id']}")).json()["tombstones"] > 0
    assert (await memory.client.delete(f"/v1/forget/{receipt['id']}")).status_code == 404
    await imported(memory.client, lines)
    assert VAULT in await memory.live()


async def test_no_word_of_what_was_forgotten_is_in_a_tombstone(memory: ScriptedServer, owner_url: str) -> None:
    await told(memory)
    await forgotten(memory.client, words=["xanadu"])
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute("SELECT t::text, digest FROM tombstones t").fetchall()
    assert len(rows) >= 4
    assert not [text for text, _ in rows if "xanadu" in text.lower()]
    plain = {hashlib.sha256(words.encode()).digest() for words in ("xanadu", "Xanadu", VAULT, VAULT.lower())}
    assert plain & {bytes(digest) for _, digest in rows} == set()


# Crashes and company ------------------------------------------------------------------------------------------------


async def test_a_crash_before_the_end_leaves_everything_as_it_was(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1", project="xanadu"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", VAULT)])
    await remember(parts, who, [Note(VAULT, session_id=session.id)])
    await get_pack(parts, who.pool_id, session.id)
    before = contents_of(owner_url)

    async def crash(*_: object) -> None:
        raise RuntimeError("killed")

    monkeypatch.setattr(audit, "insert", crash)
    with pytest.raises(RuntimeError, match="killed"):
        await forget(parts, who, ForgetRequest(Selection(words=["Xanadu"])))
    monkeypatch.undo()
    assert contents_of(owner_url) == before
    assert (await forget(parts, who, ForgetRequest(Selection(words=["Xanadu"])))).left == {}


async def test_long_texts_are_searched_in_child_processes_and_in_slices(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_phrases, "_MOST_CHARACTERS", 2 * LONG)
    processes = CountingProcesses()
    parts = replace(parts, processes=processes)
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    long = f"{VAULT} {'word ' * (LONG // 5)}"
    batch = [IncomingMessage(f"m{number}", "user", f"{number} {long}") for number in range(6)]
    await ingest(parts, who.pool_id, session.id, batch)
    processes.made.clear()
    await forget(parts, who, ForgetRequest(Selection(words=["Xanadu"])))
    searched = [characters for name, characters in processes.made if name == "_saying"]
    assert sum(searched) >= 6 * len(long)
    assert LONG < max(searched) < 3 * len(long)


async def test_forgetting_a_word_while_it_is_being_said_loses_nothing_else(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    async def tell(number: int) -> None:
        session = await opened(client, f"s{number}", project="bank")
        texts = (f"Part {number}: the vault is called Xanadu.", f"Part {number}: never use floats for money.")
        sent = [{"external_id": f"m{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
        await said(client, session, *sent)
        await observed(client, session)

    told = [tell(number) for number in range(6)]
    await asyncio.gather(*told, *(forgotten(client, words=["Xanadu"]) for _ in range(3)))
    receipt = await forgotten(client, words=["Xanadu"])
    assert receipt["left"] == {}
    left = dump(owner_url).lower()
    assert "xanadu" not in left
    assert all(f"part {number}: never use floats" in left for number in range(6))


async def test_what_a_forgotten_session_said_before_stays_forgotten(client: httpx2.AsyncClient) -> None:
    session, other = await opened(client), await opened(client, "s2")
    old = {"role": "user", "content": "The tent is blue.", "sent_at": "2026-03-02T12:00:00Z"}
    await said(client, session, {**old, "external_id": "m1"})
    await forgotten(client, session_id=session)
    late = {**old, "external_id": "m2", "content": "The boat is red."}
    anew = {**late, "external_id": "m3", "sent_at": "2190-01-01T00:00:00Z"}
    assert (await said(client, session, late))["forgotten"] == 1
    assert (await said(client, session, anew))["forgotten"] == 0
    assert (await said(client, other, late))["forgotten"] == 0


async def test_another_fact_with_a_name_of_a_forgotten_one_can_be_imported(
    client: httpx2.AsyncClient, parts: Parts
) -> None:
    second = await create_pool(parts, "second")
    source = Principal(second.id, second.name, "test", frozenset(SCOPES))
    await remember(parts, source, [Note("The doors of Xanadu are painted in green.", project="bank")])
    lines = [line async for line in export(parts, second.id, second.name)]
    vault = (await client.post("/v1/memories", json={"content": VAULT, "project": "bank"})).json()["id"]
    assert (await client.delete(f"/v1/memories/{vault}")).json()["memories"] == 1
    await client.post("/v1/import", content=b"".join(lines), headers={"Content-Type": "application/x-ndjson"})
    found = (await client.get("/v1/memories")).json()["memories"]
    assert [row["content"] for row in found] == ["The doors of Xanadu are painted in green."]
