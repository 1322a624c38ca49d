"""Requests: each has an id, and an answer also if it fails or the server stops."""

import asyncio
import json
import logging
import re

import httpx2
import pytest
from starlette.types import Message, Receive, Scope, Send

from esker.server.app import make_app, make_parts
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.rest.requests import Requests
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE


async def test_every_answer_has_the_id_of_its_request(client: httpx2.AsyncClient) -> None:
    answers = [await client.get(path) for path in ("/livez", "/v1/memories", "/v1/memories/mem_none", "/nowhere")]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 4
    assert all(re.fullmatch("req_[0-9a-f]{24}", each) for each in ids)
    assert [answer.json()["request_id"] for answer in answers[2:]] == ids[2:]


@pytest.mark.parametrize(("given", "is_kept"), [("trace-1.a:b", True), ("x" * 65, False), ("a b", False)])
async def test_an_id_that_a_client_gives_is_kept_if_it_is_one(
    client: httpx2.AsyncClient, given: str, is_kept: bool
) -> None:
    answer = await client.get("/livez", headers={"X-Request-Id": given})
    assert (answer.headers["x-request-id"] == given) is is_kept


async def test_a_fault_is_answered_and_logged_with_the_id_of_the_request(log_records: list[logging.LogRecord]) -> None:
    async def fault(scope: Scope, receive: Receive, send: Send) -> None:
        raise ValueError("Of no use to the client.")

    async with serving_app(Requests(fault)) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        answer = await client.get("/fault")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert "Of no use" not in answer.text
    [record] = [record for record in log_records if record.exc_info]
    assert record.getMessage() == "GET /fault failed"


async def test_a_request_that_a_stopping_server_ends_is_told_to_come_again() -> None:
    sent: list[Message] = []
    begun = asyncio.Event()

    async def hang(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def receive() -> Message:
        raise NotImplementedError

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    task = asyncio.create_task(Requests(hang)(scope, receive, send))
    await begun.wait()
    task.cancel()
    await task
    headers = dict(sent[0]["headers"])
    assert (sent[0]["status"], headers[b"retry-after"]) == (503, b"5")
    assert headers[b"content-type"] == b"application/problem+json"
    assert "The server is stopping" in json.loads(sent[1]["body"])["detail"]


async def test_an_answer_that_says_unavailable_is_logged_with_its_reason(
    log_records: list[logging.LogRecord],
) -> None:
    nowhere = Database("postgresql://x@127.0.0.1:1/x", wait_seconds=0.05)
    parts = make_parts(Settings(embedder="none"), nowhere)
    async with serving_app(make_app(parts)) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        answer = await client.get("/v1/memories?project=unsaid")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    [line] = [record.getMessage() for record in log_records if record.name == "esker.server.rest.requests"]
    assert line == "GET /v1/memories was answered with 503: The database cannot be reached."
