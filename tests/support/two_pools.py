"""Two pools of one server, or two projects of one, filled alike with different words, and all that they have."""

import json
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, LiteralString, cast

import httpx2
import psycopg
from psycopg import sql

from esker.server.db.statements import Statements
from esker.server.usecases.authenticate import SCOPES, NewKey, create_key, create_pool
from esker.server.usecases.parts import Parts
from tests.support.api import observed, opened, said
from tests.support.reflecting import OVERTAKEN
from tests.support.waiting import PATIENCE

_POOL_CONDITION = re.compile(r"(\w+\.)?pool_id = (current_pool\(\)|\{pool\}|(\w+\.)?pool_id)")
_TABLES: LiteralString = """
    SELECT c.relname FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'pool_id' AND NOT a.attisdropped
    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""


@dataclass
class FilledPool:
    """A pool with one of everything; `word` is in all that was said in it, and `ids` are of one thing of each kind.

    With `alone_in`, it is everything of that project in a pool, and nothing of it is without a project.
    """

    name: str
    pool_id: str
    word: str
    key_id: str
    client: httpx2.AsyncClient
    key: str
    ids: dict[str, str] = field(default_factory=dict[str, str])
    alone_in: str | None = None


async def filled_pool(parts: Parts, url: str, name: str, word: str) -> FilledPool:
    """Make a pool with a key of all scopes and fill it over HTTP."""
    made = await create_pool(parts, name)
    key = await create_key(parts, name="k", pool=name, scopes=list(SCOPES))
    pool = FilledPool(name, made.id, word, key.id, _client(url, key), key.key)
    await _fill(pool)
    return pool


async def filled_project(parts: Parts, url: str, pool_id: str, pool: str, name: str, word: str) -> FilledPool:
    """Fill the project `project-of-NAME` of a pool with a key of all scopes."""
    key = await create_key(parts, name=name, pool=pool, scopes=list(SCOPES))
    alone_in = f"project-of-{name}"
    filled = FilledPool(name, pool_id, word, key.id, _client(url, key), key.key, alone_in=alone_in)
    await _fill(filled)
    return filled


async def with_bound_key(parts: Parts, url: str, pool: str, filled: FilledPool) -> FilledPool:
    """Return a filled project whose caller has a key that is bound to it."""
    await filled.client.aclose()
    key = await create_key(parts, name=f"bound-{filled.name}", pool=pool, project=filled.alone_in)
    return replace(filled, key_id=key.id, key=key.key, client=_client(url, key))


def _client(url: str, key: NewKey) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=url, timeout=PATIENCE, headers={"Authorization": f"Bearer {key.key}"})


async def _fill(pool: FilledPool) -> None:
    client, word, project = pool.client, pool.word, f"project-of-{pool.name}"
    everywhere = {"project": pool.alone_in} if pool.alone_in else {}
    session = await opened(client, f"{pool.name}-1", project=project)
    decided = f"We decided that the {word} boat is painted blue."
    await said(client, session, {"external_id": f"m-{word}", "role": "user", "content": decided})
    await said(client, session, *({**each, "content": f"{each['content']} ({word})"} for each in OVERTAKEN))
    report = await observed(client, session)
    reflected = (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).json()
    assert reflected["reflection_ids"], reflected
    note = {"content": f"The {word} is ripe.", "project": project, "tags": [f"tag-of-{pool.name}"]}
    memory = (await client.post("/v1/memories", json={**note, "external_id": f"e-{pool.name}"})).json()["id"]
    await client.post("/v1/memories", json={"content": f"A {word} a day.", "kind": "manual", **everywhere})
    passages = (await client.post("/v1/recall", json={"query": word, "tier": "passages"})).json()["hits"]
    await client.get(f"/v1/sessions/{session}/pack")
    used = {"input_tokens": 10, "output_tokens": 1, "model": "m", "request_id": f"r-{pool.name}"}
    await client.post(f"/v1/sessions/{session}/usage", json=used)
    wrong = (await client.post("/v1/memories", json={"content": f"The {word} was a mistake.", **everywhere})).json()[
        "id"
    ]
    receipt = (await client.post("/v1/forget", json={"ids": [wrong]})).json()["id"]
    apart = await opened(client, f"{pool.name}-2", **everywhere)
    await said(client, apart, f"We decided to sell the {word} shed.")
    await observed(client, apart)
    quarantine = (await client.post("/v1/quarantines", json={"session_id": apart})).json()["id"]
    entry = (await client.get("/v1/audit")).json()["entries"][-1]["id"]
    pool.ids |= {
        "session": session,
        "memory": memory,
        "observation": report["memory_ids"][0],
        "passage": passages[0]["id"],
        "reflection": reflected["reflection_ids"][0],
        "project": project,
        "tag": f"tag-of-{pool.name}",
        "external": f"e-{pool.name}",
        "request": f"r-{pool.name}",
        "key": pool.key_id,
        "receipt": receipt,
        "quarantine": quarantine,
        "entry": str(entry),
    }


def missing_ids(pool: FilledPool) -> dict[str, str]:
    """Return ids of the same form as a pool's that nothing has."""
    return {
        kind: f"{given[:4]}{f'{number}' * (len(given) - 4)}"
        if re.match(r"(ses|mem|psg|ref|key|fgt|qua)_", given)
        else given
        for number, (kind, given) in enumerate(pool.ids.items())
    } | {"project": "project-of-nobody", "tag": "tag-of-nobody", "external": "e-nobody", "request": "r-nobody"}


def filled_in(value: Any, ids: Mapping[str, str]) -> Any:
    """Return a path, a query or a body with ids in place of their kinds in braces."""
    match value:
        case str():
            return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], found[0]), value)
        case list():
            return [filled_in(each, ids) for each in cast("list[Any]", value)]
        case dict():
            return {name: filled_in(each, ids) for name, each in cast("dict[str, Any]", value).items()}
        case _:
            return value


def everything_of(owner: psycopg.Connection, pool_id: str) -> dict[str, list[str]]:
    """Return all rows of a pool by table, as the owner sees them on a connection that commits each statement."""
    tables = [table for (table,) in owner.execute(_TABLES).fetchall()]
    rows: dict[str, list[str]] = {table: [] for table in tables}
    each = sql.SQL("SELECT {name}, to_jsonb(t)::text FROM {table} t WHERE pool_id = %(pool)s")
    every = [each.format(name=sql.Literal(table), table=sql.Identifier(table)) for table in tables]
    query = sql.SQL("{} ORDER BY 1, 2").format(sql.SQL(" UNION ALL ").join(every))
    for table, row in owner.execute(query, {"pool": pool_id}, prepare=True):
        rows[table].append(row)
    return rows


def rows_of(owner: psycopg.Connection, pool: FilledPool) -> dict[str, list[str]]:
    """Return all rows of a filled pool by table, or those of its project: with its name, a session or a text of it."""
    rows = everything_of(owner, pool.pool_id)
    if pool.alone_in is None:
        return rows
    read = {table: [(row, json.loads(row)) for row in found] for table, found in rows.items()}
    own = [row for table in ("sessions", "memories", "passages") for _, row in read[table]]
    own = [row for row in own if row["project"] == pool.alone_in]
    ids, numbers = {row["id"] for row in own}, {row["number"] for row in own if "number" in row}

    def is_own(row: Mapping[str, Any]) -> bool:
        named = {row.get(name) for name in ("id", "session_id", "memory_id", "subject")}
        return row.get("project") == pool.alone_in or bool(named & ids) or row.get("number") in numbers

    return {table: [text for text, row in found if is_own(row)] for table, found in read.items() if table != "api_keys"}


@contextmanager
def without_pool_conditions() -> Generator[int]:
    """Take every condition on a pool out of all statements; yield how many there were."""
    found = (value for module in list(sys.modules.values()) for value in list(vars(module).values()))
    # `isinstance` would ask each object for its class, and deprecated ones of a library warn.
    loaded = list({id(each): each for each in found if type(each) is Statements}.values())
    before = [dict(each._statements) for each in loaded]
    count = 0
    for each in loaded:
        for name, text in each._statements.items():
            stripped, times = _POOL_CONDITION.subn("true", text)
            each._statements[name] = cast(LiteralString, stripped)
            count += times
    try:
        yield count
    finally:
        for each, statements in zip(loaded, before, strict=True):
            each._statements.update(statements)
