"""`esker mcp`: MCP on standard input and output, answered by the server at ESKER_URL."""

import asyncio
import os
import threading
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any, BinaryIO
from urllib.parse import quote

import typer
from pydantic import TypeAdapter

from server.cli.connection import connect
from server.clients.api import Api, Refused
from server.core.errors import NotFound
from server.core.expansion import Expansion
from server.core.ids import is_passage
from server.core.json_input import clean_document
from server.core.logs import configure_logs
from server.core.recalled import Recalled
from server.core.records import Passage, SourcedMemory
from server.core.reports import PoolStatus, Receipt
from server.tools.backend import Backend
from server.tools.mcp_server import make_mcp
from server.usecases.correct import Correction
from server.usecases.expand import ExpandRequest
from server.usecases.recall_request import RecallRequest
from server.usecases.remember import Note

app = typer.Typer(add_completion=False)

# A model waits no longer for a tool, and neither does the end of this process for its threads.
_SECONDS = 20.0

_RECALLED = TypeAdapter(Recalled)
_EXPANSION = TypeAdapter(Expansion)
_MEMORY = TypeAdapter(SourcedMemory)
_PASSAGE = TypeAdapter(Passage)
_RECEIPT = TypeAdapter(Receipt)
_STATUS = TypeAdapter(PoolStatus)


@app.command()
def mcp() -> None:
    """Speak MCP on standard input and output, for clients that start their servers."""
    configure_logs("warning")  # standard output belongs to the protocol
    _clean_standard_input()
    make_mcp(_over_http()).run("stdio")


def _over_http() -> Backend:
    """Return what the tools ask of: the server at ESKER_URL."""

    async def recall(_: object, asked: RecallRequest) -> Recalled:
        return _RECALLED.validate_python(await _ask(lambda api: api.post("/v1/recall", _body(asked))))

    async def expand(_: object, asked: ExpandRequest) -> Expansion:
        sizes = {"around": asked.around, "max_tokens": asked.max_tokens}
        path = f"/v1/memories/{quote(asked.text_id, safe='')}/sources"
        return _EXPANSION.validate_python(await _ask(lambda api: api.get(path, **sizes)))

    async def remember(_: object, note: Note) -> SourcedMemory:
        body = _body(note)
        body["kind"] = "manual" if body.pop("manual") else "note"
        return _MEMORY.validate_python(await _ask(lambda api: api.post("/v1/memories", body)))

    async def correct(_: object, memory_id: str, correction: Correction) -> SourcedMemory:
        path = f"/v1/memories/{quote(memory_id, safe='')}"
        return _MEMORY.validate_python(await _ask(lambda api: api.patch(path, _body(correction))))

    async def forget(_: object, text_id: str, with_messages: bool) -> Receipt:
        path = f"/v1/memories/{quote(text_id, safe='')}?messages={str(with_messages).lower()}"
        return _RECEIPT.validate_python(await _ask(lambda api: api.delete(path)))

    async def status(_: object) -> PoolStatus:
        return _STATUS.validate_python(await _ask(lambda api: api.get("/v1/status")))

    async def read(_: object, text_id: str) -> SourcedMemory | Passage:
        found = await _ask(lambda api: api.get(f"/v1/memories/{quote(text_id, safe='')}"))
        return _PASSAGE.validate_python(found) if is_passage(text_id) else _MEMORY.validate_python(found)

    async def pack(_: object, session_id: str) -> str:
        return (await _ask(lambda api: api.get(f"/v1/sessions/{quote(session_id, safe='')}/pack")))["text"]

    async def briefing(_: object, tokens: int) -> str:
        found = await _ask(lambda api: api.get("/v1/briefing", tokens=tokens))
        return found["text"] if found["known"] else ""

    return Backend(recall, expand, remember, correct, forget, status, read, pack, briefing)


async def _ask(ask: Callable[[Api], Any]) -> Any:
    """Ask the server. Raises NotFound, Unavailable, Refused."""
    # A connection for each call: tools are called at the same time, and a connection carries one request.
    try:
        return await asyncio.to_thread(lambda: ask(connect(_SECONDS)))
    except Refused as error:
        raise NotFound(str(error)) if error.status == 404 else error from error


def _body(asked: RecallRequest | Note | Correction) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(asked).items() if value is not None}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _clean_standard_input() -> None:
    """Put a filter in front of standard input: the library never answers what half a character was cut into."""
    source = os.fdopen(os.dup(0), "rb")
    read_end, write_end = os.pipe()
    os.dup2(read_end, 0)
    os.close(read_end)
    threading.Thread(target=_copy, args=(source, os.fdopen(write_end, "wb")), daemon=True).start()


def _copy(source: BinaryIO, sink: BinaryIO) -> None:
    with source, sink:
        for line in source:
            sink.write(clean_document(line).rstrip(b"\n") + b"\n")
            sink.flush()
