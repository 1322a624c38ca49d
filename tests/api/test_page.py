"""The page: every part answers, shows words as words, and changes only what a form of its own asks for."""

import re
from datetime import timedelta

import httpx2
import pytest
from fastapi import APIRouter

from esker.server.app import make_app, make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.records import Space
from esker.server.db.database import Database
from esker.server.rest.access import COOKIE
from esker.server.store import jobs, vectors
from esker.server.usecases.authenticate import create_key, require_pool
from esker.server.usecases.parts import Parts
from esker.server.web.login import LINK_SECONDS, LoginLinks
from esker.server.web.page_route import PageRoute
from tests.support.api import observed, opened, said
from tests.support.kept_servers import KeptServer
from tests.support.model_server import ModelServer
from tests.support.pages import HOSTILE, shown_pool
from tests.support.waiting import PATIENCE


def from_page(client: httpx2.AsyncClient) -> dict[str, str]:
    """Return the header by which a browser says that a page of the server sends a form."""
    return {"Origin": str(client.base_url).rstrip("/")}


async def noted(client: httpx2.AsyncClient, content: str = "The boat is blue.") -> str:
    """Write a note and return its id."""
    return (await client.post("/v1/memories", json={"content": content})).json()["id"]


async def test_every_page_shows_hostile_words_as_words_and_runs_no_script_of_others(client: httpx2.AsyncClient) -> None:
    pool = await shown_pool(client)
    for path in pool.paths:
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
        assert not [words for words in HOSTILE if "<" in words and words in answer.text], path
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'"), path
        assert "'unsafe" not in answer.headers["content-security-policy"], path
        assert answer.headers["cache-control"] == "no-store", path


async def test_every_page_answers_head_with_the_headers_alone(client: httpx2.AsyncClient) -> None:
    pool = await shown_pool(client)
    for path in [*pool.paths, "/ui/static/esker.css", "/ui/nowhere"]:
        shown, head = await client.get(path), await client.head(path)
        assert (head.status_code, head.content) == (shown.status_code, b""), path
        assert head.headers["content-type"] == shown.headers["content-type"], path


async def test_once_a_key_exists_every_page_asks_for_one_and_shows_nothing(
    kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts
) -> None:
    await noted(client)
    key = (await create_key(parts, name="k", pool="default")).key
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE) as browser:
        for path in ("/", "/ui/search?q=boat", "/ui/memories", "/ui/nowhere"):
            refused = await browser.get(path)
            assert (refused.status_code, 'name="key"' in refused.text, "blue" in refused.text) == (401, True, False)
            assert f'value="{path}" hidden' in refused.text
        filtered = "/ui/search?q=what%20is%20%26%20was&kinds=note"
        for back in ("/docs", "/?a=1", filtered, "//evil.example/ui/", "/\\evil.example", "/ui/a\nb"):
            signed_in = await browser.post("/ui/login", data={"key": key, "back": back}, headers=from_page(browser))
            own = back in ("/docs", "/?a=1", filtered)
            assert signed_in.headers["location"] == (back if own else "/")
        for back, shown in (("", "/"), ("/ui/memories", "/ui/memories")):
            form = {"key": key, "back": back}
            signed_in = await browser.post("/ui/login", data=form, headers=from_page(browser))
            assert (signed_in.status_code, signed_in.headers["location"]) == (303, shown)
        kept = signed_in.headers["set-cookie"].lower()
        assert "httponly" in kept
        assert "samesite=lax" in kept
        assert "blue" in (await browser.get("/ui/memories")).text
        await browser.post("/ui/logout", headers=from_page(browser))
        assert (await browser.get("/ui/memories")).status_code == 401


async def test_the_cookie_of_the_page_opens_nothing_else(
    kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts
) -> None:
    key = (await create_key(parts, name="k", pool="default")).key
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE, cookies={COOKIE: key}) as browser:
        assert (await browser.get("/")).status_code == 200
        for path in ("/v1/memories", "/mcp", "/metrics", "/openapi.json"):
            assert (await browser.get(path)).status_code == 401, path


async def test_a_form_that_no_page_of_the_server_sent_changes_nothing(client: httpx2.AsyncClient) -> None:
    memory = await noted(client)
    for headers in ({}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        for path, fields in (
            (f"/ui/memories/{memory}/forget", {}),
            (f"/ui/memories/{memory}/edit", {"content": "The boat is red.", "priority": "high"}),
            ("/ui/login", {"key": "esk_x"}),
        ):
            assert (await client.post(path, data=fields, headers=headers)).status_code == 403, (path, headers)
    assert (await client.get(f"/v1/memories/{memory}")).json()["superseded_at"] is None


async def test_an_edited_row_supersedes_the_old_one(client: httpx2.AsyncClient) -> None:
    memory = await noted(client)
    fields = {"content": "The boat is red.", "priority": "high"}
    edited = await client.post(f"/ui/memories/{memory}/edit", data=fields, headers=from_page(client))
    new = edited.headers["location"].rpartition("/")[2]
    row = (await client.get(f"/v1/memories/{new}")).json()
    assert (row["content"], row["priority"]) == ("The boat is red.", "high")
    assert (await client.get(f"/v1/memories/{memory}")).json()["superseded_by"] == new
    again = await client.post(f"/ui/memories/{memory}/edit", data=fields, headers=from_page(client))
    assert (again.status_code, f'<a href="/ui/memories/{new}">' in again.text) == (409, True)


async def test_a_row_is_pinned_and_unpinned(client: httpx2.AsyncClient) -> None:
    memory = await noted(client)
    for fields, kind in (({"pinned": "true"}, "manual"), ({}, "note")):
        answer = await client.post(f"/ui/memories/{memory}/pin", data=fields, headers=from_page(client))
        memory = answer.headers["location"].rpartition("/")[2]
        row = (await client.get(f"/v1/memories/{memory}")).json()
        assert (row["kind"], row["content"]) == (kind, "The boat is blue.")


async def test_a_filter_that_is_left_open_filters_nothing(client: httpx2.AsyncClient) -> None:
    await noted(client)
    for path in ("/ui/memories", "/ui/search?q=boat"):
        open_filters = "project=&kind=&min_priority=low"
        assert "blue" in (await client.get(f"{path}{'&' if '?' in path else '?'}{open_filters}")).text
        kept_out = await client.get(f"{path}{'&' if '?' in path else '?'}kind=reflection")
        assert (kept_out.status_code, "blue" in kept_out.text) == (200, False)


async def test_a_passage_and_a_message_show_calls_of_tools_in_words(client: httpx2.AsyncClient) -> None:
    session = await opened(client, "calls")
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make lighthouse"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "no rule for lighthouse", "is_error": True}
    await said(client, session, {"external_id": "a", "role": "assistant", "content": [call]})
    await said(client, session, {"external_id": "b", "role": "user", "content": [result]})
    found = (await client.get("/ui/search?q=lighthouse")).text
    # The words of the question are marked, also in these.
    found = re.sub("</?mark>", "", found)
    assert "[calls Bash (command: make lighthouse)]" in found
    assert "[Bash failed: no rule for lighthouse]" in found
    passage = found.split("/ui/memories/psg_", 1)[1].split('"', 1)[0]
    assert "[calls Bash (command: make lighthouse)]" in (await client.get(f"/ui/memories/psg_{passage}")).text
    assert "Bash (command: make lighthouse)</summary>" in (await client.get(f"/ui/sessions/{session}")).text


async def confirmed(
    client: httpx2.AsyncClient, path: str, plan: httpx2.Response, **more: str | list[str]
) -> httpx2.Response:
    """Send the form of a page that shows what would be forgotten."""
    found = re.search(r'name="shown" value="(\w+)"', plan.text)
    assert found is not None
    return await client.post(path, data={"shown": found[1], **more}, headers=from_page(client))


async def test_nothing_is_forgotten_that_came_after_the_plan_was_shown(client: httpx2.AsyncClient) -> None:
    memory = await noted(client, "The boat Zephyrine lies at pier 7.")
    path = f"/ui/memories/{memory}/forget"
    plan = await client.get(path)
    await noted(client, "I noted that the boat Zephyrine lies at pier 7.")
    again = await confirmed(client, path, plan)
    assert (again.status_code, "nothing was forgotten" in again.text) == (409, True)
    assert (again.text.count("Zephyrine"), (await client.get(f"/v1/memories/{memory}")).status_code) == (2, 200)
    with_messages = await confirmed(client, path, again, messages="true")
    assert (with_messages.status_code, "fgt_" in with_messages.text) == (200, True)
    assert (await client.get("/v1/memories")).json()["memories"] == []


async def test_forgetting_shows_the_cascade_first_and_then_a_receipt(client: httpx2.AsyncClient) -> None:
    memory = await noted(client)
    plan = await client.get(f"/ui/memories/{memory}/forget")
    assert ("1 memory will be deleted." in plan.text, "The boat is blue." in plan.text) == (True, True)
    assert (await client.get(f"/v1/memories/{memory}")).status_code == 200
    receipt = await confirmed(client, f"/ui/memories/{memory}/forget", plan)
    assert (receipt.status_code, "fgt_" in receipt.text) == (200, True)
    gone = await client.get(f"/ui/memories/{memory}")
    assert (gone.status_code, "There is no memory" in gone.text) == (404, True)


async def test_the_plan_tells_messages_that_keep_their_words_from_those_that_lose_them(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    await said(client, session, "We decided to paint the boat Zephyrine blue.")
    await observed(client, session)
    [row] = (await client.get("/v1/memories")).json()["memories"]
    path = f"/ui/memories/{row['id']}/forget"
    assert "1 message keeps its words" in (await client.get(path)).text
    assert "1 message loses its words." in (await client.get(f"{path}?messages=true")).text


async def test_an_address_without_its_fields_says_which(client: httpx2.AsyncClient) -> None:
    refused = await client.get("/ui/sessions/ses_1/pack/changes?newer=2")
    assert (refused.status_code, "value in them: older." in refused.text) == (422, True)


async def test_a_key_sees_only_the_actions_of_its_scopes_and_cannot_take_the_others(
    kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts
) -> None:
    memory = await noted(client)
    reading = (await create_key(parts, name="r", pool="default", scopes=["read"])).key
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE, cookies={COOKIE: reading}) as browser:
        shown = (await browser.get(f"/ui/memories/{memory}")).text
        assert ("blue" in shown, "Save as" in shown, "Forget it" in shown) == (True, False, False)
        listed = (await browser.get("/ui/memories")).text
        assert (f"{memory}#edit" in listed, f"{memory}/forget" in listed) == (False, False)
        assert "scope <code>admin</code>" in (await browser.get("/ui/operations")).text
        for action in ("edit", "confirm", "forget"):
            fields = {"content": "Red.", "priority": "high"}
            refused = await browser.post(f"/ui/memories/{memory}/{action}", data=fields, headers=from_page(browser))
            assert (refused.status_code, "does not have the scope" in refused.text) == (403, True), action
    writing = (await create_key(parts, name="w", pool="default", scopes=["read", "write"])).key
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE, cookies={COOKIE: writing}) as browser:
        listed = (await browser.get("/ui/memories")).text
        assert (f"{memory}#edit" in listed, f"{memory}/forget" in listed) == (True, False)
        for action, scope in (("forget", "forget"), ("confirm", "admin")):
            refused = await browser.post(f"/ui/memories/{memory}/{action}", headers=from_page(browser))
            assert (refused.status_code, f"scope &#39;{scope}&#39;" in refused.text) == (403, True), action


async def test_an_empty_memory_says_how_it_is_filled(client: httpx2.AsyncClient) -> None:
    for path in ("/", "/ui/memories"):
        assert "esker ingest --all --observe" in (await client.get(path)).text, path
    assert "No memory matches." in (await client.get("/ui/memories?kind=note")).text


async def test_operations_shows_jobs_and_models_to_all_and_keys_to_administrators(
    kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts
) -> None:
    session, memory = await opened(client), await noted(client)
    scopes = {"reader": ["read"], "admin": ["read", "admin"]}
    keys = [await create_key(parts, name=name, pool="default", scopes=may) for name, may in scopes.items()]
    now, space = parts.clock(), Space("queued", "a-model-of-vectors", "r", 8, "", "test")
    async with parts.database.tenant((await require_pool(parts, "default")).id) as connection:
        await jobs.schedule_first(connection, "observe", session, now + timedelta(days=1), now)
        await vectors.register_space(connection, space, now)
        await vectors.enqueue(connection, [memory], now)
    for new in keys:
        async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE, cookies={COOKIE: new.key}) as browser:
            shown = (await browser.get("/ui/operations")).text
        assert (f"observe:{session}" in shown, space.model in shown, "1 of 1<" in shown) == (True, True, True)
        assert {each.key[:8] in shown for each in keys} == {new.name == "admin"}


async def test_the_audit_trail_leads_to_what_was_changed(client: httpx2.AsyncClient) -> None:
    memory = await noted(client)
    assert f'<a href="/ui/memories/{memory}">' in (await client.get("/ui/operations")).text


async def test_a_hit_shows_the_words_of_the_question(client: httpx2.AsyncClient) -> None:
    await noted(client, "The boats are <b>blue</b>.")
    assert "The <mark>boats</mark> are &lt;b&gt;" in (await client.get("/ui/search?q=which+boat")).text


async def test_a_link_signs_in_once(kept_server: KeptServer, client: httpx2.AsyncClient, parts: Parts) -> None:
    key = (await create_key(parts, name="k", pool="default")).key
    made = await client.post("/v1/login-links", headers={"Authorization": f"Bearer {key}"})
    path = made.json()["path"]
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE) as browser:
        assert (await browser.head(path)).status_code == 200
        assert (await browser.get(path)).status_code == 303
        assert (await browser.get("/")).status_code == 200
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE) as other:
        again = await other.get(path)
        assert (again.status_code, "set-cookie" in again.headers) == (404, False)


def test_a_link_expires() -> None:
    now = [0.0]
    links = LoginLinks(lambda: now[0])
    code = links.made("k")
    now[0] = LINK_SECONDS
    with pytest.raises(Exception, match="older than a minute"):
        links.taken(code)


async def test_the_timeline_shows_a_row_at_the_message_it_was_taken_from(client: httpx2.AsyncClient) -> None:
    pool = await shown_pool(client)
    [path] = [path for path in pool.paths if path.startswith("/ui/sessions/") and "/pack" not in path]
    query = {"session_id": path.rpartition("/")[2], "kind": "observation", "include_superseded": True}
    rows = (await client.get("/v1/memories", params=query)).json()["memories"]
    assert rows
    shown = (await client.get(path)).text
    for row in rows:
        first = row["sources"][0]["seqs"][0]
        item = shown.partition(f'value="{first}"')[2].partition('value="')[0]
        assert f"/ui/memories/{row['id']}" in item


async def test_a_row_of_several_messages_is_shown_at_the_first(
    scripted_client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session = await opened(scripted_client)
    await said(scripted_client, session, "The gate is red.", "Yes, the gate is red.")
    model.say({"facts": [{"text": "The gate is red.", "sources": [1, 2], "priority": "high", "category": "fact"}]})
    [memory] = (await observed(scripted_client, session))["memory_ids"]
    shown = (await scripted_client.get(f"/ui/sessions/{session}")).text
    assert f"/ui/memories/{memory}" in shown.partition('value="1"')[2].partition('value="2"')[0]
    assert shown.count(f'href="/ui/memories/{memory}"') == 1


async def test_a_pack_is_shown_as_the_agent_sees_it_with_a_reason_for_each_row(client: httpx2.AsyncClient) -> None:
    memory = (await client.post("/v1/memories", json={"content": "The boat is blue.", "kind": "manual"})).json()["id"]
    session = await opened(client)
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()
    shown = (await client.get(f"/ui/sessions/{session}/pack")).text
    text, _, reasons = shown.partition("Why these rows")
    assert "The boat is blue." in text
    assert f"Version {pack['version']}" in text
    assert ("pinned, global part" in reasons, f"/ui/memories/{memory}" in reasons) == (True, True)


async def test_a_page_shows_the_beginning_of_a_message_that_is_a_whole_file(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, {"external_id": "m", "role": "user", "content": "The file begins. " + "x" * 300_000})
    shown = (await client.get(f"/ui/sessions/{session}")).text
    assert ("The file begins." in shown, "more characters)" in shown, len(shown) < 40_000) == (True, True, True)


async def test_behind_a_proxy_that_speaks_tls_the_cookie_is_sent_over_tls_alone(client: httpx2.AsyncClient) -> None:
    for forwarded, is_secure in (({"X-Forwarded-Proto": "https"}, True), ({}, False)):
        answer = await client.post("/ui/login", data={"key": "k"}, headers=from_page(client) | forwarded)
        assert ("secure" in answer.headers["set-cookie"].lower()) == is_secure


async def test_looking_at_a_pack_freezes_none(client: httpx2.AsyncClient) -> None:
    session = (await client.post("/v1/sessions", json={"client": "api", "external_id": "s"})).json()["id"]
    assert "has no pack yet" in (await client.get(f"/ui/sessions/{session}/pack")).text
    assert (await client.get(f"/v1/sessions/{session}/memory")).json()["pack_versions"] == []


@pytest.mark.parametrize(
    "path", ["/ui/memories?kind=dream", "/ui/sessions?before=x", "/ui/sessions/ses_x", "/ui/nowhere"]
)
async def test_a_wrong_address_is_a_page_that_says_so(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert answer.status_code in (404, 422)
    assert (answer.headers["content-type"], 'role="alert"' in answer.text) == ("text/html; charset=utf-8", True)


async def test_a_fault_is_a_page_that_tells_how_to_find_it_in_the_log(logged: list[str]) -> None:
    broken = APIRouter(route_class=PageRoute)

    @broken.get("/ui/link/broken")
    async def fail() -> None:
        raise RuntimeError("the words of a memory")

    settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
    app = make_app(make_parts(settings, Database("postgresql:///none"), system_clock))
    app.router.routes[:0] = broken.routes
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as browser:
        failed = await browser.get("/ui/link/broken", headers={"X-Request-Id": "mine"})
    assert (failed.status_code, failed.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert ("mine" in failed.text, "the words" in failed.text, any("the words" in line for line in logged)) == (
        True,
        False,
        True,
    )
