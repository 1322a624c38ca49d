"""The audit trail: who did what, readable by operators, without anybody's words."""

from typing import Any

import httpx2
import pytest

from esker.server.usecases.audit_trail import BULK_ROWS
from esker.server.usecases.authenticate import create_key, create_pool, revoke_key
from esker.server.usecases.parts import Parts
from tests.support.api import opened, said


async def trail(client: httpx2.AsyncClient, **query: Any) -> list[tuple[str, str]]:
    """Return who did what, oldest first."""
    page = (await client.get("/v1/audit", params=query)).json()
    return [(entry["actor"], entry["action"]) for entry in reversed(page["entries"])]


async def test_writing_bulk_reading_exporting_and_forgetting_leave_a_trail(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, "The river is high.")
    await said(client, session, "The river is high.")  # sent again: nothing was written
    memory = (await client.post("/v1/memories", json={"content": "The hill is green."})).json()["id"]
    many = [{"content": f"Boat {n} is blue."} for n in range(BULK_ROWS - 1)]
    await client.post("/v1/memories/batch", json={"memories": many})
    await client.get("/v1/memories", params={"limit": BULK_ROWS - 1})
    await client.get("/v1/memories", params={"limit": BULK_ROWS})
    await client.get("/v1/export")
    await client.delete(f"/v1/memories/{memory}")
    did = [
        "session.write", "memory.write", "memory.write", "memory.list", "pool.export", "forget",
    ]  # fmt: skip
    assert await trail(client) == [("local", action) for action in did]
    [forgotten] = (await client.get("/v1/audit", params={"action": "forget"})).json()["entries"]
    assert forgotten["detail"]["memories"] == 1
    whole = (await client.get("/v1/audit")).text
    assert not any(word in whole for word in ("river", "hill", "green", "Boat", "blue"))


async def test_keys_are_in_the_trail_of_their_pool_and_name_who_acted(client: httpx2.AsyncClient, parts: Parts) -> None:
    await create_pool(parts, "other")
    key = await create_key(parts, name="a", pool="default", scopes=["read", "write", "admin"])
    other = await create_key(parts, name="b", pool="other", scopes=["read", "write", "admin"])
    for each in (key, other):
        client.headers["Authorization"] = f"Bearer {each.key}"
        await client.post("/v1/memories", json={"content": "The hill is green."})
        assert await trail(client) == [("operator", "key.create"), (each.id, "memory.write")]
    await revoke_key(parts, key="b", pool="other")
    client.headers["Authorization"] = f"Bearer {key.key}"
    assert await trail(client, action="key") == [("operator", "key.create")]
    assert await trail(client, actor=key.id) == [(key.id, "memory.write")]


async def test_only_an_admin_reads_the_trail(client: httpx2.AsyncClient, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read", "write", "forget"])
    answer = await client.get("/v1/audit", headers={"Authorization": f"Bearer {key.key}"})
    assert answer.status_code == 403
    assert "scope 'admin'" in answer.json()["detail"]


async def test_the_trail_is_read_page_by_page(client: httpx2.AsyncClient) -> None:
    for n in range(5):
        await client.post("/v1/memories", json={"content": f"Boat {n} is blue."})
    seen: list[int] = []
    before: int | None = None
    while True:
        page = (await client.get("/v1/audit", params={"limit": 2} | ({"before": before} if before else {}))).json()
        seen += [entry["id"] for entry in page["entries"]]
        before = page["next"]
        if before is None:
            break
    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)


async def test_a_key_can_be_asked_what_it_opens(client: httpx2.AsyncClient, parts: Parts) -> None:
    scopes = ["read", "write", "forget", "admin"]
    free = {"client": None, "project": None}
    assert (await client.get("/v1/key")).json() == {"id": "local", "pool": "default", "scopes": scopes, **free}
    key = await create_key(parts, name="a", pool="default", scopes=["forget", "read"])
    found = (await client.get("/v1/key", headers={"Authorization": f"Bearer {key.key}"})).json()
    assert found == {"id": key.id, "pool": "default", "scopes": ["read", "forget"], **free}


@pytest.mark.parametrize("query", ["limit=0", "limit=5000", "before=0", "before=99999999999999999999", "who=me"])
async def test_an_invalid_page_of_the_trail_is_refused(client: httpx2.AsyncClient, query: str) -> None:
    assert (await client.get(f"/v1/audit?{query}")).status_code == 422
