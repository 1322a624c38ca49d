"""`esker mcp`: MCP on standard input and output, answered by the server at ESKER_URL."""

import asyncio
from dataclasses import asdict
from datetime import datetime
from typing import Any

import typer
from pydantic import TypeAdapter

from server.cli.api import Api
from server.core.logs import configure_logs
from server.core.recalled import Recalled
from server.tools.recall_tool import make_mcp
from server.usecases.recall import RecallRequest

app = typer.Typer(add_completion=False)

_RECALLED = TypeAdapter(Recalled)


@app.command()
def mcp() -> None:
    """Speak MCP on standard input and output, for clients that start their servers."""
    configure_logs("warning")  # standard output belongs to the protocol

    async def recall(_: object, asked: RecallRequest) -> Recalled:
        body = {name: _plain(value) for name, value in asdict(asked).items() if value is not None}
        # A connection for each call: tools are called at the same time, and a connection carries one request.
        answer = await asyncio.to_thread(lambda: Api.from_environment().post("/v1/recall", body))
        return _RECALLED.validate_python(answer)

    make_mcp(recall).run("stdio")


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
