"""The report on a session's memory: usage, packs, groups and jobs, without forgotten rows."""

import asyncio
from typing import Any

import httpx2
import psycopg
import pytest

from tests.support.api import observed, opened, said
from tests.support.model_server import ModelServer
from tests.support.reflecting import fact, kept, row, session_reflected

Json = dict[str, Any]


@pytest.fixture
def asked_model(scripted_client: httpx2.AsyncClient, model: ModelServer) -> tuple[httpx2.AsyncClient, ModelServer]:
    """A client of a server with a scripted model, and the model."""
    return scripted_client, model


async def memory_of(client: httpx2.AsyncClient, session: str) -> Json:
    """Return the report on a session's memory."""
    answer = await client.get(f"/v1/sessions/{session}/memory")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def used(client: httpx2.AsyncClient, session: str, fresh: int, written: int, read: int, **more: Any) -> Json:
    """Report a call and return the answer."""
    usage = {"input_tokens": fresh, "cache_creation_input_tokens": written, "cache_read_input_tokens": read}
    answer = await client.post(f"/v1/sessions/{session}/usage", json={**usage, "output_tokens": 7, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def pack_of(client: httpx2.AsyncClient, session: str) -> Json:
    """Return the pack of a session."""
    return (await client.get(f"/v1/sessions/{session}/pack")).json()


# Usage -------------------------------------------------------------------------------------------------------------


async def test_usage_is_summed_by_session_and_shown_with_the_savings(client: httpx2.AsyncClient) -> None:
    session, other = await opened(client, "one"), await opened(client, "two")
    await pack_of(client, session)
    await said(client, session, {"external_id": "1", "role": "user", "content": "word " * 1_000})
    assert (await memory_of(client, session))["usage"] is None
    await used(client, session, 100, 200, 0, model="claude-opus-5")
    last = await used(client, session, 50, 0, 200, model="claude-opus-5")
    usage = (await memory_of(client, session))["usage"]
    assert usage == last["usage"]
    assert (usage["calls"], usage["output_tokens"], usage["prefix_lost"]) == (2, 14, 0)
    assert usage["cache_hit_share"] == pytest.approx(200 / 550)
    assert usage["last"]["model"] == "claude-opus-5"
    raw = (await memory_of(client, session))["counters"]["total_tokens"]
    saved = usage["savings"]
    assert (saved["raw_tokens"], saved["left_out_tokens"]) == (2 * raw, 2 * raw - 550)
    # Opus 5 is $5 and $25; a write is 1.25, a read 0.1 of an input token.
    sent = (100 + 50 + 1.25 * 200 + 0.1 * 200) * 5 / 1e6 + 14 * 25 / 1e6
    whole = (1.25 * raw + 0.1 * raw) * 5 / 1e6 + 14 * 25 / 1e6
    assert saved["cost_usd"] == pytest.approx(sent)
    assert saved["saved_usd"] == pytest.approx(whole - sent)
    assert (await memory_of(client, other))["usage"] is None


async def test_a_call_reported_twice_counts_once(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    assert not (await used(client, session, 10, 0, 0, request_id="req_1"))["repeated"]
    again = await used(client, session, 10, 0, 0, request_id="req_1")
    assert (again["repeated"], again["usage"]["calls"]) == (True, 1)
    await used(client, session, 10, 0, 0, request_id="req_2")
    await used(client, session, 10, 0, 0)
    await used(client, session, 10, 0, 0)
    assert (await memory_of(client, session))["usage"]["calls"] == 4
    elsewhere = await opened(client, "another")
    assert not (await used(client, elsewhere, 10, 0, 0, request_id="req_1"))["repeated"]


async def test_concurrent_reports_are_all_counted(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    names = [f"req_{n}" for n in range(10)] * 2
    await asyncio.gather(*(used(client, session, 1, 2, 3, request_id=name) for name in names))
    usage = (await memory_of(client, session))["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["cache_read_tokens"]) == (10, 10, 30)


async def test_a_lost_cache_prefix_is_reported_unless_the_pack_has_changed(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    await pack_of(client, session)
    await used(client, session, 10, 300, 0)
    await client.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})
    assert (await used(client, session, 10, 300, 0))["usage"]["prefix_lost"] == 0
    assert (await used(client, session, 10, 0, 300))["usage"]["prefix_lost"] == 0
    assert (await used(client, session, 310, 0, 0))["usage"]["prefix_lost"] == 1


async def test_a_usage_block_of_the_api_is_accepted_and_an_invalid_one_refused(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    block = {
        "input_tokens": 5,
        "cache_creation_input_tokens": None,
        "cache_read_input_tokens": None,
        "cache_creation": {"ephemeral_5m_input_tokens": 0},
        "output_tokens": 6,
        "server_tool_use": None,
        "service_tier": "standard",
    }
    answer = await client.post(f"/v1/sessions/{session}/usage", json=block)
    assert answer.json()["usage"]["output_tokens"] == 6
    for bad in (
        {"input_tokens": -1, "output_tokens": 0},
        {"input_tokens": 1},
        {"input_tokens": "x", "output_tokens": 1},
    ):
        assert (await client.post(f"/v1/sessions/{session}/usage", json=bad)).status_code == 422
    assert (await client.post("/v1/sessions/ses_none/usage", json=block)).status_code == 404
    assert (await memory_of(client, session))["usage"]["calls"] == 1


async def test_a_secret_in_the_name_of_a_model_is_masked(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    secret = "sk-ant-api03-" + "a1B2c3D4" * 11 + "AA"
    await used(client, session, 1, 0, 0, model=secret, request_id=secret)
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute("SELECT u::text FROM session_usage u").fetchall()
        rows += connection.execute("SELECT e::text FROM session_events e").fetchall()
    assert len(rows) == 2
    assert secret not in str(rows)


# Counters and packs ------------------------------------------------------------------------------------------------


async def test_the_counters_follow_the_states_of_a_session(
    asked_model: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = asked_model
    session = await opened(client)
    empty = await memory_of(client, session)
    assert (empty["state"], empty["coverage"], empty["groups"], empty["pack_versions"]) == ("empty", 1.0, [], [])
    _, ids = await kept(
        client, model, fact("The ferry is blue, as it has been."), fact("The ferry is also quite wide.")
    )
    there = await memory_of(client, session)
    assert there["state"] == "up to date"
    assert (there["counters"]["observations_live"], there["counters"]["observations_superseded"]) == (2, 0)
    [group] = there["groups"]
    assert (group["first_seq"], group["last_seq"], group["observations"]) == (1, 2, 2)
    assert (group["observer"], group["output_tokens"]) == ("claude-haiku-5-5", 20)
    assert group["input_tokens"] == 100 + 7
    assert group["observation_tokens"] == there["counters"]["observation_tokens"] > 0
    model.say({"rows": [row("The ferry is blue and wide.", *ids)], "dropped": []})
    await session_reflected(client, session)
    counters = (await memory_of(client, session))["counters"]
    assert (counters["observations_live"], counters["observations_superseded"]) == (0, 2)
    assert (counters["reflections_live"], counters["observation_tokens"]) == (1, 0)
    await said(client, session, "And the bridge?")
    waiting = await memory_of(client, session)
    assert waiting["state"] == "waiting"
    assert (waiting["counters"]["observed_messages"], waiting["counters"]["messages"]) == (2, 3)
    assert waiting["coverage"] == pytest.approx(2 / 3, abs=1e-6)
    assert waiting["session"]["messages"] == 3


async def test_a_failed_job_shows_its_error_and_a_hint(asked_model: tuple[httpx2.AsyncClient, ModelServer]) -> None:
    client, model = asked_model
    session = await opened(client)
    await said(client, session, "The ferry is blue.")
    model.say("This is no JSON, and no list.")
    assert (await client.post(f"/v1/sessions/{session}/observe?wait=true")).status_code == 502
    memory = await memory_of(client, session)
    assert memory["state"] == "retrying"
    [job] = [job for job in memory["jobs"] if job["kind"] == "observe"]
    assert job["last_error"]
    assert "ESKER_LLM_STRUCTURED" in job["hint"]
    assert memory["counters"]["unobserved_tokens"] > 0


async def test_every_version_of_a_pack_stays_in_the_log(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    first = await pack_of(client, session)
    await client.post("/v1/memories", json={"content": "The ferry is blue."})
    await client.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})
    second = await pack_of(client, session)
    versions = (await memory_of(client, session))["pack_versions"]
    assert [(v["version"], v["reason"], v["present"]) for v in versions] == [
        (2, "evicted", True),
        (1, "initial", False),
    ]
    for version, pack in zip(versions, (second, first), strict=True):
        assert {name: version[name] for name in ("sha256", "tokens", "created_at")} == {
            name: pack[name] for name in ("sha256", "tokens", "created_at")
        }


async def test_a_pack_that_showed_a_forgotten_row_leaves_no_hash(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    secret = (await client.post("/v1/memories", json={"content": "The ferry is called Ada."})).json()["id"]
    hashes = [(await pack_of(client, session))["sha256"]]
    await client.post("/v1/memories", json={"content": "The bridge is long."})
    await client.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})
    hashes.append((await pack_of(client, session))["sha256"])
    await client.delete(f"/v1/memories/{secret}")
    forgotten = (await memory_of(client, session))["pack_versions"]
    assert [(v["version"], v["sha256"], v["present"]) for v in forgotten] == [(2, None, False), (1, None, False)]
    await pack_of(client, session)
    [present, *_] = (await memory_of(client, session))["pack_versions"]
    assert (present["version"], present["reason"], present["present"]) == (3, "forgotten", True)
    assert present["sha256"] not in hashes
    with psycopg.connect(owner_url) as connection:
        kept_hashes = connection.execute("SELECT sha256 FROM packs UNION SELECT sha256 FROM former_packs").fetchall()
    assert not {found for (found,) in kept_hashes} & set(hashes)


async def test_an_unknown_session_is_a_404(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/sessions/ses_none/memory")).status_code == 404


async def test_groups_of_the_extractive_observer_say_so(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, "We decided to paint the ferry blue.")
    await observed(client, session)
    [group] = (await memory_of(client, session))["groups"]
    assert (group["observer"], group["input_tokens"]) == ("extractive", 0)
