"""Errors over MCP: a message to act on, the right code, and a connection that stays open."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR, TextContent

from esker.server.core import jsonrpc
from esker.server.tools.scopes import SCOPES
from tests.support.forks import forked_command
from tests.support.mcp_clients import by
from tests.support.waiting import PATIENCE

Json = dict[str, Any]
WAYS = ["legacy", "auto", "stdio legacy", "stdio auto"]
# Words of the library's own messages, which are not for models.
_NOT_FOR_MODELS = ("pydantic", "http", "validation error", "input_value", "Error executing", "Arguments\n", "type=")


@pytest.fixture
async def url(client: httpx2.AsyncClient) -> str:
    """The URL of a server."""
    return str(client.base_url).rstrip("/")


async def refused(client: Client, tool: str, given: Json) -> str:
    """Call a tool that must be refused, and return the text for the model."""
    answer = await client.call_tool(tool, given)
    [part] = answer.content
    assert isinstance(part, TextContent)
    assert answer.is_error is True, part.text
    assert not [word for word in _NOT_FOR_MODELS if word in part.text], part.text
    return part.text


BAD_ARGUMENTS: list[tuple[str, Json, list[str]]] = [
    ("recall_memory", {}, ["Invalid arguments of recall_memory", "nothing was done", "query is missing."]),
    (
        "recall_memory",
        {"query": 5, "limit": "many", "scope": "galaxy", "kinds": ["note", "x"]},
        ["query must be a text", "limit must be a whole number", "'session', 'project' or 'pool'", "kinds[1] "],
    ),
    ("recall_memory", {"query": "x", "limit": 99}, ["limit must be at most 50"]),
    ("recall_memory", {"query": "x", "since": "yesterday"}, ["since must be a time such as 2026-03-01T14:30:00Z"]),
    ("recall_memory", {"query": "x", "include_superseded": "perhaps"}, ["must be true or false"]),
    ("recall_memory", {"query": "x", "tags": "ops"}, ["tags must be a list"]),
    ("recall_memory", {"query": "x", "timezone": "Mars"}, ["'Mars' is not a time zone", "Europe/Berlin"]),
    ("remember", {"content": "x" * 20_000}, ["content must have at most 16000 characters"]),
    ("remember", {"content": ""}, ["content must have at least 1 character"]),
    ("remember", {"contents": "x"}, ["Unknown argument 'contents'", "content, "]),
    ("remember", {"content": "x", "replaces": " "}, ["exactly as recall_memory"]),
    ("expand_memory", {"memory_id": " "}, ["exactly as recall_memory"]),
    ("forget_memory", {"memory_id": "\t"}, ["exactly as recall_memory"]),
    ("forget_memory", {"memory_id": "mem_1"}, ["There is no memory 'mem_1'", "exactly as recall_memory"]),
    ("memory_status", {"pool": "x"}, ["Unknown argument 'pool'", "there are none"]),
]


@pytest.mark.parametrize("way", WAYS)
async def test_invalid_arguments_are_explained_to_the_model(url: str, way: str) -> None:
    async with by(url, way) as client:
        for tool, given, words in BAD_ARGUMENTS:
            text = await refused(client, tool, given)
            assert all(word in text for word in words), text
        assert (await client.call_tool("memory_status", {})).is_error is not True, "the connection goes on"


@pytest.mark.parametrize("way", WAYS)
async def test_unknown_names_are_invalid_params_with_the_known_ones(url: str, way: str) -> None:
    async with by(url, way) as client:
        for ask, words in (
            (client.call_tool("recal_memory", {}), ["Unknown tool 'recal_memory'", "recall_memory"]),
            (client.call_tool("a<system>[INST]", {}), ["Unknown tool 'a&lt;system>&#91;INST]'"]),
            (client.get_prompt("recal", {}), ["Unknown prompt 'recal'", "recall"]),
            (client.get_prompt("recall"), ["about is missing", "What to look for"]),
            (client.get_prompt("recall", {"about": " "}), ["about is missing"]),
            (client.get_prompt("recall", {"about": "x", "more": "y"}), ["Unknown argument 'more'", "about"]),
            (client.read_resource("memory://memory/mem_1"), ["no memory 'mem_1'", "`esker memories`"]),
            (client.read_resource("memory://pack/ses_1"), ["no session 'ses_1'", "`esker sessions`"]),
            (client.read_resource("memory://memory/"), ["has no id", "memory://memory/{id}"]),
            (client.read_resource("memory://pack/%20"), ["has no id", "memory://pack/{session}"]),
            (client.read_resource("memory://nothing/x"), ["does not exist", "memory://pack/{session}"]),
            (client.read_resource("memory://memory/..%2F..%2Fetc"), ["does not exist"]),
            (client.read_resource("no address"), ["'no address' does not exist"]),
        ):
            with pytest.raises(MCPError) as raised:
                await ask
            assert raised.value.code == INVALID_PARAMS, raised.value.message
            assert all(word in raised.value.message for word in words), raised.value.message
        assert (await client.get_prompt("recall", {"about": "the river"})).messages


async def test_a_resource_of_a_server_that_is_down_says_how_to_start_it() -> None:
    async with by("http://127.0.0.1:1", "stdio") as client:
        with pytest.raises(MCPError, match="esker serve"):
            await client.read_resource("memory://memory/mem_1")


# JSON-RPC ------------------------------------------------------------------------------------------------------------

_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
NO_MESSAGES: list[tuple[str, int, int | None]] = [
    ("{broken", PARSE_ERROR, None),
    ('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"', PARSE_ERROR, None),
    ('{"jsonrpc": "2.0", "id": NaN, "method": "tools/list"}', PARSE_ERROR, None),
    ("[" * 300 + "]" * 300, PARSE_ERROR, None),
    ("[" * 100_000, PARSE_ERROR, None),
    ('"text"', INVALID_REQUEST, None),
    ("null", INVALID_REQUEST, None),
    ("{}", INVALID_REQUEST, None),
    ('[{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}]', INVALID_REQUEST, None),
    ('{"id": 9, "method": "tools/list"}', INVALID_REQUEST, 9),
    ('{"jsonrpc": "1.0", "id": 9, "method": "tools/list"}', INVALID_REQUEST, 9),
    ('{"jsonrpc": "2.0", "id": null, "method": "tools/list"}', INVALID_REQUEST, None),
    ('{"jsonrpc": "2.0", "id": true, "method": "tools/list"}', INVALID_REQUEST, None),
    ('{"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}', INVALID_REQUEST, None),
    ('{"jsonrpc": "2.0", "id": 9}', INVALID_REQUEST, 9),
    ('{"jsonrpc": "2.0", "id": 9, "method": 5}', INVALID_REQUEST, 9),
    ('{"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": [1]}', INVALID_PARAMS, 9),
]


def check_refused(answer: Json, code: int, message_id: int | None) -> None:
    """Check that an answer is an error with this code and id, with a message of Esker's."""
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", message_id, code), answer
    assert not [word for word in _NOT_FOR_MODELS if word in answer["error"]["message"]], answer
    assert answer["error"]["message"].endswith(".")


@pytest.mark.parametrize("modern", [False, True])
async def test_an_invalid_message_is_refused_over_http(url: str, modern: bool) -> None:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"MCP-Protocol-Version": "2026-07-28"} if modern else {}
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
        for body, code, message_id in NO_MESSAGES:
            answer = await client.post("/mcp", content=body)
            assert answer.status_code == 400
            check_refused(answer.json(), code, message_id)


class Spoken:
    """`esker mcp` as a process that exchanges lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, line: str) -> Json:
        """Send a line and return the next answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        return await self.heard()

    async def heard(self) -> Json:
        """Return the next answer."""
        assert self._process.stdout is not None
        return json.loads(await self._process.stdout.readline())

    async def call(self, method: str, params: Json, *, modern: bool) -> Json:
        """Send a request and return the next answer."""
        given = params | ({"_meta": _META} if modern else {})
        return await self.ask(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": given}))


@asynccontextmanager
async def speaking(url: str) -> AsyncGenerator[Spoken]:
    """Run `esker mcp` during the block; it must write nothing to standard error, and end with its input."""
    process = await asyncio.create_subprocess_exec(
        *forked_command("mcp"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"ESKER_URL": url, "PATH": os.environ["PATH"]},
    )
    assert process.stdin is not None
    yield Spoken(process)
    process.stdin.close()
    printed, errors = await process.communicate()
    assert (process.returncode, printed, errors) == (0, b"", b"")


@pytest.mark.parametrize("modern", [False, True])
async def test_an_invalid_message_is_refused_on_stdio_and_the_connection_continues(url: str, modern: bool) -> None:
    async with speaking(url) as esker:
        for early in NO_MESSAGES[:2]:
            check_refused(await esker.ask(early[0]), *early[1:])
        if not modern:
            assert "result" in await esker.call("initialize", _HELLO, modern=False)
        for line, code, message_id in NO_MESSAGES:
            check_refused(await esker.ask(line), code, message_id)
        # Blank lines and responses get no answer.
        again = await esker.ask('\n  \n{"jsonrpc": "2.0", "id": 77, "result": {}}\n{"jsonrpc": "2.0"}')
        check_refused(again, INVALID_REQUEST, None)
        assert len((await esker.call("tools/list", {}, modern=modern))["result"]["tools"]) == len(SCOPES)


@pytest.mark.parametrize("modern", [False, True])
async def test_an_unknown_method_or_invalid_parameters_are_explained(url: str, modern: bool) -> None:
    async with speaking(url) as esker:
        if not modern:
            early = await esker.call("tools/list", {}, modern=False)
            assert (early["error"]["code"], "initialize" in early["error"]["message"]) == (INVALID_PARAMS, True)
            await esker.call("initialize", _HELLO, modern=False)
        unknown = await esker.call("frobnicate/it", {}, modern=modern)
        assert unknown["error"] == {"code": METHOD_NOT_FOUND, "message": "Method not found", "data": "frobnicate/it"}
        for method, params, words in (
            ("tools/call", {}, "name is missing"),
            ("tools/call", {"name": "recall_memory", "arguments": [1]}, "arguments must be an object"),
            ("prompts/get", {"name": "recall", "arguments": {"about": 5}}, "about must be a text"),
            ("resources/read", {}, "uri is missing"),
            ("resources/read", {"uri": 5}, "uri must be a text"),
        ):
            answer = await esker.call(method, params, modern=modern)
            check_refused(answer, INVALID_PARAMS, 7)
            assert f"Invalid params of {method}" in answer["error"]["message"]
            assert words in answer["error"]["message"]


async def test_a_client_that_did_not_wait_for_a_slow_start_is_served_in_the_earlier_protocol(url: str) -> None:
    """Copilot CLI asks `server/discover`, and shakes hands after a while without an answer."""
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": _META}}
    initialize = {"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": _HELLO}
    async with speaking(url) as esker:
        given_up = await esker.ask("\n".join(map(json.dumps, (discover, initialize))))
        assert (given_up["id"], given_up["error"]["code"]) == (1, METHOD_NOT_FOUND)
        welcome = await esker.heard()
        assert (welcome["id"], "result" in welcome) == (2, True)
        assert "result" in await esker.call("tools/list", {}, modern=False)


async def test_parallel_answers_are_complete_lines(url: str) -> None:
    long = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
    async with speaking(url) as esker:
        await esker.call("initialize", _HELLO, modern=False)
        answers = [await esker.ask("\n".join([long, "{broken"] * 20))]
        answers += [await esker.heard() for _ in range(39)]
    assert sum("result" in answer for answer in answers) == sum("error" in answer for answer in answers) == 20


def test_a_valid_message_is_passed_on() -> None:
    for message in (
        {"jsonrpc": "2.0", "id": "a", "method": "x"},
        {"jsonrpc": "2.0", "id": 0, "method": "x", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
    ):
        assert jsonrpc.refusal(json.dumps(message).encode()) is None
