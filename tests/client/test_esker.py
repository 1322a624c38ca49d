"""The Python client: the documented agent as a process, every method, and Esker's errors."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from anthropic import AsyncAnthropic
from pydantic import TypeAdapter
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from esker import Esker, EskerMemoryTool, Message
from esker.server.client.session_report import SessionMemoryReport
from esker.server.core.errors import Conflict, EskerError, Forbidden, InvalidInput, NotFound, Unauthorized, Unavailable
from esker.server.core.http_answers import pause
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from tests.support.forks import FILE, forked_command
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.processes import ROOT, environment
from tests.support.serving import serving_app


@pytest.fixture
async def esker(client: httpx2.AsyncClient) -> AsyncGenerator[Esker]:
    """A client of a server with an empty pool."""
    async with Esker(str(client.base_url)) as connected:
        yield connected


async def loop_of_the_page(
    client: httpx2.AsyncClient, model: ModelServer, folder: Path, *, alone: bool = False
) -> asyncio.subprocess.Process:
    """Start the documented agent as a process, in an interpreter of its own on request, which costs seconds."""
    page = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    program = folder / "agent.py"
    program.write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    there = {"ESKER_URL": str(client.base_url), "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "k"}
    return await asyncio.create_subprocess_exec(
        *((sys.executable, str(program)) if alone else forked_command(FILE, str(program))),
        cwd=ROOT,
        env=environment(PYTHONPATH=str(ROOT), **there),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@pytest.mark.parametrize("end", ["end of input", "Ctrl-C"])
async def test_the_loop_of_the_page_ends_quietly(client: httpx2.AsyncClient, tmp_path: Path, end: str) -> None:
    async with model_server() as model:
        model.say("You are welcome.")
        process = await loop_of_the_page(client, model, tmp_path, alone=end == "Ctrl-C")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Thank you.\n")
        await process.stdout.readuntil(b"welcome.\n> ")
        if end == "Ctrl-C":
            # Python handles a signal while it reads, not just before.
            while psutil.Process(process.pid).status() != psutil.STATUS_SLEEPING:
                pass
            process.send_signal(signal.SIGINT)
        else:
            process.stdin.close()
        printed, errors = await process.communicate()
        assert (process.returncode, printed, errors) == (0, b"", b"")
    [session] = (await client.get("/v1/sessions")).json()["sessions"]
    assert session["messages"] == 2


async def test_ctrl_c_ends_the_loop_of_the_page_while_it_waits_for_the_model(
    client: httpx2.AsyncClient, tmp_path: Path
) -> None:
    async with model_server() as model:
        never = asyncio.Event()
        model.say(ScriptedAnswer("Never.", wait_for=never))
        process = await loop_of_the_page(client, model, tmp_path)
        assert process.stdin is not None
        process.stdin.write(b"Thank you.\n")
        await model.arrived.wait()
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()
        never.set()
        assert (process.returncode, errors) == (0, b"")


async def test_the_loop_of_the_page_runs_and_remembers(client: httpx2.AsyncClient, tmp_path: Path) -> None:
    await client.post("/v1/memories", json={"content": "We deploy with make ship.", "project": "shop"})
    async with model_server() as model:
        model.say("With make ship.", "You are welcome.")
        process = await loop_of_the_page(client, model, tmp_path)
        printed, errors = await process.communicate(b"How do we deploy?\nThank you.\n\n")
        assert (process.returncode, errors) == (0, b"")
    assert printed.decode() == "> With make ship.\n> You are welcome.\n> "
    first, second = model.asked
    system = "\n".join(block["text"] for block in first["system"])
    assert system.startswith("You are a helpful assistant.")
    assert "We deploy with make ship." in system
    assert [message["role"] for message in second["messages"]] == ["user", "assistant", "user"]
    marked = [block for block in second["system"] if "cache_control" in block]
    assert marked
    assert marked[-1] in first["system"], "the prefix stays the same"
    [session] = (await client.get("/v1/sessions")).json()["sessions"]
    memory = (await client.get(f"/v1/sessions/{session['id']}/memory")).json()
    assert (session["messages"], session["project"], memory["usage"]["calls"]) == (4, "shop", 2)


async def test_a_session_is_written_to_and_read(esker: Esker) -> None:
    session = await esker.session("my-agent", "s1", project="shop", timezone="Europe/Berlin")
    assert (await esker.session("my-agent", "s1")).id == session.id
    assert (session.project, session.timezone) == ("shop", "Europe/Berlin")
    said = Message("m1", "user", "We decided that the ledger lives in Postgres.", datetime(2026, 3, 1, tzinfo=UTC))
    assert (await session.add(said)).accepted == 1
    assert (await session.add(said)).duplicates == 1
    await session.event("turn_end", once="t1")
    assert (await session.observe()).memories == 1
    context = await session.context([{"type": "text", "text": "Be brief."}], keep_last_messages=0, message_tokens=0)
    assert "ledger" in json.dumps(context.system)
    assert "<global_observations>" in await session.pack()
    await session.usage({"input_tokens": 5, "output_tokens": 1, "server_tool_use": None}, request_id="r1")
    memory = await session.memory()
    assert memory.usage is not None
    assert (memory.usage.calls, memory.state, memory.session.begun_at) == (1, "up to date", said.sent_at)


async def test_the_client_returns_every_field_of_a_session(client: httpx2.AsyncClient, esker: Esker) -> None:
    session = await esker.session("my-agent", "s1")
    await session.add(Message("m1", "user", "We decided that the ledger lives in Postgres."))
    await session.observe()
    await session.pack()
    await session.add(Message("m2", "user", "And the cash book, too."))
    await session.usage({"input_tokens": 5, "output_tokens": 1}, request_id="r1")
    answer = (await client.get(f"/v1/sessions/{session.id}/memory")).json()
    assert answer["groups"]
    assert answer["jobs"]
    assert answer["pack_versions"]
    typed = TypeAdapter(SessionMemoryReport).dump_python(await session.memory(), mode="json")
    assert typed == answer


@asynccontextmanager
async def busy(times: int, status: int = 503, after: str | None = "0") -> AsyncGenerator[tuple[str, list[str]]]:
    """The URL of a server that is busy this many times, and the methods of the requests."""
    asked: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope["method"])
        if len(asked) <= times:
            headers = {"Retry-After": after} if after is not None else {}
            await JSONResponse({"detail": "No time."}, status, headers)(scope, receive, send)
        else:
            await JSONResponse({"id": "ses_1", "project": None, "timezone": "UTC"})(scope, receive, send)

    async with serving_app(app) as url:
        yield url, asked


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_retried_a_limited_number_of_times(status: int) -> None:
    async with busy(3, status) as (url, asked), Esker(url) as esker:
        assert (await esker.session("a", "b")).id == "ses_1"
        assert asked == ["POST"] * 4
    async with busy(100, status) as (url, asked), Esker(url) as esker:
        with pytest.raises(Unavailable, match=r"No time\."):
            await esker.session("a", "b")
        assert len(asked) == 4


async def test_other_errors_are_raised_at_once() -> None:
    async with busy(100, 500) as (url, asked), Esker(url) as esker:
        with pytest.raises(Unavailable):
            await esker.session("a", "b")
        assert len(asked) == 1


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("0", 0), ("5", 5), (" 7 ", 7), ("3600", 10), (None, 1), ("", 1), ("Sat, 28 Nov 2026 04:00:00 GMT", 1), ("²", 1)],
)
def test_retry_after_is_respected_up_to_a_limit(retry_after: str | None, seconds: float) -> None:
    assert pause(retry_after) == seconds


async def test_a_memory_is_found_corrected_expanded_and_forgotten(esker: Esker) -> None:
    row = await esker.remember("The river is the Elbe.", project="shop", tags=["geo"], priority="high", external_id="r")
    assert (await esker.remember("The river is the Elbe.", project="shop", external_id="r")).id == row.id
    right = await esker.correct(row.id, "The river is the Rhine.")
    since = datetime(2020, 1, 1, tzinfo=UTC)
    found = await esker.recall("river", project="shop", tags=["geo"], min_priority="high", kinds=["note"], since=since)
    assert [hit.id for hit in found.hits] == [right.id]
    every = [one.id async for one in esker.memories(project="shop", tags=["geo"], include_superseded=True)]
    assert every == [right.id, row.id]
    assert (await esker.expand(right.id)).excerpts == []
    assert (await esker.status()).memories == {"note": 1}
    assert "Rhine" in await esker.briefing(project="shop")
    assert (await esker.forget(right.id)).memories == 1
    assert (await esker.recall("submarine")).abstained


async def test_all_memories_come_page_by_page(esker: Esker, client: httpx2.AsyncClient) -> None:
    rows = [{"content": f"Note number {n}."} for n in range(1_001)]
    for first in (0, 1_000):
        await client.post("/v1/memories/batch", json={"memories": rows[first : first + 1_000]})
    assert len({row.id async for row in esker.memories()}) == 1_001


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (lambda esker: esker.forget("mem_1/2?x=#"), NotFound),
        (lambda esker: esker.recall(""), InvalidInput),
        (lambda esker: esker.session("a", "b", timezone="Mars/Olympus"), InvalidInput),
        (lambda esker: esker.remember("x", external_id="taken"), Conflict),
    ],
)
async def test_errors_are_esker_errors_with_a_hint(
    esker: Esker, ask: Callable[[Esker], Any], kind: type[EskerError]
) -> None:
    await esker.remember("something else", external_id="taken")
    with pytest.raises(kind) as raised:
        await ask(esker)
    assert str(raised.value)


async def test_the_key_is_sent_and_refusals_are_raised(client: httpx2.AsyncClient, parts: Parts) -> None:
    key = (await create_key(parts, name="a", pool="default", scopes=["read"])).key
    async with Esker(str(client.base_url)) as without_key, Esker(str(client.base_url), key) as reader:
        with pytest.raises(Unauthorized):
            await without_key.recall("river")
        assert (await reader.recall("river")).abstained
        with pytest.raises(Forbidden):
            await reader.remember("A river.")


async def test_a_missing_server_is_explained() -> None:
    async with Esker("http://127.0.0.1:1") as esker:
        with pytest.raises(Unavailable, match="No Esker answers") as raised:
            await esker.status()
    assert "esker serve" in (raised.value.hint or "")


async def test_another_program_at_the_address_is_explained() -> None:
    async with model_server() as other, Esker(other.url) as esker:
        with pytest.raises(Unavailable, match="not Esker"):
            await esker.status()


def calls(*inputs: dict[str, Any]) -> list[ScriptedAnswer]:
    """Return answers of a model that calls the memory tool with these inputs."""
    return [
        ScriptedAnswer(
            raw=json.dumps(
                {
                    "id": f"msg_{number}",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [{"type": "tool_use", "id": f"tu_{number}", "name": "memory", "input": given}],
                    "stop_reason": "tool_use",
                    "stop_sequence": None,
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                }
            )
        )
        for number, given in enumerate(inputs)
    ]


async def test_the_memory_tool_stores_an_agents_files(esker: Esker) -> None:
    path = "/memories/plan.md"
    async with model_server() as model, AsyncAnthropic(base_url=model.url, api_key="k") as anthropic:
        scripted: ModelServer = model
        scripted.say(
            *calls(
                {"command": "create", "path": path, "file_text": "Ship on Friday.\n"},
                {"command": "str_replace", "path": path, "old_str": "Friday", "new_str": "Monday"},
                {"command": "view", "path": "/memories/../etc/passwd"},
            ),
            "Done.",
        )
        runner = anthropic.beta.messages.tool_runner(
            model="m", max_tokens=100, messages=[{"role": "user", "content": "Plan."}], tools=[EskerMemoryTool(esker)]
        )
        await runner.until_done()
    assert scripted.asked[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    [refused] = scripted.asked[-1]["messages"][-1]["content"]
    assert (refused["is_error"], "not a path below /memories" in refused["content"]) == (True, True)
    [hit] = (await esker.recall("ship Monday")).hits
    assert hit.content == f"{path}\nShip on Monday."


def test_importing_esker_loads_neither_the_client_nor_the_memory_tool() -> None:
    loaded = "import sys, esker; print([name for name in sys.modules if name.startswith('esker.server.client')])"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
