"""A pool with some of everything, and the contents of a database, to compare two."""

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import httpx2
import psycopg
from psycopg import sql

from tests.support.api import opened, said
from tests.support.model_server import ModelServer
from tests.support.reflecting import fact, kept, pool_reflected, row, session_reflected

ODD = [
    "a:b/c",
    '"quoted"',
    "<tag attr='&amp;'>",
    "日本語 🏔",
    "עברית",
    "\\u0000 %00",
    "new\nline",
    "{json: [1]}",
    "' OR 1=1 --",
]
"""Names that clients could give."""
WEATHER = "The agent explained at great length how the weather comes about, and that it rains a lot in the west."
COFFEE = "The coffee machine of the office was out of order for a whole week in the summer, and nobody mended it."
TRAIN = "The train to the coast was so full that everybody had to stand in the corridor for the whole way there."
GARDEN = "The garden behind the house has an old apple tree that carries far more fruit than anyone could eat."
SHORT = "Weather and coffee were talked about."

# Columns that an import does not copy: the numbers of searchable texts, and the marks of upkeep.
_MADE_ANEW = {
    "sessions": "passages_seq",
    "memories": "number, expired",
    "passages": "number, id, created_at",
}
_TABLES = {
    "sessions": "id",
    "messages": "session_id, seq",
    "observation_groups": "id",
    "memories": "id",
    "memory_sources": "memory_id, group_id",
    "memory_links": "source_id, memory_id",
    "session_events": "session_id, kind, dedupe_key",
    "packs": "session_id, version",
    "reflections": "id",
    "passages": "session_id, first_seq",
}
_POSTINGS: LiteralString = """
    SELECT p.tier::text, coalesce(m.id, g.session_id || ' ' || g.first_seq), p.term, p.part, p.frequency, p.length
    FROM postings p JOIN pools ON pools.id = p.pool_id
    LEFT JOIN memories m ON m.pool_id = p.pool_id AND m.number = p.number
    LEFT JOIN passages g ON g.pool_id = p.pool_id AND g.number = p.number
    WHERE pools.name = %s ORDER BY 1, 2, 3, 4
"""
_SIZES: LiteralString = """
    SELECT tier::text, sum(parts), sum(terms) FROM tier_sizes JOIN pools ON pools.id = pool_id
    WHERE name = %s GROUP BY tier ORDER BY tier
"""


_ALL = sql.SQL(
    "SELECT to_jsonb(t) - 'pool_id' FROM {} t JOIN pools p ON p.id = t.pool_id WHERE p.name = %s ORDER BY {}"
)


def _columns(names: str) -> sql.Composed:
    return sql.SQL(", ").join(sql.Identifier("t", name) for name in names.split(", "))


def everything(owner_url: str, pool: str = "default") -> dict[str, list[Any]]:
    """Return all rows of a pool, column by column, and its search index, by table."""
    found: dict[str, list[Any]] = {}
    with psycopg.connect(owner_url) as connection:
        for table, order in _TABLES.items():
            statement = _ALL.format(sql.Identifier(table), _columns(order))
            anew = _MADE_ANEW.get(table, "").split(", ")
            rows = connection.execute(statement, [pool]).fetchall()
            found[table] = [{name: value for name, value in line.items() if name not in anew} for (line,) in rows]
        found["postings"] = connection.execute(_POSTINGS, [pool]).fetchall()
        found["tier_sizes"] = connection.execute(_SIZES, [pool]).fetchall()
    return found


async def fill(client: httpx2.AsyncClient, model: ModelServer) -> dict[str, str]:
    """Fill a pool with some of everything; return the ids that tests need, by name."""
    river = fact("The Rhine needs a bridge at Basel.", priority="high", category="decision")
    place: dict[str, Any] = {"project": "me/shop", "timezone": "Europe/Zurich", "cwd": "/home/me/shop"}
    lamp = "The lamp in the hall is blue."
    first, ids = await kept(client, model, river, lamp, fact("We may use gas.", tentative=True), session="1", **place)
    red = fact("The lamp in the hall is red.", replaces=ids[1], category="decision")
    second, _ = await kept(client, model, river, red, session="2", project="me/shop")
    third, sources = await kept(client, model, WEATHER, COFFEE, TRAIN, session="3", project="me/shop")
    insight = {"facet": "knowledge", "text": "It rains a lot in the west.", "priority": "medium"}
    model.say({"rows": [row(SHORT, *sources)], "insights": [insight | {"source_ids": [sources[0]]}]})
    [reflection] = (await session_reflected(client, third))["reflection_ids"]
    fourth, sources = await kept(client, model, COFFEE, GARDEN, session="4")
    model.say({"rows": [row("Coffee and a garden.", *sources)]})
    [undone] = (await session_reflected(client, fourth))["reflection_ids"]
    assert (await client.post(f"/v1/reflections/{undone}/undo")).status_code == 200
    model.say({"rows": [row(GARDEN * 9, *sources)]})
    assert (await pool_reflected(client, min_age_days=0, project="me/shop"))["rejected"]
    await kept(client, model, *[f"Pier {n} is closed." for n in range(5)], session="5", timezone="Asia/Tokyo")
    pin = {"content": "Never deploy on Fridays.", "kind": "manual", "external_id": "pin:1", "tags": ["ops", "été"]}
    note = {"content": "The user prefers short answers.", "category": "preference", "session_id": first}
    written = (await client.post("/v1/memories/batch", json={"memories": [pin, note]})).json()["ids"]
    await fill_odd_session(client)
    for key in ("turn-1", *ODD):
        event = {"kind": "turn_end", "dedupe_key": key}
        assert (await client.post(f"/v1/sessions/{first}/events", json=event)).status_code == 202
    _, [zebra] = await kept(client, model, "The cellar is full of zebras.", session="6")
    assert (await client.delete(f"/v1/memories/{zebra}?messages=true")).json()["messages"] == 1
    _, [otter] = await kept(client, model, "Otters live in the mill.", session="7")
    assert (await client.delete(f"/v1/memories/{otter}")).status_code == 200
    assert "Rhine" in (await client.get(f"/v1/sessions/{second}/pack")).json()["text"]
    return {"first": first, "second": second, "third": third, "river": ids[0], "lamp": ids[1], "pin": written[0]} | {
        "reflection": reflection,
        "undone": undone,
    }


async def fill_odd_session(client: httpx2.AsyncClient) -> str:
    """Fill a session with odd names with unobserved messages: tools, images, any script; return its id."""
    began = datetime.now(UTC) - timedelta(hours=1)
    session = await opened(client, ODD[1], project=ODD[2], cwd=ODD[0])
    blocks: list[Any] = [
        {"type": "text", "text": 'Look at <this> & "that": 日本語\u2028 🏔'},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
        {"type": "unknown", "nested": {"a": [1, 2.5, None, True, {"b": "c"}]}},
    ]
    call = [{"type": "tool_use", "id": "t:1", "name": "Bash", "input": {"command": "ls"}}]
    result = [{"type": "tool_result", "tool_use_id": "t:1", "content": "auth.ts:45 ECONNRESET", "is_error": True}]
    first = {"external_id": ODD[3], "role": "user", "content": blocks, "sent_at": began.isoformat()}
    await said(client, session, first)
    await said(client, session, *ODD[4:])
    called = {"external_id": "call", "role": "assistant", "content": call}
    await said(client, session, called, {"external_id": "result", "role": "user", "content": result})
    return session


def small_file(name: str, texts: Sequence[str]) -> bytes:
    """Return the file of a pool with one observed session of that name, and a memory of its first message."""
    made = hashlib.sha256(name.encode()).hexdigest()[:20]
    session, group, at = f"ses_{made}", f"grp_{made}", "2026-01-05T09:00:00Z"
    counts = {"session": 1, "message": len(texts), "group": 1, "memory": 1, "reflection": 0}
    lines: list[dict[str, Any]] = [
        {"type": "header", "format": "esker-pool", "version": 1, "pool": "p", "exported_at": at, "counts": counts},
        {
            "type": "session", "id": session, "client": "api", "external_id": name, "project": "acme/shop", "cwd": None,
            "timezone": "UTC", "effective_context": 200_000, "last_seq": len(texts), "observed_seq": len(texts),
            "last_received_at": at, "reflect_at_tokens": None, "pack_version": 0, "current_task": None,
            "suggested_continuation": None, "thread_title": None, "created_at": at, "events": [], "pack": None,
        },
        *(
            {
                "type": "message", "session_id": session, "seq": seq, "external_id": f"m{seq}", "role": "user",
                "trust": "user", "sent_at": at, "received_at": at, "content": [{"type": "text", "text": text}],
                "content_hash": hashlib.sha256(text.encode()).hexdigest(), "calls": {}, "text": text, "tokens": 20,
                "shown_tokens": 20, "left_out": False,
            }
            for seq, text in enumerate(texts, start=1)
        ),
        {
            "type": "group", "id": group, "session_id": session, "first_seq": 1, "last_seq": len(texts),
            "first_external_id": "m1", "last_external_id": f"m{len(texts)}", "kind": "observations", "cwd": None,
            "observer": "extractive", "current_task": None, "suggested_continuation": None, "thread_title": None,
            "input_tokens": 0, "output_tokens": 0, "merged": 0, "replaced": 0, "refused": {}, "created_at": at,
        },
        {
            "type": "memory", "id": f"mem_{made}", "kind": "observation", "priority": "medium", "category": "fact",
            "trust": "user", "content": texts[0], "author": "extractive", "session_id": session, "group_id": group,
            "project": "acme/shop", "tags": [], "source_seqs": [1], "source_ids": [], "said_at": at,
            "refers_from": None, "refers_to": None, "valid_until": None, "last_used_at": at, "superseded_by": None,
            "superseded_at": None, "outdated_at": None, "reflection_id": None, "external_id": None,
            "left_alone": False, "tentative": False, "facet": None, "created_at": at, "sources": [],
        },
        {"type": "end", "counts": counts},
    ]  # fmt: skip
    return "".join(f"{json.dumps(line)}\n" for line in lines).encode()
