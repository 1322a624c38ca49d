"""MCP: the tool over HTTP and stdio, for clients of both eras."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from server.app import make_parts
from server.core.clock import system_clock
from server.core.settings import Settings
from server.db.database import Database
from server.usecases.authenticate import create_key
from server.usecases.parts import Parts
from tests.support.serving import serving

MODES = ["legacy", "auto"]


@pytest.fixture
async def served(database_url: str, settings: Settings) -> AsyncGenerator[str]:
    """The URL of a server with two memories."""
    async with serving(make_parts(settings, Database(database_url), system_clock)) as url:
        async with httpx2.AsyncClient(base_url=url) as client:
            rows = [{"content": "Our river is the Rhine.", "project": "p"}, {"content": "Our hill is the Brocken."}]
            await client.post("/v1/memories/batch", json={"memories": rows})
        yield url


@asynccontextmanager
async def connected(url: str, mode: str, key: str | None = None) -> AsyncGenerator[Client]:
    """A real MCP client, over HTTP."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", MODES)
async def test_the_tool_is_described_for_a_model(served: str, mode: str) -> None:
    async with connected(served, mode) as client:
        [tool] = (await client.list_tools()).tools
        assert tool.name == "recall_memory"
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert set(tool.input_schema["required"]) == {"query"}
        assert "recall_memory" in (client.instructions or "")


@pytest.mark.parametrize("mode", MODES)
async def test_recall_answers_in_text_and_in_structure(served: str, mode: str) -> None:
    async with connected(served, mode) as client:
        answer = await client.call_tool("recall_memory", {"query": "river"})
        assert answer.is_error is not True
        [part] = answer.content
        assert isinstance(part, TextContent)
        lines = part.text.splitlines()
        assert (lines[0], lines[-1]) == ("<recalled_memories>", "</recalled_memories>")
        assert "Our river is the Rhine." in lines[1]
        assert "just now" in lines[1]
        assert "project p" in lines[1]
        assert answer.structured_content is not None
        assert answer.structured_content["hits"][0]["content"] == "Our river is the Rhine."


@pytest.mark.parametrize("mode", MODES)
async def test_nothing_known_is_said_plainly(served: str, mode: str) -> None:
    async with connected(served, mode) as client:
        answer = await client.call_tool("recall_memory", {"query": "submarines"})
        assert isinstance(answer.content[0], TextContent)
        assert "Nothing in memory is about this." in answer.content[0].text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": " \n"}, "query"),
        ({"query": "x", "limit": 99}, "limit"),
        ({"query": "x", "scope": "project"}, "needs a project"),
    ],
)
async def test_an_error_says_what_to_mend(served: str, arguments: dict[str, object], words: str) -> None:
    async with connected(served, "legacy") as client:
        answer = await client.call_tool("recall_memory", arguments)
        assert answer.is_error is True
        assert isinstance(answer.content[0], TextContent)
        assert words in answer.content[0].text


async def test_a_key_is_needed_where_keys_exist(served: str, parts: Parts) -> None:
    key = await create_key(parts, name="a", pool="default", scopes=["read"])
    async with httpx2.AsyncClient(base_url=served) as client:
        assert (await client.post("/mcp", json={})).status_code == 401
    async with connected(served, "legacy", key.key) as client:
        answer = await client.call_tool("recall_memory", {"query": "river"})
        assert answer.is_error is not True


@pytest.mark.parametrize("mode", MODES)
async def test_the_same_tool_answers_on_stdio(served: str, mode: str) -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "server.cli.main", "mcp"],
        env={"ESKER_URL": served, "PATH": os.environ["PATH"]},
        cwd=os.getcwd(),
    )
    async with Client(command, mode=mode) as client:  # type: ignore[arg-type]
        answer = await client.call_tool("recall_memory", {"query": "river"})
        assert answer.structured_content is not None
        assert answer.structured_content["hits"][0]["content"] == "Our river is the Rhine."


async def test_stdio_without_a_server_says_how_to_start_one() -> None:
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "server.cli.main", "mcp"],
        env={"ESKER_URL": "http://127.0.0.1:1", "PATH": os.environ["PATH"]},
        cwd=os.getcwd(),
    )
    async with Client(command) as client:
        answer = await client.call_tool("recall_memory", {"query": "river"})
        assert answer.is_error is True
        assert isinstance(answer.content[0], TextContent)
        assert "esker serve" in answer.content[0].text


CALL = (
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "recall_memory",'
    ' "arguments": {"query": "river \\ud83d\\u0000"}}}'
)
HELLO = (
    '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",'
    ' "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}'
)


async def test_half_a_character_is_cleaned_over_http(served: str) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(base_url=served, headers=headers) as client:
        answer = await client.post("/mcp", content=CALL)
    assert answer.status_code == 200
    assert "Rhine" in answer.json()["result"]["content"][0]["text"]


async def test_half_a_character_is_cleaned_on_stdio(served: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "server.cli.main", "mcp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={"ESKER_URL": served, "PATH": os.environ["PATH"]},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{HELLO}\n{CALL}\n".encode())
    await process.stdin.drain()
    answers = [json.loads(await process.stdout.readline()) for _ in range(2)]
    assert [answer["id"] for answer in answers] == [1, 7]
    assert "Rhine" in answers[1]["result"]["content"][0]["text"]
    process.stdin.close()
    assert await process.wait() == 0


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
async def test_there_is_no_stream_to_hold_open_and_nothing_but_calls(served: str, method: str) -> None:
    async with httpx2.AsyncClient(base_url=served, headers={"Accept": "text/event-stream"}) as client:
        answer = await client.request(method, "/mcp")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_call_larger_than_any_question_is_refused_before_it_is_read(served: str) -> None:
    async with httpx2.AsyncClient(base_url=served) as client:
        answer = await client.post("/mcp", content=b'["\\u0000",' + b"[]," * 500_000 + b"1]")
    assert (answer.status_code, "1,048,576" in answer.json()["detail"]) == (413, True)


async def test_a_call_that_is_too_large_is_refused(database_url: str, settings: Settings) -> None:
    small = settings.model_copy(update={"max_body_bytes": 2_000})

    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(10):
            yield b" " * 1_000

    parts = make_parts(small, Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url) as client:
        assert (await client.post("/mcp", content=chunks())).status_code == 413
        assert (await client.post("/v1/recall", content=chunks())).status_code == 413
