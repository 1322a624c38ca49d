"""`esker mcp`: MCP on standard input and output, answered by the server at ESKER_URL."""

import asyncio
import os
import threading
from dataclasses import asdict
from datetime import datetime
from typing import Any, BinaryIO
from urllib.parse import quote

import typer
from pydantic import TypeAdapter

from server.cli.connection import connect
from server.clients.api import Refused
from server.core.errors import NotFound
from server.core.expansion import Expansion
from server.core.json_input import clean_document
from server.core.logs import configure_logs
from server.core.recalled import Recalled
from server.tools.mcp_server import make_mcp
from server.usecases.expand import ExpandRequest
from server.usecases.recall_request import RecallRequest

app = typer.Typer(add_completion=False)

_RECALLED = TypeAdapter(Recalled)
_EXPANSION = TypeAdapter(Expansion)


@app.command()
def mcp() -> None:
    """Speak MCP on standard input and output, for clients that start their servers."""
    configure_logs("warning")  # standard output belongs to the protocol

    async def recall(_: object, asked: RecallRequest) -> Recalled:
        body = {name: _plain(value) for name, value in asdict(asked).items() if value is not None}
        # A connection for each call: tools are called at the same time, and a connection carries one request.
        answer = await asyncio.to_thread(lambda: connect().post("/v1/recall", body))
        return _RECALLED.validate_python(answer)

    async def expand(_: object, asked: ExpandRequest) -> Expansion:
        path = f"/v1/memories/{quote(asked.text_id, safe='')}/sources"
        sizes = {"around": asked.around, "max_tokens": asked.max_tokens}
        try:
            answer = await asyncio.to_thread(lambda: connect().get(path, **sizes))
        except Refused as error:
            raise NotFound(str(error)) if error.status == 404 else error from error
        return _EXPANSION.validate_python(answer)

    _clean_standard_input()
    make_mcp(recall, expand).run("stdio")


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
