"""Speaking to a server as a client does."""

from collections.abc import Callable
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from tests.support.waiting import PATIENCE, eventually


async def opened(client: httpx2.AsyncClient, external_id: str = "s1", **more: Any) -> str:
    """Open a session and return its id."""
    answer = await client.post("/v1/sessions", json={"client": "api", "external_id": external_id, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["id"]


async def said(client: httpx2.AsyncClient, session: str, *messages: dict[str, Any] | str) -> dict[str, Any]:
    """Add messages and return the report; a string is said by the user under its own text as external id."""
    batch = [{"external_id": m, "role": "user", "content": m} if isinstance(m, str) else m for m in messages]
    answer = await client.post(f"/v1/sessions/{session}/messages", json={"messages": batch})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def observed(client: httpx2.AsyncClient, session: str) -> dict[str, Any]:
    """Observe a session, wait for it, and return the report."""
    answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def recalled(client: httpx2.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    """Ask memory and return the answer."""
    answer = await client.post("/v1/recall", json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


def contents(answer: dict[str, Any]) -> list[str]:
    """Return the contents of the hits of a recall, in order."""
    return [hit["content"] for hit in answer["hits"]]


async def tool_text(client: httpx2.AsyncClient, tool: str, **given: Any) -> str:
    """Return a tool's answer as a model reads it."""
    async with (
        httpx2.AsyncClient(timeout=PATIENCE) as http,
        Client(streamable_http_client(str(client.base_url.join("/mcp")), http_client=http), mode="auto") as mcp,
    ):
        [part] = (await mcp.call_tool(tool, given)).content
        assert isinstance(part, TextContent)
        return part.text


async def until(client: httpx2.AsyncClient, path: str, true_of: Callable[[Any], bool]) -> Any:
    """Ask again and again until something is true of the answer, and return it."""

    async def asked() -> Any:
        return (await client.get(path)).json()

    return await eventually(asked, true_of)


async def settled(client: httpx2.AsyncClient, query: str = "anything", **more: Any) -> dict[str, Any]:
    """Recall until every text has its vector and the model is loaded, and return the last answer."""

    async def asked() -> dict[str, Any]:
        return await recalled(client, query, **more)

    return await eventually(asked, lambda answer: not answer["pending"] and answer["semantic"] != "degraded")
