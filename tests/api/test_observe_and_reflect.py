"""Observe and reflect through the public surface."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from tests.support.api import contents, observed, opened, recalled, said, until
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

RULE = "Never use floats for money."


def does(external_id: str, name: str, call_id: str, **arguments: str) -> dict[str, Any]:
    """Return an assistant's tool call."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    return {"external_id": external_id, "role": "assistant", "content": [block]}


def sees(external_id: str, call_id: str, text: str, *, error: bool = False) -> dict[str, Any]:
    """Return a tool's result."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error}
    return {"external_id": external_id, "role": "user", "content": [block]}


SAID: list[dict[str, Any]] = [
    {"external_id": "m1", "role": "user", "content": f"Please fix the login. {RULE}"},
    does("m2", "Bash", "t1", command="make test"),
    sees("m3", "t1", "KeyError: 'id'", error=True),
    {"external_id": "m4", "role": "assistant", "content": "The cause is that the id was renamed."},
    does("m5", "Edit", "t2", file_path="login.py"),
    {
        "external_id": "m6",
        "role": "assistant",
        "content": "Fixed the login, and all 12 tests pass now. The limit of the queue in the worker is 30 jobs.",
    },
]


# A failure that later succeeds, and a new value of something stated before.
AGAIN: list[dict[str, Any]] = [
    {"external_id": "n1", "role": "user", "content": "Please publish the package as well."},
    does("n2", "Bash", "t3", command="make publish"),
    sees("n3", "t3", "ConnectionError: timed out", error=True),
    does("n4", "Bash", "t4", command="make publish"),
    sees("n5", "t4", "ok"),
    {
        "external_id": "n6",
        "role": "assistant",
        "content": "Fixed by a second try: 3.1.4 is published. The limit of the queue in the worker is 40 jobs.",
    },
]


async def serving_with(database_url: str, **settings: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server with other settings."""
    environment = {"ESKER_EMBEDDER": "none"} | {f"ESKER_{name.upper()}": value for name, value in settings.items()}
    parts = make_parts(Settings.from_environment(environment), Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        yield client


async def test_observing_writes_facts_with_their_sources_and_covers_everything(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="shop")
    await said(client, session, *SAID)
    report = await observed(client, session)
    assert (report["groups"], report["observer"], report["queued"]) == (1, "extractive", False)
    assert report["memories"] == len(report["memory_ids"]) > 3
    rows = (await client.get(f"/v1/memories?session_id={session}")).json()["memories"]
    [rule] = [row for row in rows if RULE in row["content"]]
    assert (rule["priority"], rule["trust"], rule["source_seqs"], rule["project"]) == ("high", "user", [1], "shop")
    [failure] = [row for row in rows if row["category"] == "issue"]
    assert failure["source_seqs"] == [2, 3, 4]
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["unobserved_tokens"], shown["observed_messages"], shown["jobs"]) == (0, 6, [])


async def test_observing_again_writes_nothing(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, *SAID)
    await observed(client, session)
    again = await observed(client, session)
    assert (again["groups"], again["memories"]) == (0, 0)
    await said(client, session, *SAID)
    assert (await observed(client, session))["groups"] == 0


async def test_a_session_is_observed_in_the_background_when_enough_is_unobserved(database_url: str) -> None:
    async for client in serving_with(database_url, observe_tokens="50", observe_idle_seconds="3600"):
        session = await opened(client)
        await said(client, session, "Hello.")
        assert (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"] > 0
        await said(client, session, f"{RULE} " + "And there is more to say about that. " * 12)
        await covered(client, session)
        assert contents(await recalled(client, "floats for money"))


async def test_an_idle_session_is_observed_after_the_idle_time(database_url: str) -> None:
    async for client in serving_with(database_url, observe_idle_seconds="0.2"):
        session = await opened(client)
        await said(client, session, RULE)
        await covered(client, session)


@pytest.mark.parametrize("kind", ["compaction_pending", "session_end"])
async def test_an_event_triggers_observation_of_everything(database_url: str, kind: str) -> None:
    async for client in serving_with(database_url, observe_idle_seconds="3600"):
        session = await opened(client)
        await said(client, session, RULE)
        answer = await client.post(f"/v1/sessions/{session}/events", json={"kind": kind})
        assert answer.status_code == 202
        await covered(client, session)


async def test_observing_without_waiting_is_queued(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, RULE)
    answer = await client.post(f"/v1/sessions/{session}/observe")
    assert (answer.status_code, answer.json()["queued"]) == (202, True)
    await covered(client, session)


async def covered(client: httpx2.AsyncClient, session: str) -> None:
    """Wait until the server's job runner has observed everything."""
    await until(client, f"/v1/sessions/{session}", lambda shown: not shown["unobserved_tokens"])


async def test_concurrent_observers_of_one_session_cover_it_once(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    await said(client, session, *SAID)
    reports = await asyncio.gather(*(observed(client, session) for _ in range(6)))
    assert {report["memories"] for report in reports} <= {reports[0]["memories"], 0}
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT first_seq, last_seq FROM observation_groups").fetchall() == [(1, 6)]


async def test_a_switched_off_observer_or_reflector_is_reported(database_url: str) -> None:
    async for client in serving_with(database_url, observer="off", reflector="off"):
        session = await opened(client)
        await said(client, session, RULE)
        for verb in ("observe", "reflect"):
            answer = await client.post(f"/v1/sessions/{session}/{verb}?wait=true")
            assert answer.status_code == 409
            assert "switched off" in answer.json()["detail"]
        assert (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"] > 0


async def test_reflecting_condenses_supersedes_and_reports_the_changes(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, *SAID, *AGAIN)
    before = (await observed(client, session))["memory_ids"]
    answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    report = answer.json()
    assert answer.status_code == 200
    assert (report["reflector"], report["queued"]) == ("extractive", False)
    rows = (await client.get(f"/v1/memories?session_id={session}")).json()["memories"]
    assert report["memories"] == len(rows) > 0
    assert {row["kind"] for row in rows} == {"reflection"}
    everything = (await client.get(f"/v1/memories?session_id={session}&include_superseded=true")).json()["memories"]
    superseded = [row for row in everything if row["superseded_at"]]
    assert report["superseded"] == len(superseded) == len(before)
    assert report["tokens_after"] == sum(row["tokens"] for row in rows) < report["tokens_before"]
    live = {row["id"]: row for row in rows}
    for row in superseded:
        by = live.get(row["superseded_by"])
        assert by is None or row["id"] in by["source_ids"]
    [rule] = [row for row in rows if RULE in row["content"]]
    assert rule["priority"] == "high"


async def test_many_changes_of_one_file_are_condensed_without_a_model(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="theme")
    batch: list[dict[str, Any]] = []
    for n in range(1, 12):
        batch += [
            {"external_id": f"u{n}", "role": "user", "content": f"make grey number {n} a little brighter please"},
            does(f"c{n}", "Edit", f"t{n}", file_path="/p/src/theme/dark.json"),
            sees(f"r{n}", f"t{n}", "ok"),
            {"external_id": f"a{n}", "role": "assistant", "content": "Changed."},
        ]
    batch[-1]["content"] = "Fixed: grey is brighter now and all tests pass."
    await said(
        client, session, {"external_id": "m0", "role": "user", "content": "can you open the theme file?"}, *batch
    )
    await observed(client, session)
    report = (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).json()
    assert report["rejected"] is None
    assert report["tokens_after"] <= report["tokens_before"]
    rows = (await client.get(f"/v1/memories?session_id={session}")).json()["memories"]
    assert sum("dark.json" in row["content"] for row in rows) <= 2
    assert any("grey is brighter now" in row["content"] for row in rows)


async def test_reflecting_again_changes_nothing(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, *SAID)
    await observed(client, session)
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    rows = (await client.get("/v1/memories?include_superseded=true")).json()
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()
    again = (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).json()
    assert (again["memories"], again["superseded"]) == (0, 0)
    assert (await client.get("/v1/memories?include_superseded=true")).json() == rows
    assert (await client.get(f"/v1/sessions/{session}/pack")).json() == pack


async def test_a_session_at_the_trigger_is_reflected_automatically(database_url: str) -> None:
    async for client in serving_with(database_url):
        session = await opened(client, effective_context=1_000)
        for turn in range(18):
            decision = (
                f"We decided to name module {turn} after river number {turn}, because the map of the region in "
                f"the docs numbers its rivers from source {turn} to the sea, and a reader of the map finds the "
                f"module by it."
            )
            report = f"The limit of the queue in the worker is {turn + 30} jobs."
            await said(client, session, decision, {"external_id": f"r{turn}", "role": "assistant", "content": report})
            if turn % 6 == 5:
                await observed(client, session)
        rows = (await until(client, "/v1/memories?kind=reflection", lambda page: page["memories"]))["memories"]
        assert any("river" in row["content"] for row in rows)
