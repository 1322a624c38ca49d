"""Sessions and ingest: messages are stored exactly once, in order of arrival, also when sent again."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg import sql

from tests.support.api import observed, opened, said


def user(external_id: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message of the user."""
    return {"external_id": external_id, "role": "user", "content": content, **more}


async def test_the_same_client_and_external_id_are_the_same_session(client: httpx2.AsyncClient) -> None:
    first = await opened(client, "s1", cwd="/src", timezone="Europe/Berlin")
    assert await opened(client, "s1", project="p") == first
    assert await opened(client, "s2") != first
    shown = (await client.get(f"/v1/sessions/{first}")).json()
    assert (shown["cwd"], shown["project"], shown["timezone"]) == ("/src", "p", "Europe/Berlin")


async def test_twenty_concurrent_requests_open_one_session(client: httpx2.AsyncClient) -> None:
    ids = await asyncio.gather(*(opened(client, "s1") for _ in range(20)))
    assert len(set(ids)) == 1


async def test_messages_that_are_sent_again_are_counted_once(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    batch = [user(f"m{n}", f"Message number {n}.") for n in range(5)]
    first = await said(client, session, *batch)
    assert (first["accepted"], first["duplicates"]) == (5, 0)
    again = await said(client, session, *batch, user("m5", "One more."))
    assert (again["accepted"], again["duplicates"]) == (1, 5)
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert shown["messages"] == 6
    assert shown["unobserved_tokens"] == shown["total_tokens"] == again["unobserved_tokens"]


NAMED = "5b1c2d3e-0000-4000-8000-00000000000a"


@pytest.mark.parametrize("name", [NAMED, "m1"])
@pytest.mark.parametrize("fork_first", [False, True])
async def test_a_fork_does_not_store_what_another_session_of_its_client_has(
    client: httpx2.AsyncClient, name: str, fork_first: bool
) -> None:
    copied = user(name, "Numbers start at 300.", id_scope="client")
    told = {"parent": [copied], "fork": [copied, user(f"{name}-own", "Print it larger.", id_scope="client")]}
    order = ["fork", "parent"] if fork_first else ["parent", "fork"]
    reports = [await said(client, await opened(client, session), *told[session]) for session in order]
    assert [(report["accepted"], report["duplicates"]) for report in reports] == (
        [(2, 0), (0, 1)] if fork_first else [(1, 0), (1, 1)]
    )
    assert not any(report["conflicts"] for report in reports)
    again = await said(client, await opened(client, "fork of the fork"), *told["fork"])
    assert (again["accepted"], again["duplicates"]) == (0, 2)


async def test_forks_that_are_sent_at_once_store_a_copied_message_once(client: httpx2.AsyncClient) -> None:
    sessions = [await opened(client, f"fork {n}") for n in range(4)]
    ids = [f"5b1c2d3e-0000-4000-8000-{n:012x}" for n in range(50)]
    told = [user(name, f"Number {name} is taken.", id_scope="client") for name in ids]
    reports = await asyncio.gather(*(said(client, session, *told) for session in sessions))
    assert sum(report["accepted"] for report in reports) == len(told)
    assert sum(report["duplicates"] for report in reports) == 3 * len(told)


async def test_a_fork_does_not_bring_back_a_message_that_was_forgotten(client: httpx2.AsyncClient) -> None:
    copied = user("m1", "Numbers start at 300.", id_scope="client")
    await said(client, await opened(client, "parent"), copied)
    await client.post("/v1/forget", json={"words": ["Numbers start"]})
    report = await said(client, await opened(client, "fork"), copied)
    assert (report["accepted"], report["duplicates"]) == (0, 1)


async def test_a_uuid_that_another_session_has_claimed_with_other_content_is_reported(
    client: httpx2.AsyncClient,
) -> None:
    await said(client, await opened(client, "claims it"), user(NAMED, "I was here first.", id_scope="client"))
    report = await said(client, await opened(client, "own"), user(NAMED, "Numbers start at 300.", id_scope="client"))
    assert (report["accepted"], report["conflicts"]) == (0, [NAMED])


async def test_equal_ids_are_no_copies_unless_the_client_says_that_they_are_unique(client: httpx2.AsyncClient) -> None:
    first, second = await opened(client, "s1"), await opened(client, "s2")
    answer = await client.post("/v1/sessions", json={"client": "codex", "external_id": "s3"})
    other = answer.json()["id"]
    said_once = user(NAMED, "Numbers start at 300.")
    unique = said_once | {"id_scope": "client"}
    reports = [
        await said(client, first, said_once, user("m1", "Yes.", id_scope="client")),
        await said(client, second, said_once),
        await said(client, other, unique),
        await said(client, second, user("m1", "No.", id_scope="client")),
    ]
    assert [report["accepted"] for report in reports] == [2, 1, 1, 1]


async def test_the_unobserved_count_is_the_sum_of_the_tokens(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    report = await said(
        client, session, user("m1", "Hello there."), user("m2", [{"type": "text", "text": "And 部署."}])
    )
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("SELECT sum(tokens) FROM messages").fetchone()
    assert row == (report["unobserved_tokens"],)


async def test_messages_keep_their_order_of_arrival(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    await said(
        client,
        session,
        user("b", "later", sent_at="2026-03-02T10:00:00Z"),
        user("a", "earlier", sent_at="2026-03-01T10:00:00Z"),
    )
    await said(client, session, user("c", "last"))
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute("SELECT external_id FROM messages ORDER BY seq").fetchall()
    assert [row[0] for row in rows] == ["b", "a", "c"]


async def test_concurrent_resends_store_each_message_once(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    batch = [user(f"m{n}", f"Message {n}.") for n in range(50)]
    reports = await asyncio.gather(*(said(client, session, *batch[start:]) for start in range(0, 50, 5)))
    assert sum(report["accepted"] for report in reports) == 50
    assert (await client.get(f"/v1/sessions/{session}")).json()["messages"] == 50


async def test_an_external_id_twice_in_a_batch_is_one_message(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    report = await said(client, session, user("m1", "Hello."), user("m1", "Hello."))
    assert (report["accepted"], report["duplicates"], report["conflicts"]) == (1, 1, [])


async def test_an_external_id_with_other_content_is_reported(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, user("m1", "Hello."))
    report = await said(client, session, user("m1", "Something else."), user("m2", "New."))
    assert (report["accepted"], report["duplicates"], report["conflicts"]) == (1, 1, ["m1"])


@pytest.mark.parametrize("name", ['a:b"<c>&d', "消息/1", "x" * 512, "🙂", "a\nb", "%3A"])
async def test_external_ids_may_be_in_any_script(client: httpx2.AsyncClient, name: str) -> None:
    session = await opened(client, name)
    assert (await said(client, session, user(name, "Never use floats for money.")))["accepted"] == 1
    assert (await said(client, session, user(name, "Never use floats for money.")))["duplicates"] == 1
    assert await opened(client, name) == session
    await client.post(f"/v1/sessions/{session}/observe?wait=true")
    assert (await client.get(f"/v1/sessions/{session}/pack")).status_code == 200


async def test_every_block_of_the_messages_api_is_stored_as_it_came(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    blocks = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls", "nested": {"a": [1, 2.5, None]}}},
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.txt"}], "is_error": False},
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "something_new", "data": {"x": True}},
    ]
    await said(client, session, user("m1", blocks))
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("SELECT content, tokens FROM messages").fetchone()
    assert row is not None
    assert row[0] == blocks
    assert row[1] > 1_600


async def test_a_batch_of_500_takes_a_few_statements(
    client: httpx2.AsyncClient, owner_url: str, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[Any] = []
    execute = psycopg.AsyncCursor.execute

    async def counting(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        counted.append(query)
        return await execute(self, query, *args, **kwargs)

    session = await opened(client)
    batch = [user(f"m{n}", [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "x"}]) for n in range(500)]
    monkeypatch.setattr(psycopg.AsyncCursor, "execute", counting)
    await said(client, session, *batch)
    monkeypatch.undo()
    # Half of them write passages, and the job runner adds its own as long as it takes; none is for a single message.
    assert len(counted) >= 5
    assert max(Counter(map(str, counted)).values()) < 50


async def test_a_tool_that_was_called_in_an_earlier_batch_keeps_its_name(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await opened(client)
    call = {"type": "tool_use", "id": "t1", "name": "WebFetch", "input": {}}
    await said(client, session, {"external_id": "m1", "role": "assistant", "content": [call]})
    await said(client, session, user("m2", [{"type": "tool_result", "tool_use_id": "t1", "content": "a page"}]))
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("SELECT text, trust FROM messages WHERE seq = 2").fetchone()
    assert row == ("[toolResult WebFetch: a page]", "external")


async def test_a_result_is_stored_for_search_at_more_length_than_an_observer_is_shown(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await opened(client)
    await said(client, session, user("m1", [{"type": "tool_result", "tool_use_id": "t1", "content": "page " * 250}]))
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("SELECT length(text), tokens > 2 * shown_tokens FROM messages").fetchone()
    assert row == (len("[toolResult: ]") + 1_249, True)


async def test_secrets_are_masked_before_they_are_stored(client: httpx2.AsyncClient, owner_url: str) -> None:
    secret = "ghp_" + "a1b2c3d4e5" * 4
    session = await opened(client, "s1", cwd=f"/home/{secret}", project=f"https://me:{secret}@example.org/x")
    await said(
        client,
        session,
        user("m1", f"My token is {secret}, always use it."),
        user("m2", [{"type": "tool_result", "tool_use_id": "t", "content": secret}]),
    )
    await client.post(f"/v1/sessions/{session}/observe?wait=true")
    await client.post("/v1/memories", json={"content": f"The token is {secret}.", "tags": [secret]})
    await client.get(f"/v1/sessions/{session}/pack")
    with psycopg.connect(owner_url) as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
        ]
        for table in tables:
            rows = connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(table)))
            assert not [row for row in rows if secret in row[0]], table


async def test_sessions_are_listed_newest_first_and_by_page(client: httpx2.AsyncClient) -> None:
    ids = [await opened(client, f"s{n}") for n in range(5)]
    first = (await client.get("/v1/sessions?limit=3")).json()
    second = (await client.get(f"/v1/sessions?limit=3&before={first['next']}")).json()
    assert [s["id"] for s in first["sessions"] + second["sessions"]] == ids[::-1]
    assert second["next"] is None
    await said(client, ids[2], "Hello.")
    waiting = (await client.get("/v1/sessions?unobserved=true")).json()["sessions"]
    assert [s["id"] for s in waiting] == [ids[2]]
    assert [s["id"] for s in (await client.get("/v1/sessions?external_id=s1")).json()["sessions"]] == [ids[1]]


async def test_sessions_are_listed_by_project_however_its_name_is_written(client: httpx2.AsyncClient) -> None:
    ids = [await opened(client, f"s{n}", project=project) for n, project in enumerate(("Acme/Shop", "acme/blog"))]
    for name, listed in (("acme/SHOP", ids[:1]), ("acme/none", []), ("", ids[::-1])):
        found = (await client.get("/v1/sessions", params={"project": name})).json()["sessions"]
        assert [session["id"] for session in found] == listed, name


def at(moment: str, text: str) -> dict[str, Any]:
    """Return a message with this `sent_at`."""
    return {**user(text, text), "sent_at": moment}


async def test_a_session_begins_when_it_was_held_not_when_it_was_sent(client: httpx2.AsyncClient) -> None:
    today = await opened(client, "today")
    await said(client, today, "Good morning.")
    old = await opened(client, "old")
    await said(client, old, at("2025-03-02T10:00:00Z", "Later."), at("2025-03-01T09:00:00+02:00", "Earlier."))
    older = await opened(client, "older")
    await said(client, older, at("2024-05-01T00:00:00Z", "Long ago."))
    ahead = await opened(client, "ahead")
    await said(client, ahead, at("2190-01-01T00:00:00Z", "From a clock that runs ahead."))
    listed = (await client.get("/v1/sessions")).json()["sessions"]
    assert [session["id"] for session in listed] == [ahead, today, old, older]
    times = {session["id"]: (session["begun_at"], session["last_sent_at"]) for session in listed}
    assert times[old] == ("2025-03-01T07:00:00Z", "2025-03-02T10:00:00Z")
    assert times[ahead][1] < "2100"
    for session in listed:
        assert session["begun_at"] <= session["created_at"]
    nothing = await opened(client, "nothing")
    session = (await client.get(f"/v1/sessions/{nothing}")).json()
    assert (session["begun_at"], session["last_sent_at"]) == (session["created_at"], None)


async def test_a_paged_list_misses_no_session_when_messages_arrive_meanwhile(
    client: httpx2.AsyncClient,
) -> None:
    same = "2025-03-01T09:00:00Z"
    ids = [await opened(client, f"s{n}") for n in range(6)]
    for session in ids:
        await said(client, session, at(same, "Hello."))
    first = (await client.get("/v1/sessions?limit=2")).json()
    read = [session["id"] for session in first["sessions"]]
    assert read == sorted(ids, reverse=True)[:2], "sessions that began together are ordered by id"
    # Older messages arrive for the session at the end of the page, and for one on a later page.
    await said(client, read[1], at("2020-01-01T00:00:00Z", "Much earlier."))
    await said(client, sorted(ids)[0], at("2021-01-01T00:00:00Z", "Much earlier."))
    page = first
    while page["next"]:
        page = (await client.get("/v1/sessions", params={"limit": 2, "before": page["next"]})).json()
        read += [session["id"] for session in page["sessions"]]
    assert set(read) == set(ids)


@pytest.mark.parametrize("place", ["ses_nope", "2025-01-01T00:00:00~ses_1", "2025-01-01T00:00:00Z~", "~ses_1", "x~y"])
async def test_an_invalid_cursor_is_refused_with_a_hint(client: httpx2.AsyncClient, place: str) -> None:
    answer = await client.get("/v1/sessions", params={"before": place})
    assert (answer.status_code, "`next`" in answer.json()["hint"]) == (422, True)


async def test_messages_are_read_back_as_stored(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    blocks = [{"type": "text", "text": "See."}, {"type": "unheard_of", "value": 1}]
    await said(client, session, "One.", {"external_id": "two", "role": "assistant", "content": blocks}, "Three.")
    first = (await client.get(f"/v1/sessions/{session}/messages?limit=2")).json()
    assert [(m["seq"], m["external_id"], m["role"]) for m in first["messages"]] == [
        (1, "One.", "user"),
        (2, "two", "assistant"),
    ]
    assert first["messages"][1]["content"] == blocks
    rest = (await client.get(f"/v1/sessions/{session}/messages?after={first['next']}&limit=2")).json()
    assert ([m["seq"] for m in rest["messages"]], rest["next"]) == ([3], None)
    assert (await client.get("/v1/sessions/ses_nope/messages")).status_code == 404


async def test_concurrent_copies_of_a_batch_are_stored_once(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    names = [f"m{n}" for n in range(50)]
    reports = await asyncio.gather(*(said(client, session, *names[n:], *names[:n]) for n in range(0, 50, 5)))
    assert sum(report["accepted"] for report in reports) == 50
    found = (await client.get(f"/v1/sessions/{session}")).json()
    assert (found["messages"], found["total_tokens"]) == (50, reports[0]["unobserved_tokens"])


async def test_a_session_shows_its_groups_observations_and_coverage(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, "Never use floats for money.")
    await observed(client, session)
    found = (await client.get(f"/v1/sessions/{session}")).json()
    assert (found["groups"], found["observations"], found["jobs"]) == (1, 1, [])
    unreflected = (await client.get("/v1/sessions?unreflected=true")).json()["sessions"]
    assert [listed["id"] for listed in unreflected] == [session]


async def test_a_given_time_zone_or_context_replaces_the_stored_one(client: httpx2.AsyncClient) -> None:
    first = await opened(client, "s1", timezone="Asia/Tokyo")
    for more, timezone, context in (
        ({}, "Asia/Tokyo", 200_000),
        ({"timezone": "Europe/Berlin", "effective_context": 1_000_000}, "Europe/Berlin", 1_000_000),
        ({}, "Europe/Berlin", 1_000_000),
    ):
        assert await opened(client, "s1", **more) == first
        found = (await client.get(f"/v1/sessions/{first}")).json()
        assert (found["timezone"], found["effective_context"]) == (timezone, context)


async def test_a_project_is_the_same_with_white_space_around_it_and_in_any_case(client: httpx2.AsyncClient) -> None:
    for n, name in enumerate(("acme/shop", " Acme/Shop\n", "ACME/SHOP")):
        opening = {"client": "codex", "external_id": f"s{n}", "project": name}
        assert (await client.post("/v1/sessions", json=opening)).json()["project"] == "acme/shop"
        note = {"content": f"Rule {n} holds.", "project": name}
        assert (await client.post("/v1/memories", json=note)).json()["project"] == "acme/shop"
        assert len((await client.get("/v1/memories", params={"project": name})).json()["memories"]) == n + 1
    limits = {"project": "Acme/Shop ", "dry_run": True}
    assert (await client.post("/v1/forget", json=limits)).json() == (
        await client.post("/v1/forget", json=limits | {"project": "acme/shop"})
    ).json()
