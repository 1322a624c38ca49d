"""Recall: complete in its pool, correct in any script, exact about scope and time, and empty for unknown subjects."""

from collections.abc import AsyncGenerator
from itertools import product
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg import sql

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.providers.embedders import LocalEmbedder
from esker.server.usecases.authenticate import create_key, create_pool
from tests.support.api import contents, observed, opened, recalled, said, settled, tool_text
from tests.support.serving import serving_meaning
from tests.support.waiting import PATIENCE

SAYINGS = (
    "We keep the ledger in Postgres, one schema for each shop.",
    "The ferry to Skye leaves at seven in the morning.",
    "My sister lives in Rotterdam and breeds whippets.",
    "A refund must never exceed what the passenger paid.",
    "用 docker 部署容器的时候失败了，因为磁盘满了。",
    "東京タワーの近くに住んでいる友達が来る。",
    "서울에서 새 버전을 배포했다.",
    "Die Lieferung nach Köln ist verspätet, weil der Zug nicht fährt.",
)


@pytest.fixture
async def meaning(database_url: str, minilm: LocalEmbedder) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server and a worker that share the real model."""
    async with (
        serving_meaning(database_url, minilm) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client,
    ):
        yield client


def messages(*texts: str, first: int = 1) -> list[dict[str, Any]]:
    """Return messages of a user."""
    return [{"external_id": f"m{n}", "role": "user", "content": text} for n, text in enumerate(texts, start=first)]


CROWD = 3_000
OWN = 30


def crowded(owner_url: str, crowd: str, own: str) -> None:
    """Fill a pool with rows that state the same as those of another, with the same vectors."""
    with psycopg.connect(owner_url) as connection:
        found = connection.execute("SELECT name FROM embedding_spaces WHERE pool_id = %s", (own,)).fetchone()
        assert found
        connection.execute(
            """
            INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, tokens,
                                  terms, parts, said_at, last_used_at, created_at)
            SELECT %s, 'mem_' || n, 'note', 'high', 'fact', 'user', 'River number ' || n || ' runs into the sea.',
                   sha256(n::text::bytea), 'test', 9, 4, 1, now(), now(), now()
            FROM generate_series(1, %s) AS n
            """,
            (crowd, CROWD),
        )
        connection.execute(
            """
            INSERT INTO postings (pool_id, tier, term, number, part, frequency, length)
            SELECT pool_id, 'm', term, number, 1, 1, 4
            FROM memories, unnest(ARRAY['river', 'number', 'run', 'sea']) AS term WHERE pool_id = %s
            """,
            (crowd,),
        )
        connection.execute(
            sql.SQL(
                """
                WITH near AS (
                    SELECT row_number() OVER (ORDER BY number) AS place, embedding
                    FROM {vectors} WHERE pool_id = %(own)s
                )
                INSERT INTO {vectors} (pool_id, tier, number, part, content_hash, embedding, created_at)
                SELECT m.pool_id, 'm', m.number, 0, m.content_hash, near.embedding, now()
                FROM memories m JOIN near ON near.place = 1 + m.number %% %(count)s WHERE m.pool_id = %(crowd)s
                """
            ).format(vectors=sql.Identifier(f"embeddings_{found[0]}")),
            {"own": own, "crowd": crowd, "count": OWN},
        )


async def test_a_small_pool_finds_all_its_rows_beside_a_large_pool_with_similar_ones(
    meaning: httpx2.AsyncClient, database_url: str, owner_url: str
) -> None:
    parts = make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), Database(database_url), system_clock)
    async with parts.database:
        crowd, own = await create_pool(parts, "crowd"), await create_pool(parts, "own")
        key = await create_key(parts, name="mine", pool="own", scopes=["read", "write"])
    meaning.headers["Authorization"] = f"Bearer {key.key}"
    rows = [{"content": f"River number {n} runs into the sea."} for n in range(OWN)]
    ids = (await meaning.post("/v1/memories/batch", json={"memories": rows})).json()["ids"]
    await settled(meaning)
    crowded(owner_url, crowd.id, own.id)
    for ranking in ("full", "keyword", "vector"):
        answer = await recalled(meaning, "Which river runs into the sea?", limit=50, ranking=ranking)
        assert {hit["id"] for hit in answer["hits"]} == set(ids), ranking
        assert len((await recalled(meaning, "river sea", limit=7, ranking=ranking))["hits"]) == 7


async def test_a_stored_text_is_its_own_first_hit_in_either_tier(meaning: httpx2.AsyncClient) -> None:
    for number, text in enumerate(SAYINGS):
        session = await opened(meaning, f"s{number}")
        await said(meaning, session, *messages(text))
        await observed(meaning, session)
    await settled(meaning)
    for text in SAYINGS:
        for tier in ("both", "passages"):
            answer = await recalled(meaning, text, tier=tier)
            assert text in contents(answer)[0], (tier, text)
            assert answer["hits"][0]["score"] > 0.9
            scores = [hit["score"] for hit in answer["hits"]]
            assert scores == sorted(scores, reverse=True)


PLACES = {
    "docker 部署": 4,
    "容器": 4,
    "磁盘满了": 4,
    "タワー": 5,
    "友達": 5,
    "배포했다": 6,
    "서울에서": 6,
    "koln": 7,
}


async def test_a_sub_phrase_of_any_script_finds_the_message(client: httpx2.AsyncClient) -> None:
    for number, text in enumerate(SAYINGS):
        await said(client, await opened(client, f"s{number}"), *messages(text))
    for query, place in PLACES.items():
        assert contents(await recalled(client, query)) == [f"user: {SAYINGS[place]}"], query


async def test_a_time_filter_uses_when_a_text_was_said_and_not_when_it_was_stored(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    for month in (1, 2, 3):
        text = f"Our river number {month} is the Rhine."
        sent = {"external_id": f"m{month}", "role": "user", "content": text, "sent_at": f"2024-0{month}-15T12:00:00Z"}
        await said(client, session, sent)
    await observed(client, session)
    window = {"since": "2024-02-01T00:00:00Z", "until": "2024-02-29T00:00:00Z"}
    for tier in ("memories", "passages"):
        hits = (await recalled(client, "our river Rhine", tier=tier, **window))["hits"]
        assert hits, tier
        assert {hit["said_at"][:7] for hit in hits} == {"2024-02"}
    assert (await recalled(client, "our river Rhine", since="2024-04-01T00:00:00Z"))["hits"] == []


async def test_recall_finds_exactly_the_listed_rows_of_the_same_scope(client: httpx2.AsyncClient) -> None:
    for name, project in (("s1", "p"), ("s2", "q"), ("s3", None)):
        session = await opened(client, name, **({"project": project} if project else {}))
        await said(client, session, *messages(f"Our river is the {name}-river.", f"Our bridge is the {name}-bridge."))
        await observed(client, session)
    for scope in ({}, {"project": "p"}, {"project": "q"}):
        listed = (await client.get("/v1/memories", params=scope)).json()["memories"]
        answer = await recalled(client, "our river bridge", tier="memories", limit=50, **scope)
        assert {hit["id"] for hit in answer["hits"]} == {row["id"] for row in listed}


UNKNOWN_SCOPES: tuple[tuple[dict[str, str], int, str], ...] = (
    ({"scope": "session"}, 422, "needs a session_id"),
    ({"scope": "project"}, 422, "needs a project"),
    ({"scope": "session", "session_id": "ses_unknown"}, 404, "ses_unknown"),
    ({"scope": "elsewhere"}, 422, "scope"),
)


async def test_an_unknown_scope_is_an_error_and_not_an_empty_success(client: httpx2.AsyncClient) -> None:
    await said(client, await opened(client), *messages(SAYINGS[0]))
    for (asked, status, words), tier in product(UNKNOWN_SCOPES, ("memories", "passages", "both")):
        answer = await client.post("/v1/recall", json={"query": "ledger", "tier": tier, **asked})
        assert (answer.status_code, words in answer.json()["detail"]) == (status, True), answer.text


async def test_every_id_of_an_answer_can_be_read_expanded_and_forgotten(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, *messages(*SAYINGS[:4]))
    await observed(client, session)
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    await said(client, session, *messages("The ledger was closed yesterday, and the ferry was late.", first=9))
    await client.post("/v1/memories", json={"content": "The ledger of the ferry is blue."})
    answer = await recalled(client, "ledger ferry", explain=True, include_superseded=True)
    assert {hit["tier"] for hit in answer["hits"]} == {"memory", "passage"}
    ids = {one["id"] for one in (*answer["hits"], *answer["left_out"])}
    for hit in answer["hits"]:
        ids |= {*hit["same"], *hit["passages"]}
        ids |= {memory_id for source in hit["sources"] for memory_id in source["memory_ids"]}
    assert len(ids) > len(answer["hits"])
    for text_id in sorted(ids):
        shown = await client.get(f"/v1/memories/{text_id}")
        assert (shown.status_code, shown.json()["id"]) == (200, text_id)
        assert (await client.get(f"/v1/memories/{text_id}/sources")).status_code == 200
    for hit in answer["hits"]:
        assert (await client.delete(f"/v1/memories/{hit['id']}")).status_code in (200, 404)
    left = await recalled(client, "ledger ferry", include_superseded=True)
    assert not {hit["id"] for hit in answer["hits"]} & {hit["id"] for hit in left["hits"]}


async def test_every_endpoint_shows_the_same_text_also_after_a_change(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    await said(client, session, *messages("The ferry was late on Friday."))
    note = {"content": SAYINGS[1], "priority": "low"}
    written = (await client.post("/v1/memories", json=note)).json()["id"]
    assert (await client.post("/v1/memories", json=note | {"priority": "high"})).json()["id"] == written
    hits = (await recalled(client, "ferry"))["hits"]
    assert {hit["tier"] for hit in hits} == {"memory", "passage"}
    answered = await tool_text(client, "recall_memory", query="ferry")
    for hit in hits:
        shown = (await client.get(f"/v1/memories/{hit['id']}")).json()
        assert shown.get("content", shown.get("text")) == hit["content"]
        assert f"{hit['content']} [{hit['id']}, " in answered
        evidence = await tool_text(client, "expand_memory", memory_id=hit["id"])
        assert hit["id"] in evidence
        assert hit["content"].removeprefix("user: ") in evidence
    listed = (await client.get("/v1/memories")).json()["memories"]
    assert [(row["id"], row["content"], row["priority"]) for row in listed] == [(written, SAYINGS[1], "high")]
    assert "* 🔴 " in answered


NONSENSE = {
    "purple elephants in quantum lasagna": "ok",
    "kubernetes ingress yaml": "ok",
    "Wie füttert man einen Ameisenbären?": "weak",
}


async def test_a_question_about_an_unknown_subject_gets_an_explained_empty_answer(
    meaning: httpx2.AsyncClient,
) -> None:
    session = await opened(meaning)
    await said(meaning, session, *messages(*SAYINGS))
    await observed(meaning, session)
    await settled(meaning)
    for nonsense, semantic in NONSENSE.items():
        answer = await recalled(meaning, nonsense)
        assert (contents(answer), answer["abstained"], answer["semantic"]) == ([], True, semantic), nonsense
        assert "Nothing in memory is about this." in await tool_text(meaning, "recall_memory", query=nonsense)
