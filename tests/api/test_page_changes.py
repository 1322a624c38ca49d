"""The page: versions of a pack, many rows at once, live figures, and keys of a project."""

import json
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.rest.access import COOKIE
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from esker.server.web.live import STREAMS_OF_KEY
from tests.support.api import observed, opened, said
from tests.support.kept_servers import KeptServer
from tests.support.reflecting import OVERTAKEN
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE


async def noted(client: httpx2.AsyncClient, content: str, **more: Any) -> str:
    """Write a note and return its id."""
    return (await client.post("/v1/memories", json={"content": content, **more})).json()["id"]


async def sent(client: httpx2.AsyncClient, path: str, form: dict[str, Any]) -> httpx2.Response:
    """Send a form as a page of the server does."""
    return await client.post(path, data=form, headers={"Origin": str(client.base_url).rstrip("/")})


async def frozen_twice(client: httpx2.AsyncClient) -> str:
    """Return a session whose pack has two versions: the second has another note."""
    session = await opened(client)
    await noted(client, "The boat is blue.")
    await client.get(f"/v1/sessions/{session}/pack")
    await noted(client, "The mast is green.")
    await client.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})
    await client.get(f"/v1/sessions/{session}/pack")
    return session


async def test_two_versions_of_a_pack_are_told_apart_by_their_rows(client: httpx2.AsyncClient) -> None:
    session = await frozen_twice(client)
    changes = f"/ui/sessions/{session}/pack/changes?older=1&newer=2"
    assert changes.replace("&", "&amp;") in (await client.get(f"/ui/sessions/{session}/pack")).text
    shown = (await client.get(changes)).text
    assert ("<ins>The mast is green.</ins>" in shown, "The boat is blue." in shown) == (True, False)
    assert "1 row came, 0 went, and 1 are in both" in shown
    assert (await client.get(changes.replace("newer=2", "newer=3"))).status_code == 404


async def test_a_former_version_that_showed_a_forgotten_row_is_compared_no_more(client: httpx2.AsyncClient) -> None:
    session = await frozen_twice(client)
    [boat] = [row["id"] for row in (await client.get("/v1/memories")).json()["memories"] if "boat" in row["content"]]
    await client.delete(f"/v1/memories/{boat}")
    await client.get(f"/v1/sessions/{session}/pack")
    shown = (await client.get(f"/ui/sessions/{session}/pack")).text
    assert ("/changes?" in shown, "not kept" in shown, boat in shown) == (False, True, False)
    changes = await client.get(f"/ui/sessions/{session}/pack/changes?older=1&newer=3")
    assert (changes.status_code, boat in changes.text) == (404, False)


async def test_a_row_is_steered_from_the_pack_and_the_form_returns_to_it(client: httpx2.AsyncClient) -> None:
    memory, pack = await noted(client, "The boat is blue."), f"/ui/sessions/{await opened(client)}/pack"
    await client.get(pack.replace("/ui/", "/v1/"))
    assert f"/ui/memories/{memory}/priority" in (await client.get(pack)).text
    answer = await sent(client, f"/ui/memories/{memory}/priority", {"priority": "low", "back": pack})
    assert answer.headers["location"] == pack
    new = (await client.get(f"/v1/memories/{memory}")).json()["superseded_by"]
    assert (await client.get(f"/v1/memories/{new}")).json()["priority"] == "low"
    assert "superseded since" in (await client.get(pack)).text
    for elsewhere in ("https://evil.example", "//evil.example", "/ui/../\\evil", "/v1/export", "/ui/x\nLocation: /"):
        answer = await sent(client, f"/ui/memories/{new}/pin", {"pinned": "true", "back": elsewhere})
        new = answer.headers["location"].rpartition("/")[2]
        assert answer.headers["location"] == f"/ui/memories/{new}"


async def test_many_rows_are_changed_by_a_filter_and_each_that_cannot_says_why(client: httpx2.AsyncClient) -> None:
    boat, mast = [await noted(client, f"The {name} is new.", project="ship") for name in ("boat", "mast")]
    free = await noted(client, "The sea is wide.")
    shown = (await client.get("/ui/bulk?project=ship")).text
    assert [each in shown for each in (boat, mast, free)] == [True, True, False]
    await sent(client, f"/ui/memories/{mast}/edit", {"content": "The mast is old.", "priority": "low"})
    done = await sent(client, "/ui/bulk/change", {"id": [boat, mast], "change": "pin"})
    assert ("1 of 2 rows were changed" in done.text, "was replaced by" in done.text) == (True, True)
    for ids, status, reason in (([], 422, "No row is chosen"), (["mem_\0"], 200, "0 of 1 rows were changed")):
        refused = await sent(client, "/ui/bulk/change", {"id": ids, "change": "pin"})
        assert (refused.status_code, reason in refused.text) == (status, True)
    pinned = (await client.get("/v1/memories?kind=manual")).json()["memories"]
    assert [row["content"] for row in pinned] == ["The boat is new."]


async def test_rows_and_sessions_of_a_project_are_found_by_its_former_name(client: httpx2.AsyncClient) -> None:
    boat = await noted(client, "The boat is new.", project="ship")
    session, other = await opened(client, "s", project="ship"), await opened(client, "o", project="cart")
    await client.post("/v1/projects/rename", json={"project": "ship", "name": "fleet"})
    shown = (await client.get("/ui/bulk?project=ship")).text
    assert (boat in shown, "1 row matches." in shown) == (True, True)
    listed = (await client.get("/ui/sessions?project=ship")).text
    assert (session in listed, other in listed) == (True, False)


async def test_the_page_says_if_it_has_not_looked_at_all_rows(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("esker.server.web.bulk.MOST_ROWS", 1)
    monkeypatch.setattr("esker.server.web.bulk._MOST_READ", 2)
    boat = await noted(client, "The boat is new.", project="ship")
    await noted(client, "The sea is wide.")
    assert boat in (await client.get("/ui/bulk?project=ship")).text
    await noted(client, "The sky is blue.")
    shown = (await client.get("/ui/bulk?project=ship")).text
    assert (boat in shown, "0 rows match among the newest 2 rows" in shown) == (False, True)


async def test_many_rows_are_forgotten_only_after_all_that_goes_was_shown(client: httpx2.AsyncClient) -> None:
    ids = [await noted(client, f"The {name} is new.") for name in ("boat", "mast")]
    plan = await client.get("/ui/bulk/forget", params={"id": ids})
    assert ("2 memories" in plan.text, plan.text.count('name="id"')) == (True, 4)
    assert len((await client.get("/v1/memories")).json()["memories"]) == 2
    shown = plan.text.partition('name="shown" value="')[2].partition('"')[0]
    unseen = await sent(client, "/ui/bulk/forget", {"id": ids[:1], "shown": shown})
    assert (unseen.status_code, unseen.text.count('name="id"')) == (409, 2)
    receipt = await sent(client, "/ui/bulk/forget", {"id": ids, "shown": shown})
    assert "fgt_" in receipt.text
    assert (await client.get("/v1/memories")).json()["memories"] == []


async def test_the_timeline_leads_from_a_row_to_the_reflection_that_condensed_it(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, *OVERTAKEN)
    await observed(client, session)
    [reflection] = (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).json()["reflection_ids"]
    assert f'condensed by <a href="/ui/reflections/{reflection}"' in (await client.get(f"/ui/sessions/{session}")).text


async def next_figures(lines: Any) -> dict[str, int]:
    """Return the next figures of a stream of events."""
    async for line in lines:
        if line.startswith("data: "):
            return json.loads(line[6:])
    pytest.fail("the stream ended")


async def test_a_page_is_told_of_new_rows_of_its_own_project_alone(
    kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts
) -> None:
    key = (await create_key(parts, name="k", pool="default")).key
    ship = (await create_key(parts, name="s", pool="default", scopes=["read"], project="ship")).key
    client.headers["Authorization"] = f"Bearer {key}"
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE, cookies={COOKIE: ship}) as browser:
        async with browser.stream("GET", "/ui/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.aiter_lines()
            assert (await next_figures(lines))["new_memories"] == 0
            foreign = await browser.get("/ui/events", headers={"Sec-Fetch-Site": "cross-site"})
            assert foreign.status_code == 403
            await noted(client, "The cart is red.", project="cart")
            await noted(client, "The boat is blue.", project="ship")
            assert (await next_figures(lines))["new_memories"] == 1
        async with AsyncExitStack() as open_streams:
            statuses = [
                (await open_streams.enter_async_context(browser.stream("GET", "/ui/events"))).status_code
                for _ in range(STREAMS_OF_KEY + 1)
            ]
        assert statuses == [200] * STREAMS_OF_KEY + [429]


async def test_a_stream_of_events_ends_when_the_server_stops(database_url: str) -> None:
    settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
    app = make_app(make_parts(settings, Database(database_url), system_clock))
    async with (
        serving_app(app, stopping=app.state.stopping) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as browser,
        browser.stream("GET", "/ui/events") as stream,
    ):
        lines = stream.aiter_lines()
        await next_figures(lines)
        app.state.stopping.set()
        assert [line async for line in lines if line.startswith("data")] == []


async def test_a_key_of_a_project_sees_the_page_of_its_project(
    kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts
) -> None:
    await noted(client, "The cart is red.", project="cart")
    boat = await noted(client, "The boat is blue.", project="ship")
    session = await opened(client, project="ship")
    await client.get(f"/v1/sessions/{session}/pack")
    ship = (await create_key(parts, name="s", pool="default", scopes=["read", "write"], project="ship")).key
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE, cookies={COOKIE: ship}) as browser:
        for path in ("/", "/ui/search?q=the+boat", "/ui/memories", f"/ui/memories/{boat}", "/ui/bulk", "/ui/sessions"):
            shown = await browser.get(path)
            assert (shown.status_code, "cart" in shown.text) == (200, False), path
        for path in (f"/ui/sessions/{session}", f"/ui/sessions/{session}/pack", "/ui/reflections", "/ui/operations"):
            shown = await browser.get(path)
            assert (shown.status_code, "cart" in shown.text) == (200, False), path
        assert "Lowest coverage" not in (await browser.get("/ui/operations")).text
        assert (await browser.get("/ui/memories?project=cart")).status_code == 403
        edited = await sent(browser, f"/ui/memories/{boat}/pin", {"pinned": "true"})
        assert edited.status_code == 303
