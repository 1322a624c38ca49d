"""Foreign transcripts in the whole pipeline, without a model and with a real database.

Every row is grounded in what it cites, nothing that was injected is observed, nothing is lost, a second run adds
nothing, and a reflection says no more than its sources.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from esker.server.agents.readers import READERS
from esker.server.core.conversation.blocks import result_text, spoken
from esker.server.core.facts.grounding import grounds_in
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from tests.support.api import observed, opened, said
from tests.support.foreign import conversations

Conversations = Callable[[Path], Iterable[tuple[str, list[dict[str, Any]]]]]

# Text that programs inject into conversations, which no memory should contain.
INJECTED = (
    "system-reminder",
    "environment_context",
    "user_instructions",
    "AGENTS.md instructions",
    "command-name",
    "command-message",
    "local-command-stdout",
    "Caveat: The messages below",
    "session is being continued from a previous conversation",
    "Context Checkpoint",
    "global_observations",
    "local_observations",
    "observation-group",
    "recalled_memories",
    "expanded_memory",
)


def short_conversations(folder: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the name and the messages of the longest conversation of each client that has at most 300."""
    chosen: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for name, messages in conversations(folder):
        client = name.partition("/")[0]
        if len(messages) <= 300 and (client not in chosen or len(messages) > len(chosen[client][1])):
            chosen[client] = name, messages
    return list(chosen.values())


@pytest.mark.parametrize(
    ("chosen", "least_rows", "least_reflections"),
    [(short_conversations, 20, 20), pytest.param(conversations, 60, 60, marks=pytest.mark.slow)],
)
async def test_rows_of_foreign_transcripts_are_grounded_and_complete(
    client: httpx2.AsyncClient, transcripts: Path, chosen: Conversations, least_rows: int, least_reflections: int
) -> None:
    found = reflected = 0
    clients: set[str] = set()
    for name, messages in chosen(transcripts):
        session = await opened(client, name, project=name, cwd="/work")
        await posted(client, session, messages)
        await observed(client, session)
        clients.add(name.partition("/")[0])
        rows = await rows_of(client, session)
        found += len(rows)
        texts = await texts_of(client, session)
        await rows_are_grounded(rows, texts, name)
        await is_complete(client, session, len(messages))
        await nothing_is_added_by_a_second_run(client, session, messages, rows)
        reflected += await reflection_is_supported(client, session, rows, name)
    assert clients == set(READERS)
    assert found >= least_rows
    assert reflected >= least_reflections


async def posted(client: httpx2.AsyncClient, session: str, messages: list[dict[str, Any]]) -> None:
    """Add messages in batches that the server accepts."""
    for start in range(0, len(messages), 200):
        await said(client, session, *messages[start : start + 200])


async def rows_of(client: httpx2.AsyncClient, session: str, *, live: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a session, including superseded ones unless `live`."""
    rows: list[dict[str, Any]] = []
    query: dict[str, Any] = {"session_id": session, "include_superseded": not live, "limit": 500}
    while True:
        page = (await client.get("/v1/memories", params=query)).json()
        rows += page["memories"]
        if not page["next"]:
            return rows
        query["before"] = page["next"]


async def texts_of(client: httpx2.AsyncClient, session: str) -> dict[int, str]:
    """Return the text of each message without injected parts."""
    texts: dict[int, str] = {}
    path = f"/v1/sessions/{session}/messages"
    while page := (await client.get(path, params={"after": len(texts), "limit": 500})).json()["messages"]:
        texts |= {message["seq"]: "\n".join(said_in(message["content"])) for message in page}
    return texts


def said_in(blocks: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the texts of a message, of the arguments of its calls and of its results."""
    yield spoken(blocks)
    for block in blocks:
        if block["type"] == "tool_use":
            yield from strings(block["input"])
        elif block["type"] == "tool_result":
            yield result_text(block)


def strings(value: Any) -> Iterator[str]:
    """Yield every string in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def own_words(row: dict[str, Any]) -> str:
    """Return a row without the words of the observer itself."""
    text = without_label(row["content"])
    quoted = (labels.PURPOSE, labels.IN_ANSWER, labels.AGREED, labels.ASKED_BY_AGENT, labels.ANSWERED)
    for words in (*quoted, " — cause: "):
        text = text.replace(words, "\n")
    return text


async def rows_are_grounded(rows: list[dict[str, Any]], texts: dict[int, str], name: str) -> None:
    """Check that the row's sources contain every name, number and quotation of it, and that none was injected."""
    for row in rows:
        assert row["source_seqs"], (name, row["content"])
        cited = "\n".join(texts[seq] for seq in row["source_seqs"])
        assert cited.strip(), (name, row["content"])
        missing = grounds_in(cited).missing(own_words(row))
        assert not missing, (name, row["content"], missing)
        heading = row["category"] == "issue" and row["trust"] == "assistant" and own_words(row).istitle()
        assert not heading, (name, row["content"])
        assert not [mark for mark in INJECTED if mark in row["content"]], (name, row["content"])


async def is_complete(client: httpx2.AsyncClient, session: str, count: int) -> None:
    """Check that every message is covered and none is lost."""
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["observed_messages"], shown["unobserved_tokens"]) == (count, 0)
    assert (shown["coverage"], shown["lost"]) == (1.0, 0)


async def nothing_is_added_by_a_second_run(
    client: httpx2.AsyncClient, session: str, messages: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> None:
    """Check that sending the same transcript again changes nothing."""
    await posted(client, session, messages)
    again = await observed(client, session)
    assert (again["groups"], again["memories"], again["merged"]) == (0, 0, 0)
    assert await rows_of(client, session) == rows


async def reflection_is_supported(
    client: httpx2.AsyncClient, session: str, rows: list[dict[str, Any]], name: str
) -> int:
    """Check that every row of a reflection is covered by the rows it cites; return the number of rows."""
    before = {row["id"]: row for row in rows}
    answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    assert answer.status_code == 200, answer.text
    reflections = [row for row in await rows_of(client, session, live=True) if row["kind"] == "reflection"]
    for row in reflections:
        assert row["source_ids"]
        cited = "\n".join(before[source]["content"] for source in row["source_ids"])
        missing = grounds_in(cited).missing(row["content"])
        assert not missing, (name, row["content"], missing)
        assert all(part in cited for part in row["content"].split("; ")), (name, row["content"])
    return len(reflections)
