"""Sessions with known facts, and a scripted model that reflects them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from tests.support.api import observed, opened, said
from tests.support.model_server import ModelServer, model_server
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

REFLECTOR = "claude-sonnet-5-5"

Row = dict[str, Any]

OVERTAKEN: tuple[Row, ...] = (
    {"external_id": "o1", "role": "assistant", "content": "The limit of the queue in the worker is 30 jobs."},
    {"external_id": "o2", "role": "user", "content": "Please look again."},
    {"external_id": "o3", "role": "assistant", "content": "The limit of the queue in the worker is 40 jobs."},
)
"""Messages of which the extractive reflector drops a row, so that it writes the rows of their session anew."""


@asynccontextmanager
async def scripted(database_url: str, **settings: str) -> AsyncGenerator[tuple[httpx2.AsyncClient, ModelServer]]:
    """A client of a server that asks a scripted model, and that model."""
    async with model_server() as model:
        environment = model.environment() | {f"ESKER_{name.upper()}": value for name, value in settings.items()}
        parts = make_parts(Settings.from_environment(environment), Database(database_url), system_clock)
        async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
            yield client, model


def fact(text: str, **changes: Any) -> Row:
    """Return a fact as an observing model writes it, without its sources."""
    return {"text": text, "priority": "low", "category": "fact", **changes}


def row(text: str, *sources: str, **changes: Any) -> Row:
    """Return a row as a reflecting model writes it."""
    return {"text": text, "priority": "medium", "category": "fact", "source_ids": list(sources), **changes}


async def kept(
    client: httpx2.AsyncClient,
    model: ModelServer,
    *facts: Row | str,
    session: str = "s1",
    days_ago: float = 10,
    **more: Any,
) -> tuple[str, list[str]]:
    """Send facts in a session, one message and minute each, and observe them; return its id and theirs.

    The requests to the model so far are cleared.
    """
    written = [fact(one) if isinstance(one, str) else one for one in facts]
    session_id = await opened(client, session, **more)
    before = (await client.get(f"/v1/sessions/{session_id}")).json()["messages"]
    began = datetime.now(UTC) - timedelta(days=days_ago)
    messages = [
        {
            "external_id": f"{session}-{before + place}",
            "role": "user",
            "content": one["text"],
            "sent_at": (began + timedelta(minutes=place)).isoformat(),
        }
        for place, one in enumerate(written)
    ]
    await said(client, session_id, *messages)
    model.say({"facts": [one | {"sources": [before + place]} for place, one in enumerate(written, start=1)]})
    report = await observed(client, session_id)
    model.asked.clear()
    model.arrived.clear()
    return session_id, report["memory_ids"]


async def live(client: httpx2.AsyncClient) -> dict[str, Row]:
    """Return all live memories by id."""
    rows = (await client.get("/v1/memories?limit=1000")).json()["memories"]
    return {one["id"]: one for one in rows}


async def pool_reflected(client: httpx2.AsyncClient, **asked: Any) -> Row:
    """Have the pool reflected, wait, and return the report."""
    answer = await client.post("/v1/reflect?wait=true", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def session_reflected(client: httpx2.AsyncClient, session: str) -> Row:
    """Have a session reflected, wait, and return the report."""
    answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    assert answer.status_code == 200, answer.text
    return answer.json()


def stored(owner_url: str) -> dict[str, Row]:
    """Return every row of memories, column for column, by id."""
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute("SELECT id, to_jsonb(memories) FROM memories").fetchall()
    return dict(rows)
