"""No words of memory are in logs, metrics, the audit trail or errors, however much is logged."""

import logging
from typing import Any

import httpx2
import psycopg
import pytest
from starlette.types import Receive, Scope, Send

from esker.server.core.config.logs import configure_logs
from esker.server.core.records import Principal
from esker.server.db.database import Database
from tests.support.api import observed, opened, said
from tests.support.logs import CANARY
from tests.support.mcp_clients import connected
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE


async def test_what_is_remembered_observed_and_asked_is_not_logged(
    client: httpx2.AsyncClient, logged: list[str]
) -> None:
    session = await opened(client, project="boats")
    await said(client, session, f"We decided that the {CANARY} boat is painted blue.")
    await observed(client, session)
    memory = (await client.post("/v1/memories", json={"content": f"The {CANARY} is ripe.", "tags": [CANARY]})).json()
    assert CANARY in (await client.post("/v1/recall", json={"query": CANARY})).text
    await client.get(f"/v1/memories/{memory['id']}/sources")
    await client.patch(f"/v1/memories/{memory['id']}", json={"content": f"The {CANARY} is eaten."})
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    await client.get("/v1/export")
    await client.get("/v1/briefing")
    async with connected(str(client.base_url).rstrip("/"), "auto") as mcp:
        await mcp.call_tool("recall_memory", {"query": CANARY})
        await mcp.call_tool("remember", {"content": f"A {CANARY} a day."})
    logging.getLogger("esker").debug("the end")
    assert logged[-1] == "esker: the end"
    assert not [line for line in logged if CANARY in line]
    for path in ("/metrics", "/v1/audit", "/v1/status", "/readyz"):
        assert CANARY not in (await client.get(path)).text, path


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/memories", {"content": CANARY, "priority": CANARY}),
        ("POST", "/v1/memories", {"content": CANARY * 10_000}),
        ("POST", "/v1/memories", {"content": [CANARY]}),
        ("POST", "/v1/memories", {"content": CANARY, "session_id": "ses_nowhere"}),
        ("POST", "/v1/memories/batch", {"memories": [{"content": CANARY}, {"content": ""}]}),
        ("POST", "/v1/recall", {"query": CANARY, "limit": 0}),
        ("POST", "/v1/recall", {"query": CANARY, "timezone": "Nowhere/Land"}),
        ("POST", "/v1/sessions/s/messages", {"messages": [{"external_id": "1", "role": "user", "content": CANARY}]}),
        ("POST", "/v1/sessions/ses_x/messages", {"messages": [{"external_id": "1", "role": CANARY, "content": "x"}]}),
        ("PATCH", "/v1/memories/mem_nowhere", {"content": CANARY}),
        ("POST", "/v1/import", {"type": CANARY}),
    ],
)  # fmt: skip
async def test_an_error_does_not_repeat_the_words_of_a_request(
    client: httpx2.AsyncClient, logged: list[str], method: str, path: str, body: Any
) -> None:
    answer = await client.request(method, path, json=body)
    assert 400 <= answer.status_code < 500
    assert CANARY not in answer.text
    assert not [line for line in logged if CANARY in line]


async def test_an_error_of_postgres_does_not_repeat_what_it_was_given(
    who: Principal, database: Database, logged: list[str]
) -> None:
    with pytest.raises(psycopg.errors.InvalidTextRepresentation) as caught:
        async with database.tenant(who.pool_id) as connection:
            # Its context quotes the document.
            await connection.execute("SELECT %s::json", [f'{{"content": "{CANARY}", ?'])
    assert CANARY not in str(caught.value)
    assert "type json" in str(caught.value)
    logging.getLogger("esker").exception("it failed", exc_info=caught.value)
    assert "it failed" in logged[-1]
    assert CANARY not in logged[-1]


async def test_the_access_log_has_paths_without_queries(capfd: pytest.CaptureFixture[str]) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    before = list(logging.root.handlers)
    configure_logs("debug")
    logging.getLogger("uvicorn.access").propagate = True  # a server without an access log has switched it off
    try:
        async with serving_app(app, access_log=True) as url, httpx2.AsyncClient(timeout=PATIENCE) as client:
            await client.get(f"{url}/v1/memories?project={CANARY}")
    finally:
        logging.root.handlers[:] = before
        logging.root.setLevel(logging.WARNING)
    written = capfd.readouterr().err
    assert '"GET /v1/memories HTTP/1.1" 200' in written
    assert CANARY not in written
