"""`esker mcp`: MCP on standard input and output, answered by the server at ESKER_URL."""

import asyncio
import json
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from io import BufferedReader, TextIOBase
from typing import Any, BinaryIO, TextIO, cast
from urllib.parse import quote

import anyio
import typer
from pydantic import TypeAdapter

from esker.server.agents.api import Api
from esker.server.agents.project import is_excluded, project_of, repository_of
from esker.server.cli.connection import connect, read_as
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.logs import configure_logs
from esker.server.core.conversation.records import Passage
from esker.server.core.errors import NotFound
from esker.server.core.facts.forgetting import Receipt
from esker.server.core.http_answers import ServerRefused
from esker.server.core.ids import is_passage
from esker.server.core.json_input import clean_document
from esker.server.core.jsonrpc import refusal
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.expansion import Expansion
from esker.server.core.records import SourcedMemory
from esker.server.core.reports import PoolStatus
from esker.server.tools.backend import Backend
from esker.server.tools.mcp_server import EskerMcp, make_mcp
from esker.server.usecases.correct import Correction
from esker.server.usecases.expand import ExpandRequest
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note

app = typer.Typer(add_completion=False)

# Timeout of a call: a model waits no longer for a tool, and this process waits no longer for its threads when it ends.
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class _PackResponse:
    text: str


@dataclass(frozen=True, slots=True)
class _BriefingResponse:
    text: str


@dataclass(frozen=True, slots=True)
class _CallerResponse:
    scopes: list[str]


_RECALLED = TypeAdapter(Recalled)
_EXPANSION = TypeAdapter(Expansion)
_MEMORY = TypeAdapter(SourcedMemory)
_PASSAGE = TypeAdapter(Passage)
_RECEIPT = TypeAdapter(Receipt)
_STATUS = TypeAdapter(PoolStatus)
_PACK = TypeAdapter(_PackResponse)
_BRIEFING = TypeAdapter(_BriefingResponse)
_CALLER = TypeAdapter(_CallerResponse)


@app.command()
def mcp() -> None:
    """Speak MCP on standard input and output, for clients that start their servers."""
    configure_logs("warning")  # standard output belongs to the protocol
    anyio.run(_serve, make_mcp(_over_http()), *_client_streams())


def _over_http() -> Backend:
    """Return the backend of the tools: the server at ESKER_URL over HTTP."""

    async def recall(_: object, asked: RecallRequest) -> Recalled:
        return read_as(_RECALLED, await _ask(lambda api: api.post("/v1/recall", _body(asked))))

    async def expand(_: object, asked: ExpandRequest) -> Expansion:
        sizes = {"around": asked.around, "max_tokens": asked.max_tokens}
        path = f"/v1/memories/{quote(asked.text_id, safe='')}/sources"
        return read_as(_EXPANSION, await _ask(lambda api: api.get(path, **sizes)))

    async def remember(_: object, note: Note) -> SourcedMemory:
        body = _body(note)
        body["kind"] = "manual" if body.pop("manual") else "note"
        return read_as(_MEMORY, await _ask(lambda api: api.post("/v1/memories", body)))

    async def correct(_: object, memory_id: str, correction: Correction) -> SourcedMemory:
        path = f"/v1/memories/{quote(memory_id, safe='')}"
        return read_as(_MEMORY, await _ask(lambda api: api.patch(path, _body(correction))))

    async def forget(_: object, text_id: str, with_messages: bool) -> Receipt:
        path = f"/v1/memories/{quote(text_id, safe='')}?messages={str(with_messages).lower()}"
        return read_as(_RECEIPT, await _ask(lambda api: api.delete(path)))

    async def status(_: object) -> PoolStatus:
        return read_as(_STATUS, await _ask(lambda api: api.get("/v1/status")))

    async def read(_: object, text_id: str) -> SourcedMemory | Passage:
        found = await _ask(lambda api: api.get(f"/v1/memories/{quote(text_id, safe='')}"))
        return read_as(_PASSAGE, found) if is_passage(text_id) else read_as(_MEMORY, found)

    async def pack(_: object, session_id: str) -> str:
        path = f"/v1/sessions/{quote(session_id, safe='')}/pack"
        return read_as(_PACK, await _ask(lambda api: api.get(path))).text

    return Backend(recall, expand, remember, correct, forget, status, read, pack, _briefing, _scopes)


async def _briefing(_: object, project: str | None) -> str:
    """Return a briefing about a project, by default about that of the working directory."""
    here = os.getcwd()
    own = project_of(here)
    if is_excluded(here, own, ClientSettings.from_environment(os.environ).exclude):
        return "This directory is excluded: nothing of it is remembered or shown."
    about = project or repository_of(here)
    return read_as(_BRIEFING, await _ask(lambda api: api.get("/v1/briefing", project=about))).text


async def _scopes(_: object) -> frozenset[str]:
    return frozenset(read_as(_CALLER, await _ask(lambda api: api.get("/v1/key"))).scopes)


async def _ask(ask: Callable[[Api], Any]) -> Any:
    """Ask the server. Raises NotFound, Unavailable, Refused."""
    # A connection for each call: tools run concurrently, and a connection carries one request at a time.
    try:
        return await asyncio.to_thread(lambda: ask(connect(_SECONDS)))
    except ServerRefused as error:
        raise NotFound(str(error), hint=error.hint) if error.status == 404 else error from error


def _body(asked: RecallRequest | Note | Correction) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(asked).items() if value is not None}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


class _Answers(TextIOBase):
    """The client's end of standard output; messages of several threads are written one at a time."""

    def __init__(self, sink: BinaryIO) -> None:
        super().__init__()
        self._sink = sink
        self._one_at_a_time = threading.Lock()

    def write(self, text: str, /) -> int:
        """Send a message."""
        with self._one_at_a_time:
            self._sink.write(text.encode())
            self._sink.flush()
        return len(text)


class _CleanedInput(TextIOBase):
    """The client's end of standard input, cleaned; invalid messages are answered here, since the library drops them."""

    def __init__(self, source: BinaryIO, answers: _Answers) -> None:
        super().__init__()
        self._source = source
        self._answers = answers

    def readline(self, size: int | None = -1, /) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the next message as a line; an empty text is the end."""
        for line in self._source:
            if not line.strip():
                continue
            if refused := refusal(line):
                self._answers.write(json.dumps(refused) + "\n")
            elif b"server/discover" in line and self._initializes_next():
                self._answers.write(json.dumps(_unknown_method(line)) + "\n")
            else:
                return clean_document(line).decode("utf-8", "replace").rstrip("\r\n") + "\n"
        return ""

    def _initializes_next(self) -> bool:
        """Whether the client has already begun the handshake of an earlier protocol.

        A client that waited too long for the answer to `server/discover`, since this process was still starting, takes
        the server for an old one. An answer to both would refuse the handshake.
        """
        descriptor = self._source.fileno()
        os.set_blocking(descriptor, False)
        try:
            return b'"initialize"' in cast("BufferedReader", self._source).peek()
        finally:
            os.set_blocking(descriptor, True)


def _unknown_method(line: bytes) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(line)
    return {"jsonrpc": "2.0", "id": asked.get("id"), "error": {"code": -32601, "message": "Method not found"}}


def _client_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the client's input and output; all other output of this process goes to standard error."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return source, sink


async def _serve(server: EskerMcp, source: BinaryIO, sink: BinaryIO) -> None:
    answers = _Answers(sink)
    stdin, stdout = (anyio.wrap_file(cast("TextIO", end)) for end in (_CleanedInput(source, answers), answers))
    await server.run_between(stdin, stdout)
