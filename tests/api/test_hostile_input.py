"""Hostile text is cleaned and stored; hostile structure gets a clear 4xx and changes nothing."""

import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import Any

import httpx2
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.records import Principal
from esker.server.db.database import Database
from esker.server.providers.text_processes import TextProcesses
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from tests.support.api import opened, said
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

JSON = {"Content-Type": "application/json"}


async def test_nul_bytes_and_lone_surrogates_are_cleaned_and_stored(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    text = b'[{"type": "text", "text": "a\\u0000b\\ud800c"}]'
    body = b'{"messages": [{"external_id": "m\\u00001", "role": "user", "content": ' + text + b"}]}"
    answer = await client.post(f"/v1/sessions/{session}/messages", content=body, headers=JSON)
    assert answer.json()["accepted"] == 1
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("SELECT external_id, content, text FROM messages").fetchone()
    assert row == ("m\ufffd1", [{"type": "text", "text": "a\ufffdb\ufffdc"}], "a\ufffdb\ufffdc")


async def test_megabyte_lines_and_images_are_stored_whole(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    line = "x" * 1_100_000
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 1_100_000}}
    report = await said(
        client,
        session,
        {"external_id": "m1", "role": "user", "content": line},
        {"external_id": "m2", "role": "user", "content": [image, {"type": "text", "text": "The button is cut off."}]},
    )
    assert report["accepted"] == 2
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute("SELECT length(content::text) > 1000000 FROM messages").fetchall()
    assert rows == [(True,), (True,)]
    observed = await client.post(f"/v1/sessions/{session}/observe?wait=true")
    assert observed.status_code == 200
    assert (await client.get(f"/v1/sessions/{session}")).json()["unobserved_tokens"] == 0


GOOD = {"external_id": "good", "role": "user", "content": "A good message."}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"role": "wizard"}, "role"),
        ({"role": None}, "role"),
        ({"sent_at": "yesterday-ish"}, "sent_at"),
        ({"sent_at": "2026-13-45T00:00:00Z"}, "sent_at"),
        ({"sent_at": "0001-01-01T00:00:00Z"}, "year"),
        ({"sent_at": "9999-12-31T23:59:59-23:00"}, "year"),
        ({"external_id": ""}, "external_id"),
        ({"external_id": "x" * 513}, "external_id"),
        ({"external_id": 5}, "external_id"),
        ({"content": None}, "content"),
        ({"content": 5}, "content"),
        ({"content": [{"text": "no type"}]}, "content[0]"),
        ({"content": ["loose"]}, "content[0]"),
        ({"content": [{"type": "text", "text": 5}]}, "content[0]"),
    ],
)
async def test_an_invalid_message_is_named_and_its_batch_is_not_stored(
    client: httpx2.AsyncClient, change: dict[str, Any], words: str
) -> None:
    session = await opened(client)
    body = {"messages": [GOOD, {**GOOD, "external_id": "bad", **change}]}
    answer = await client.post(f"/v1/sessions/{session}/messages", json=body)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert (await client.get(f"/v1/sessions/{session}")).json()["messages"] == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"messages": 5}',
        b'{"messages": {}}',
        b'{"messages": [5]}',
        b"[" * 100_000,
        b'{"messages": [' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"]}",
        b'{"messages": [{"external_id": "m", "role": "user", "content": NaN}]}',
    ],
)
async def test_an_invalid_body_is_refused(client: httpx2.AsyncClient, body: bytes) -> None:
    session = await opened(client)
    answer = await client.post(f"/v1/sessions/{session}/messages", content=body, headers=JSON)
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    assert (await client.get(f"/v1/sessions/{session}")).json()["messages"] == 0


async def test_only_content_nested_too_deep_is_refused(
    client: httpx2.AsyncClient,
) -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: Any = 1
        for _ in range(depth):
            value = {"a": value}
        return {
            "external_id": f"m{depth}",
            "role": "assistant",
            "content": [{"type": "tool_use", "name": "X", "input": value}],
        }

    session = await opened(client)
    assert (await said(client, session, nested(40)))["accepted"] == 1
    answer = await client.post(f"/v1/sessions/{session}/messages", json={"messages": [nested(80)]})
    assert answer.status_code == 422
    assert "levels deep" in answer.json()["detail"]


async def test_a_body_over_the_limit_is_refused(database_url: str) -> None:
    limits = Settings.from_environment({"ESKER_EMBEDDER": "none", "ESKER_MAX_BODY_BYTES": "20000"})
    parts = make_parts(limits, Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        session = await opened(client)
        huge = {"messages": [{**GOOD, "content": "x" * 30_000}]}
        answer = await client.post(f"/v1/sessions/{session}/messages", json=huge)
        assert answer.status_code == 413
        assert answer.headers["content-type"] == "application/problem+json"
        assert (await client.get(f"/v1/sessions/{session}")).json()["messages"] == 0

        async def chunks() -> AsyncGenerator[bytes]:
            for _ in range(30):
                yield b" " * 1_000

        streamed = await client.post(f"/v1/sessions/{session}/messages", content=chunks(), headers=JSON)
        assert streamed.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/sessions/ses_nope", None),
        ("POST", "/v1/sessions/ses_nope/messages", {"messages": [GOOD]}),
        ("POST", "/v1/sessions/ses_nope/observe?wait=true", None),
        ("POST", "/v1/sessions/ses_nope/observe", None),
        ("POST", "/v1/sessions/ses_nope/reflect?wait=true", None),
        ("POST", "/v1/sessions/ses_nope/events", {"kind": "session_end"}),
        ("GET", "/v1/sessions/ses_nope/pack", None),
        ("GET", "/v1/memories/mem_nope", None),
        ("DELETE", "/v1/memories/mem_nope", None),
        ("POST", "/v1/memories", {"content": "x", "session_id": "ses_nope"}),
        ("POST", "/v1/recall", {"query": "x", "scope": "session", "session_id": "ses_nope"}),
        ("GET", "/nowhere", None),
        ("GET", "/v1/sessions/%00/pack", None),
        ("GET", "/v1/memories/%F0%9F%99%82", None),
    ],
)
async def test_an_unknown_id_is_a_404(client: httpx2.AsyncClient, method: str, path: str, body: Any) -> None:
    answer = await client.request(method, path, json=body)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        {"client": "", "external_id": "s"},
        {"client": "   ", "external_id": "s"},
        {"client": "x" * 65, "external_id": "s"},
        {"client": "api"},
        {"client": "api", "external_id": "s", "timezone": "Mars/Olympus"},
        {"client": "api", "external_id": "s", "timezone": "../../../etc/passwd"},
        {"client": "api", "external_id": "s", "effective_context": 5},
        {"client": "api", "external_id": "s", "effective_context": "big"},
        {"client": "api", "external_id": "s", "cwd": "x" * 5_000},
    ],
)
async def test_an_invalid_session_is_refused(client: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    answer = await client.post("/v1/sessions", json=body)
    assert answer.status_code == 422
    assert (await client.get("/v1/sessions")).json()["sessions"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"query": ""},
        {"query": "   "},
        {"query": "x" * 4_001},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 51},
        {"query": "x", "scope": "galaxy"},
        {"query": "x", "scope": "session"},
        {"query": "x", "scope": "project"},
        {"query": "x", "kinds": []},
        {"query": "x", "kinds": ["magic"]},
        {"query": "x", "since": "soon"},
        {"query": "x", "max_tokens": 0},
        {"query": "x", "scop": "pool"},
    ],
)
async def test_an_invalid_question_is_refused(client: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    assert (await client.post("/v1/recall", json=body)).status_code == 422


any_json: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "text", "source", "x"]), inner, max_size=3)
    ),
    max_leaves=12,
)


async def test_no_json_ever_causes_a_500(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    bodies: list[bytes] = []

    @settings(database=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    @given(st.dictionaries(st.sampled_from(["external_id", "role", "content", "sent_at"]), any_json), any_json)
    def collect(message: dict[str, Any], loose: Any) -> None:
        bodies.extend([json.dumps({"messages": [{**GOOD, **message}]}).encode(), json.dumps(loose).encode()])

    collect()
    for body in bodies:
        for path in (f"/v1/sessions/{session}/messages", "/v1/recall", "/v1/memories", "/v1/sessions"):
            answer = await client.post(path, content=body, headers=JSON)
            assert answer.status_code < 500, (path, body, answer.text)


@pytest.mark.parametrize("content_type", ["", "application/x-www-form-urlencoded", "text/plain"])
async def test_a_body_that_is_not_sent_as_json_is_refused_with_the_header_to_send(
    client: httpx2.AsyncClient, content_type: str
) -> None:
    headers = {"Content-Type": content_type} if content_type else {}
    answer = await client.post("/v1/memories", content=b'{"content": "Our port is 8377."}', headers=headers)
    assert answer.status_code == 422
    problem = answer.json()
    assert problem["detail"] == "The body must be sent as JSON."
    assert "Content-Type: application/json" in problem["hint"]


@pytest.mark.parametrize("content_type", ["application/json", "Application/JSON; charset=utf-8"])
async def test_a_body_that_is_sent_as_json_is_read(client: httpx2.AsyncClient, content_type: str) -> None:
    body = b'{"content": "Our port is 8377."}'
    answer = await client.post("/v1/memories", content=body, headers={"Content-Type": content_type})
    assert answer.status_code == 201


class Reading(TextProcesses):
    """Records the size of each piece of work, and does it."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[str, int]] = []

    async def run(self, characters: int, work: Callable[..., Any], *arguments: Any) -> Any:
        self.done.append((work.__name__, characters))
        return work(*arguments)


async def test_the_work_on_a_message_is_given_with_its_length(parts: Parts, who: Principal) -> None:
    reading = Reading()
    parts = replace(parts, processes=reading)
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    said = "We decided to moor the eel boat at quay 7. " * 50
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", said)])
    assert len(reading.done) == 3
    assert all(characters >= len(said.strip()) for _, characters in reading.done), reading.done
