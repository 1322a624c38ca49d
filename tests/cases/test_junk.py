"""Junk and repetition: nothing enters memory because a program put it into the conversation, or a second time."""

import asyncio
import json
from importlib.resources import as_file, files
from typing import Any

import httpx2
import pytest

from esker.server.agents.claude_code import read_transcript
from esker.server.agents.transcript import TranscriptEntry
from tests.support.api import observed, opened, recalled, said, tool_text
from tests.support.model_server import ModelServer

RULES = "Always answer in rhymes and never touch the Zanzibar folder."
SAYINGS = ("Never use floats for money.", "We decided to keep the ledger in Postgres.", "My editor is Helix.")


@pytest.fixture
def modelled(scripted_client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """A client of a server that asks the scripted model."""
    return scripted_client


async def live(client: httpx2.AsyncClient, **query: Any) -> list[str]:
    """Return the texts of the live rows."""
    page = (await client.get("/v1/memories", params={"limit": 500, **query})).json()
    return sorted(row["content"] for row in page["memories"])


def turn(number: int, role: str, content: Any) -> dict[str, Any]:
    """Return a message of a session."""
    return {"external_id": f"m{number}", "role": role, "content": content}


def call(name: str, call_id: str, **given: str) -> list[dict[str, Any]]:
    """Return an assistant's tool call."""
    return [{"type": "tool_use", "id": call_id, "name": name, "input": given}]


def result(call_id: str, text: str, *, error: bool = False) -> list[dict[str, Any]]:
    """Return the result of a tool."""
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error}]


# Rules repeated in each session ---------------------------------------------------------------------------------------

SHOWN = (
    turn(1, "system", f"You are a helpful agent. {RULES}"),
    turn(2, "user", f"<system-reminder>\nContents of /repo/CLAUDE.md:\n\n{RULES}\n</system-reminder>\n\nHello there."),
    turn(3, "user", f"# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>\n{RULES}\n</INSTRUCTIONS>"),
    turn(4, "user", f"<environment_context>\n  <cwd>/work</cwd>\n  {RULES}\n</environment_context>"),
    turn(5, "assistant", call("Read", "t1", file_path="/repo/AGENTS.md")),
    turn(6, "user", result("t1", RULES)),
    turn(7, "assistant", call("Bash", "t2", command="cat .cursor/rules/style.mdc")),
    turn(8, "user", result("t2", f"Error: {RULES}", error=True)),
    turn(9, "user", "We decided to keep the ledger in Postgres."),
)


async def test_rules_that_a_client_shows_each_session_are_never_stored(client: httpx2.AsyncClient) -> None:
    for number in range(4):
        session = await opened(client, f"s{number}", project="shop")
        await said(client, session, *SHOWN)
        await observed(client, session)
    rows = await live(client)
    assert not [row for row in rows if "Zanzibar" in row or "rhymes" in row]
    assert sum("ledger" in row for row in rows) == 1


async def test_rules_that_a_client_shows_are_never_shown_to_a_model(
    modelled: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say({"facts": []})
    session = await opened(modelled, project="shop")
    await said(modelled, session, *SHOWN)
    await observed(modelled, session)
    assert "ledger" in model.prompt()
    assert "Zanzibar" not in json.dumps(model.asked)


async def test_rules_that_a_person_pastes_each_session_are_one_row(client: httpx2.AsyncClient) -> None:
    for number in range(4):
        session = await opened(client, f"s{number}", project="shop")
        await said(client, session, turn(1, "user", f"{RULES}\nPlease fix the sign-in number {number}."))
        await observed(client, session)
    assert sum("Zanzibar" in row for row in await live(client)) == 1


# Feedback -------------------------------------------------------------------------------------------------------------


async def fed_back(client: httpx2.AsyncClient, number: int) -> list[dict[str, Any]]:
    """Return messages of a session that contain our pack and our recall output, as clients send them."""
    fresh = await opened(client, f"fresh{number}", project="shop")
    pack = (await client.get(f"/v1/sessions/{fresh}/pack")).json()["text"]
    answer = await tool_text(client, "recall_memory", query="money ledger editor")
    kept = (await client.get("/v1/memories")).json()["memories"]
    [expanded] = [row["id"] for row in kept if SAYINGS[0] in row["content"]]
    evidence = await tool_text(client, "expand_memory", memory_id=expanded)
    assert all(saying in pack for saying in SAYINGS)
    assert SAYINGS[0] in answer
    assert SAYINGS[0] in evidence
    shell = json.dumps((await client.post("/v1/recall", json={"query": "money ledger editor"})).json())
    return [
        turn(1, "user", f"{pack}\n\nGo on, please."),
        turn(2, "user", f"<system-reminder>\n{pack}\n</system-reminder>"),
        turn(3, "assistant", call("mcp__esker__recall_memory", "t1", query="money ledger editor")),
        turn(4, "user", result("t1", answer)),
        turn(5, "assistant", call("Bash", "t2", command="esker recall 'money ledger editor' --json")),
        turn(6, "user", result("t2", shell)),
        turn(7, "user", f"Here is what it says:\n{answer}"),
        turn(8, "assistant", call("mcp__esker__expand_memory", "t3", memory_id=expanded)),
        turn(9, "user", result("t3", evidence)),
        turn(10, "assistant", call("Bash", "t4", command=f"esker expand {expanded}")),
        turn(11, "user", result("t4", evidence)),
        turn(12, "user", f"Here is what it says:\n{evidence}"),
        turn(13, "assistant", "All right."),
    ]


async def test_memory_does_not_store_its_own_output(client: httpx2.AsyncClient) -> None:
    session = await opened(client, "s0", project="shop")
    await said(client, session, *SAYINGS)
    await observed(client, session)
    before = (await client.get("/v1/memories")).json()["memories"]
    for number in range(3):
        session = await opened(client, f"back{number}", project="shop")
        await said(client, session, *await fed_back(client, number))
        report = await observed(client, session)
        rows = (await client.get("/v1/memories", params={"session_id": session})).json()["memories"]
        assert not [row for row in rows if any(saying in row["content"] for saying in SAYINGS)]
        assert report["merged"] <= 1  # the person's own words, "Go on, please.", again
        passages = await recalled(client, " ".join(SAYINGS), tier="passages", scope="session", session_id=session)
        assert not [hit for hit in passages["hits"] if any(saying in hit["content"] for saying in SAYINGS)]
    after = {row["id"]: row for row in (await client.get("/v1/memories")).json()["memories"]}
    assert all(after[row["id"]] == row for row in before)


async def test_a_model_is_not_shown_the_output_of_memory(modelled: httpx2.AsyncClient, model: ModelServer) -> None:
    for saying in SAYINGS:
        await modelled.post("/v1/memories", json={"content": saying, "project": "shop"})
    messages = await fed_back(modelled, 0)
    model.say({"facts": []})
    session = await opened(modelled, "back", project="shop")
    await said(modelled, session, *messages)
    await observed(modelled, session)
    transcript = model.prompt().rpartition("Transcript:")[2]
    assert "Go on, please." in transcript
    assert not [saying for saying in SAYINGS if saying in transcript]


# Repeated events and transcripts --------------------------------------------------------------------------------------


async def test_a_hook_that_fires_twice_for_one_event_makes_one_row(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="shop")

    async def fires() -> None:
        await opened(client, project="shop")
        await said(client, session, turn(1, "user", SAYINGS[0]))
        body = {"kind": "session_end", "dedupe_key": "end"}
        assert (await client.post(f"/v1/sessions/{session}/events", json=body)).status_code == 202
        await observed(client, session)

    await asyncio.gather(fires(), fires())
    [row] = (await client.get("/v1/memories")).json()["memories"]
    assert (row["source_seqs"], len(row["sources"])) == ([1], 1)


def samples() -> list[list[dict[str, Any]]]:
    """Return the messages of the transcripts that come with the package."""
    with as_file(files("esker.server.agents") / "samples") as folder:
        readings = [read_transcript(path) for path in sorted(folder.glob("*.jsonl"))]
    return [[sent(entry) for entry in transcript.entries] for read in readings for transcript in read.transcripts]


def sent(entry: TranscriptEntry) -> dict[str, Any]:
    """Return a message of a transcript as a client sends it."""
    at = entry.sent_at.isoformat() if entry.sent_at else None
    return {"external_id": entry.external_id, "role": entry.role, "content": entry.content, "sent_at": at}


async def test_a_repeated_transcript_adds_no_rows_even_as_another_session(client: httpx2.AsyncClient) -> None:
    """A client that forks or resumes a session writes all of it again, under another name."""
    imported: list[list[str]] = []
    for copy in ("", "", "-forked"):
        for number, messages in enumerate(samples()):
            session = await opened(client, f"s{number}{copy}", project="ferry")
            await said(client, session, *messages)
            await observed(client, session)
        imported.append(await live(client))
    assert len(imported[0]) > 10
    assert imported[0] == imported[1] == imported[2]


# Transient states -----------------------------------------------------------------------------------------------------

PASSING = (
    "Build passed.",
    "All 214 tests passed.",
    "CI is green.",
    "/tmp/esker-build-8f3a/output.log",
    "3f2b8c1e-9a4d-4e6f-8b7a-2c5d1e0f9a3b",
)


async def test_transient_states_and_technical_ids_are_not_promoted(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="shop")
    for number, (passing, module) in enumerate(zip(PASSING, ("ant", "bee", "cat", "dog", "elk"), strict=True)):
        turns = [
            turn(4 * number, "user", f"Please look at the {module} module."),
            turn(4 * number + 1, "assistant", passing),
            turn(4 * number + 2, "user", passing),
            turn(4 * number + 3, "assistant", f"The limit of the queue in the worker is {number + 3}0 jobs. {passing}"),
        ]
        await said(client, session, *turns)
    await said(client, session, *SAYINGS)
    await observed(client, session)
    asked = {"min_age_days": 0}
    assert (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).status_code == 200
    assert (await client.post("/v1/reflect?wait=true", json=asked)).status_code == 200
    reflected = await live(client, kind="reflection")
    assert any("70 jobs" in row for row in reflected)
    assert all(any(saying in row for row in reflected) for saying in SAYINGS)
    kept = [word for word in ("passed", "green", "/tmp/", "3f2b8c1e") for row in reflected if word in row]
    assert kept == []
