"""Events about a client's context are acted on, and once for each key."""

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
from esker.server.usecases.authenticate import create_key, create_pool
from esker.server.usecases.parts import Parts
from tests.api.test_memories import dump
from tests.support.api import observed, opened, said, until
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

RULE = "Never use floats for money."


@pytest.fixture
async def idle(database_url: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """A server that observes nothing automatically while a test runs."""
    settings = Settings.from_environment({"ESKER_EMBEDDER": "none", "ESKER_OBSERVE_IDLE_SECONDS": "3600"})
    parts = make_parts(settings, Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        yield client


async def told(client: httpx2.AsyncClient, session: str, kind: str, key: str | None = None) -> dict[str, Any]:
    """Send an event and return the answer."""
    body = {"kind": kind} | ({"dedupe_key": key} if key else {})
    answer = await client.post(f"/v1/sessions/{session}/events", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def unobserved(client: httpx2.AsyncClient, session: str) -> int:
    """Return the unobserved tokens of a session."""
    return (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"]


async def covered(client: httpx2.AsyncClient, session: str) -> None:
    """Wait until a session has no unobserved messages."""
    await until(client, f"/v1/sessions/{session}", lambda shown: not shown["unobserved_tokens"])


async def pack(client: httpx2.AsyncClient, session: str) -> dict[str, Any]:
    """Return the pack of a session."""
    return (await client.get(f"/v1/sessions/{session}/pack")).json()


async def test_a_repeated_event_is_acted_on_once(idle: httpx2.AsyncClient) -> None:
    session = await opened(idle)
    assert (await pack(idle, session))["version"] == 1
    first = await told(idle, session, "evicted", "hook-1")
    assert first == {"received": "evicted", "repeated": False, "observing": False}
    await said(idle, session, RULE)
    again = {"received": "evicted", "repeated": True, "observing": False}
    assert await told(idle, session, "evicted", "hook-1") == again
    assert (await pack(idle, session))["version"] == 2
    assert (await idle.get(f"/v1/sessions/{session}")).json()["jobs"][0]["attempts"] == 0
    assert await unobserved(idle, session) > 0


async def test_events_of_different_kinds_with_the_same_key_are_all_acted_on(idle: httpx2.AsyncClient) -> None:
    session = await opened(idle)
    await said(idle, session, RULE)
    await told(idle, session, "turn_end", "turn-7")
    before_compaction = await told(idle, session, "compaction_pending", "turn-7")
    assert (before_compaction["repeated"], before_compaction["observing"]) == (False, True)


async def test_twenty_concurrent_reports_of_one_event_freeze_one_pack(idle: httpx2.AsyncClient) -> None:
    session = await opened(idle)
    await pack(idle, session)
    answers = await asyncio.gather(*(told(idle, session, "evicted", "hook-1") for _ in range(20)))
    assert sorted(answer["repeated"] for answer in answers) == [False, *[True] * 19]
    assert (await pack(idle, session))["version"] == 2


async def test_a_key_is_unique_only_within_a_session(idle: httpx2.AsyncClient) -> None:
    one, other = await opened(idle), await opened(idle, "s2")
    for session in (one, other):
        await said(idle, session, RULE)
        assert not (await told(idle, session, "compaction_pending", "hook-1"))["repeated"]
        await covered(idle, session)


async def test_without_a_key_every_event_is_acted_on(idle: httpx2.AsyncClient) -> None:
    session = await opened(idle)
    await pack(idle, session)
    for version in (2, 3):
        assert not (await told(idle, session, "evicted"))["repeated"]
        assert (await pack(idle, session))["version"] == version


async def test_everything_is_observed_before_a_compaction(idle: httpx2.AsyncClient) -> None:
    # The observer is quickly through a block of code. One compaction needs more than one slice, the other one.
    for kind, length in (("compaction_pending", 9_000), ("evicted", 9)):
        content = f"{RULE}\n```\n{'word ' * length}\n```"
        session = await opened(idle, kind)
        await said(idle, session, *({"external_id": f"m{n}", "role": "user", "content": content} for n in range(5)))
        assert (await told(idle, session, kind))["observing"]
        await covered(idle, session)
        shown = (await idle.get(f"/v1/sessions/{session}")).json()
        assert (shown["observed_messages"], shown["coverage"], shown["lost"]) == (5, 1.0, 0)
        assert (shown["groups"] > 1) == (length > 9)
        assert not (await told(idle, session, kind))["observing"]


async def test_a_pack_is_frozen_again_only_after_the_client_dropped_messages(
    idle: httpx2.AsyncClient,
) -> None:
    session = await opened(idle)
    before = await pack(idle, session)
    await idle.post("/v1/memories", json={"content": RULE, "kind": "manual"})
    for kind in ("turn_end", "compaction_pending", "session_end"):
        await told(idle, session, kind)
        assert await pack(idle, session) == before
    await told(idle, session, "evicted")
    after = await pack(idle, session)
    assert (after["version"], after["reason"], RULE in after["text"]) == (2, "evicted", True)


async def test_the_end_of_a_turn_triggers_nothing(idle: httpx2.AsyncClient) -> None:
    session = await opened(idle)
    await said(idle, session, RULE)
    jobs = (await idle.get(f"/v1/sessions/{session}")).json()["jobs"]
    assert await told(idle, session, "turn_end", "t1") == {
        "received": "turn_end",
        "repeated": False,
        "observing": False,
    }
    shown = (await idle.get(f"/v1/sessions/{session}")).json()
    assert (shown["jobs"], shown["unobserved_tokens"] > 0) == (jobs, True)


async def test_the_end_of_a_session_with_enough_user_messages_triggers_observation(database_url: str) -> None:
    environment = {"ESKER_EMBEDDER": "none", "ESKER_OBSERVE_IDLE_SECONDS": "3600"}
    settings = Settings.from_environment(environment | {"ESKER_SESSION_END_MIN_MESSAGES": "3"})
    parts = make_parts(settings, Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        session = await opened(client)
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
        injected = "<system-reminder>Be brief.</system-reminder>"
        nobodys = [("assistant", "Done."), ("user", [result]), ("user", injected)]
        batch = [{"external_id": f"n{n}", "role": role, "content": said} for n, (role, said) in enumerate(nobodys)]
        await said(client, session, RULE, "And be quick.", *batch)
        assert not (await told(client, session, "session_end"))["observing"]
        await said(client, session, "That is all.")
        assert (await told(client, session, "session_end"))["observing"]
        await covered(client, session)


async def test_an_event_without_unobserved_messages_triggers_nothing(idle: httpx2.AsyncClient) -> None:
    session = await opened(idle)
    await said(idle, session, RULE)
    await observed(idle, session)
    assert not (await told(idle, session, "session_end"))["observing"]


async def test_an_event_of_an_unknown_or_foreign_session_is_a_404(
    idle: httpx2.AsyncClient, parts: Parts, who: object
) -> None:
    session = await opened(idle)
    await create_pool(parts, "other")
    key = await create_key(parts, name="other", pool="other", scopes=["read", "write"])
    mine = await create_key(parts, name="mine", pool="default", scopes=["read", "write"])
    body = {"kind": "evicted", "dedupe_key": "hook-1"}
    for name, bearer in ((session, key.key), ("ses_unknown", mine.key)):
        headers = {"authorization": f"Bearer {bearer}"}
        answer = await idle.post(f"/v1/sessions/{name}/events", json=body, headers=headers)
        assert answer.status_code == 404
    headers = {"authorization": f"Bearer {mine.key}"}
    answer = await idle.post(f"/v1/sessions/{session}/events", json=body, headers=headers)
    assert answer.json()["repeated"] is False


async def test_a_secret_in_a_key_is_masked_and_still_identifies_the_event(
    idle: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await opened(idle)
    secret = "ghp_" + "a1B2" * 9
    repeated = [(await told(idle, session, "turn_end", f"hook {secret}"))["repeated"] for _ in range(2)]
    assert repeated == [False, True]
    assert secret not in dump(owner_url)
    other = "ghp_" + "c3D4" * 9
    assert not (await told(idle, session, "turn_end", f"hook {other}"))["repeated"]


@pytest.mark.parametrize("body", [{}, {"kind": "lunch"}, {"kind": "evicted", "dedupe_key": ""}, {"kind": None}, []])
async def test_an_invalid_event_is_refused_and_changes_nothing(
    idle: httpx2.AsyncClient, body: Any, owner_url: str
) -> None:
    session = await opened(idle)
    assert (await idle.post(f"/v1/sessions/{session}/events", json=body)).status_code == 422
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM session_events").fetchone() == (0,)
