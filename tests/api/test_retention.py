"""A pool keeps messages, images, passages and memories for as long as it is told to."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.background import beside, keep_up, run_jobs
from esker.server.core.conversation.hidden_calls import HiddenCalls
from esker.server.core.conversation.retention import Retained, Retention, without_images
from esker.server.core.records import Filter, Principal
from esker.server.db.database import Database
from esker.server.store import retention, sessions
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.hidden_calls import hidden_calls_at, keep_hidden_calls
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe
from esker.server.usecases.open_session import SessionRequest, list_messages, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, list_memories, remember
from esker.server.usecases.retain import retain, retain_all, set_retention
from tests.support.clock import FakeClock
from tests.support.waiting import PATIENCE

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
FLOATS = "Never use floats for money."


@pytest.fixture
async def session(parts: Parts, who: Principal, clock: FakeClock) -> str:
    """A session with an observed message that has an image, a note, and a pack; ten days have passed since."""
    opened = await open_session(parts, who.pool_id, SessionRequest("api", "s1", project="shop"))
    content: list[Any] = [{"type": "text", "text": FLOATS}, IMAGE]
    await ingest(parts, who.pool_id, opened.id, [IncomingMessage("m1", "user", content)])
    async with beside("jobs", lambda: run_jobs(parts)):
        await observe(parts, who.pool_id, opened.id, wait=True)
    await remember(parts, who, [Note("The tent is blue.", project="shop")])
    await get_pack(parts, who.pool_id, opened.id)
    clock.advance(days=10)
    return opened.id


async def contents(parts: Parts, who: Principal) -> list[str]:
    """Return the contents of all memories."""
    rows = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=10)
    return sorted(row.content.rpartition(": ")[2] for row in rows)


async def kept(parts: Parts, who: Principal, **days: Any) -> Retained:
    """Set how long the pool keeps what, and apply it."""
    await set_retention(parts, who, Retention(**days))
    return await retain(parts, who.pool_id)


async def test_old_messages_lose_their_words_and_memories_stay(parts: Parts, who: Principal, session: str) -> None:
    assert await kept(parts, who, messages_days=11) == Retained()
    assert await kept(parts, who, messages_days=9) == Retained(messages=1)
    [message] = await list_messages(parts, who.pool_id, session, after=0, limit=10)
    assert "forgotten" in str(message.content)
    assert (await recall(parts, who.pool_id, RecallRequest("floats for money", tier="passages"))).hits == []
    assert await contents(parts, who) == [FLOATS, "The tent is blue."]
    assert await kept(parts, who, messages_days=9) == Retained()


async def test_messages_that_no_observer_has_seen_are_kept(
    parts: Parts, who: Principal, session: str, clock: FakeClock
) -> None:
    await ingest(parts, who.pool_id, session, [IncomingMessage("m2", "user", "And use cents.")])
    clock.advance(days=30)
    assert await kept(parts, who, messages_days=9) == Retained(messages=1)
    assert "cents" in str((await list_messages(parts, who.pool_id, session, after=1, limit=10))[0].content)


async def test_old_images_go_and_the_words_beside_them_stay(parts: Parts, who: Principal, session: str) -> None:
    assert await kept(parts, who, images_days=9) == Retained(images=1)
    [message] = await list_messages(parts, who.pool_id, session, after=0, limit=10)
    assert message.content == [{"type": "text", "text": FLOATS}, {"type": "text", "text": "[image expired]"}]
    assert await kept(parts, who, images_days=9) == Retained()
    again = await ingest(
        parts, who.pool_id, session, [IncomingMessage("m1", "user", [{"type": "text", "text": FLOATS}, IMAGE])]
    )
    assert (again.duplicates, again.conflicts) == (1, [])


@pytest.mark.parametrize(
    "image",
    [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "data": "iVBORw0KGgo="}]},
        {"type": "capture", "payload": {"screens": [IMAGE]}},
    ],
)
def test_an_image_expires_in_every_spelling_and_at_any_depth(image: dict[str, Any]) -> None:
    kept, count = without_images([{"type": "text", "text": FLOATS}, image])
    assert (count, "iVBORw0KGgo=" in str(kept), FLOATS in str(kept)) == (1, False, True)


def test_a_description_of_an_image_is_none() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Draw", "input": {"type": "image", "width": 3}}
    assert without_images([call]) == ([call], 0)


async def test_a_time_to_come_keeps_nothing_longer(parts: Parts, who: Principal, clock: FakeClock) -> None:
    later = clock() + timedelta(days=9_000)
    opened = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, opened.id, [IncomingMessage("m1", "user", FLOATS, sent_at=later)])
    async with beside("jobs", lambda: run_jobs(parts)):
        await observe(parts, who.pool_id, opened.id, wait=True)
    clock.advance(days=10)
    assert await kept(parts, who, passages_days=9, memories_days={"observation": 9}) == Retained(passages=1, memories=1)


async def test_a_message_that_lost_its_words_can_be_sent_again(parts: Parts, who: Principal, session: str) -> None:
    await kept(parts, who, messages_days=9)
    again = await ingest(parts, who.pool_id, session, [IncomingMessage("m1", "user", FLOATS)])
    assert (again.duplicates, again.conflicts) == (1, [])
    [message] = await list_messages(parts, who.pool_id, session, after=0, limit=10)
    assert FLOATS not in str(message.content)


async def test_an_image_goes_from_the_message_as_it_is_when_its_session_is_locked(
    parts: Parts, who: Principal, session: str, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock_all = sessions.lock_all

    async def locking(*arguments: Any) -> Any:
        with psycopg.connect(owner_url) as connection:
            connection.execute("UPDATE messages SET content = replace(content::text, 'floats', '[masked]')::jsonb")
        return await lock_all(*arguments)

    monkeypatch.setattr(sessions, "lock_all", locking)
    assert await kept(parts, who, images_days=9) == Retained(images=1)
    [message] = await list_messages(parts, who.pool_id, session, after=0, limit=10)
    assert message.content[0] == {"type": "text", "text": FLOATS.replace("floats", "[masked]")}


async def test_large_images_are_replaced_one_message_at_a_time(
    parts: Parts, who: Principal, session: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [IncomingMessage(f"i{number}", "user", [IMAGE]) for number in range(3)]
    await ingest(parts, who.pool_id, session, more)
    async with beside("jobs", lambda: run_jobs(parts)):
        await observe(parts, who.pool_id, session, wait=True)
    clock.advance(days=10)
    read: list[int] = []
    contents_of = retention.contents

    async def reading(connection: Any, found: Any) -> Any:
        read.append(len(found))
        return await contents_of(connection, found)

    monkeypatch.setattr(retention, "_BYTES_AT_ONCE", 1)
    monkeypatch.setattr(retention, "contents", reading)
    assert await kept(parts, who, images_days=9) == Retained(images=4)
    assert read == [1, 1, 1, 1]


async def test_old_passages_go_and_the_messages_stay(parts: Parts, who: Principal, session: str) -> None:
    assert await kept(parts, who, passages_days=9) == Retained(passages=1)
    assert (await recall(parts, who.pool_id, RecallRequest("floats for money", tier="passages"))).hits == []
    [message] = await list_messages(parts, who.pool_id, session, after=0, limit=10)
    assert FLOATS in str(message.content)


@pytest.mark.parametrize(
    ("days", "left"),
    [
        ({"memories_days": {"note": 11}}, {"tent", "floats", "plain", "late"}),
        ({"memories_days": {"note": 9}}, {"floats", "plain", "late"}),
        ({"passages_days": 9}, {"tent", "plain"}),
        ({"messages_days": 9}, set()),
    ],
)
async def test_hidden_calls_go_with_what_they_show_and_with_messages_of_their_age(
    parts: Parts, who: Principal, session: str, clock: FakeClock, days: dict[str, Any], left: set[str]
) -> None:
    clock.advance(days=-10)
    asked = {"tent": "tent blue", "floats": "floats for money", "plain": "", "late": "floats for money"}
    for place, query in asked.items():
        tier = "memories" if place == "tent" else "passages"
        clock.advance(days=10 if place == "late" else 0)
        found = (await recall(parts, who.pool_id, RecallRequest(query, tier=tier))).hits if query else []
        hidden = HiddenCalls(place, ["{}"], [hit.id for hit in found], "")
        assert await keep_hidden_calls(parts, who.pool_id, session, hidden)
    await kept(parts, who, **days)
    assert (await hidden_calls_at(parts, who.pool_id, asked)).items.keys() == left


@pytest.mark.parametrize(("kind", "left"), [("observation", ["The tent is blue."]), ("note", [FLOATS])])
async def test_memories_of_a_kind_go_with_the_packs_that_show_them(
    parts: Parts, who: Principal, session: str, kind: str, left: list[str]
) -> None:
    assert await kept(parts, who, memories_days={kind: 9}) == Retained(memories=1)
    assert await contents(parts, who) == left
    pack = await get_pack(parts, who.pool_id, session)
    assert pack.reason == "forgotten"


async def test_only_pools_with_retention_are_looked_at_and_the_run_is_audited(
    parts: Parts, who: Principal, session: str, owner_url: str
) -> None:
    await retain_all(parts)
    assert len(await contents(parts, who)) == 2
    await set_retention(parts, who, Retention(memories_days={"observation": 9}))
    await retain_all(parts)
    with psycopg.connect(owner_url) as connection:
        [entry] = connection.execute("SELECT actor, detail FROM audit WHERE action = 'retention'").fetchall()
    assert entry == ("upkeep", {"messages": 0, "images": 0, "passages": 0, "memories": 1})


async def test_a_pool_whose_retention_fails_keeps_no_other_from_its_upkeep(
    parts: Parts, who: Principal, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await set_retention(parts, who, Retention(memories_days={"observation": 9}))
    other = await create_pool(parts, "other")
    asked: list[str] = []

    async def retaining(_: Parts, pool_id: str) -> Retained:
        asked.append(pool_id)
        raise psycopg.errors.QueryCanceled("statement timeout")

    async def both(_: Database) -> list[str]:
        return [who.pool_id, other.id]

    monkeypatch.setattr("esker.server.usecases.retain.retain", retaining)
    monkeypatch.setattr("esker.server.store.retention.pools_with_one", both)
    marked = asyncio.Event()

    async def marking(_: Parts) -> int:
        marked.set()
        return 0

    monkeypatch.setattr("esker.server.background.mark_expired", marking)
    monkeypatch.setattr("esker.server.background._UPKEEP_SECONDS", 0)
    async with beside("the upkeep", lambda: keep_up(parts)):
        async with asyncio.timeout(PATIENCE):
            await marked.wait()
            marked.clear()
            await marked.wait()
    assert asked == [who.pool_id, other.id]


async def test_retention_is_read_and_set_over_http(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/retention")).json() == {
        "messages_days": None, "images_days": None, "passages_days": None, "memories_days": {},
    }  # fmt: skip
    wanted = {"messages_days": 90, "images_days": None, "passages_days": 30, "memories_days": {"observation": 365}}
    assert (await client.put("/v1/retention", json=wanted)).json() == wanted
    assert (await client.get("/v1/retention")).json() == wanted


@pytest.mark.parametrize("body", [{"messages_days": 0}, {"memories_days": {"dream": 3}}, {"days": 3}])
async def test_wrong_retention_is_refused(client: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    assert (await client.put("/v1/retention", json=body)).status_code == 422
