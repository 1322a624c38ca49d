"""Real MCP clients, of both eras, over HTTP and over the standard input and output of `esker mcp`."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.support.forks import forked_command
from tests.support.waiting import PATIENCE

MODES = ["legacy", "auto"]
"""The eras of the protocol; over HTTP these are ways as well."""


@asynccontextmanager
async def connected(url: str, mode: str, key: str | None = None, path: str = "/mcp") -> AsyncGenerator[Client]:
    """A real MCP client, over HTTP."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{url}{path}", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def by(url: str, way: str) -> AsyncGenerator[Client]:
    """A client of either era over HTTP, or over the standard input and output of `esker mcp`."""
    if not way.startswith("stdio"):
        async with connected(url, way) as client:
            yield client
        return
    async with Client(over_stdio(url), mode=way.partition(" ")[2] or "auto") as client:
        yield client


def over_stdio(url: str) -> StdioServerParameters:
    """Return how a client starts `esker mcp`, which is forked."""
    command, *arguments = forked_command("mcp")
    return StdioServerParameters(command=command, args=arguments, env={"ESKER_URL": url, "PATH": os.environ["PATH"]})
