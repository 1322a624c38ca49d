"""From a memory to the words behind it, over HTTP."""

from datetime import UTC, datetime
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.core.recall.expansion import FORGOTTEN
from esker.server.core.records import Principal
from esker.server.usecases.authenticate import create_key, create_pool
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.api import observed, opened, said
from tests.support.model_server import ModelServer
from tests.support.reflecting import fact, kept, pool_reflected, row, session_reflected

WEATHER = "The agent explained at great length how the weather comes about, and that it rains a lot in the west."
COFFEE = "The coffee machine of the office was out of order for a whole week in the summer, and nobody mended it."
TRAIN = "The train to the coast was so full that everybody had to stand in the corridor for the whole way there."
SHORT = "Weather and coffee were talked about."
SHORTER = "There was small talk."

Answer = dict[str, Any]


@pytest.fixture
def both(scripted_client: httpx2.AsyncClient, model: ModelServer) -> tuple[httpx2.AsyncClient, ModelServer]:
    """A client of a server with a scripted model, and the model."""
    return scripted_client, model


async def expanded(client: httpx2.AsyncClient, memory_id: str, **query: Any) -> Answer:
    """Expand a memory."""
    answer = await client.get(f"/v1/memories/{memory_id}/sources", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def messages(found: Answer) -> list[tuple[int, str, bool]]:
    """Return the messages of an expansion: number, text, and whether a row cites it."""
    return [(m["seq"], m["text"], m["cited"]) for excerpt in found["excerpts"] for m in excerpt["messages"]]


async def told(client: httpx2.AsyncClient, model: ModelServer, texts: list[str], *cited: list[int]) -> list[str]:
    """Have a session say texts and the model keep a fact for each list of numbers; return the ids."""
    session = await opened(client, project="p", timezone="Asia/Tokyo")
    await said(client, session, *({"external_id": f"m{n}", "role": "user", "content": t} for n, t in enumerate(texts)))
    facts = [fact(texts[seqs[0] - 1].partition(".")[0]) | {"sources": seqs} for seqs in cited]
    model.say({"facts": facts})
    return (await observed(client, session))["memory_ids"]


NUMBERED = [f"Thing {n} is in drawer {n}." for n in range(1, 31)]


@pytest.mark.parametrize(
    ("around", "cited", "seqs"),
    [
        (0, [5], [5]),
        (1, [5], [4, 5, 6]),
        (2, [1], [1, 2, 3]),
        (2, [30], [28, 29, 30]),
        (2, [5, 8], [3, 4, 5, 6, 7, 8, 9, 10]),
        (1, [5, 20], [4, 5, 6, 19, 20, 21]),
        (20, [3, 4], list(range(1, 25))),
    ],
)
async def test_the_messages_around_a_fact_are_shown_verbatim_and_each_once(
    both: tuple[httpx2.AsyncClient, ModelServer], around: int, cited: list[int], seqs: list[int]
) -> None:
    client, model = both
    [memory_id] = await told(client, model, NUMBERED, cited)
    found = await expanded(client, memory_id, around=around)
    assert messages(found) == [(seq, NUMBERED[seq - 1], seq in cited) for seq in seqs]
    [excerpt] = found["excerpts"]
    assert (excerpt["client"], excerpt["external_id"], excerpt["project"]) == ("api", "s1", "p")
    assert found["expanded"]["memory"] == (await client.get(f"/v1/memories/{memory_id}")).json()
    assert (found["drawn_from"], set(found["left_out"].values())) == ([], {0})


async def test_a_message_has_its_id_its_speaker_and_its_time(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    sent = datetime(2026, 3, 1, 12, 30, tzinfo=UTC).isoformat()
    note = {"external_id": "m:1", "role": "user", "content": "Never use floats for money.", "sent_at": sent}
    await said(client, session, note)
    [memory_id] = (await observed(client, session))["memory_ids"]
    [shown] = (await expanded(client, memory_id))["excerpts"][0]["messages"]
    assert shown.pop("age").endswith("ago")
    assert datetime.fromisoformat(shown.pop("sent_at")) == datetime.fromisoformat(sent)
    assert shown == {
        "seq": 1, "external_id": "m:1", "role": "user", "trust": "user", "text": note["content"],
        "cited": True, "forgotten": False, "truncated": False,
    }  # fmt: skip


async def test_messages_without_text_are_skipped(both: tuple[httpx2.AsyncClient, ModelServer]) -> None:
    client, model = both
    session = await opened(client)
    thoughts: list[dict[str, Any] | str] = [
        {"external_id": f"t{n}", "role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}
        for n in range(5)
    ]
    await said(client, session, "Which river?", *thoughts, "Our river is the Rhine.", "Fine.")
    model.say({"facts": [fact("The river is the Rhine.") | {"sources": [7]}]})
    [memory_id] = (await observed(client, session))["memory_ids"]
    assert messages(await expanded(client, memory_id, around=1)) == [
        (1, "Which river?", False), (7, "Our river is the Rhine.", True), (8, "Fine.", False),
    ]  # fmt: skip


async def test_a_secret_in_a_message_stays_masked(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    key = "sk-ant-" + "api03-" + "a1B2" * 12
    await said(client, session, f"My key is {key}.", "Never use floats for money.")
    ids = (await observed(client, session))["memory_ids"]
    for memory_id in ids:
        assert key not in str(await expanded(client, memory_id))
        assert "[redacted" in str(await expanded(client, memory_id))


async def test_messages_that_repeat_a_fact_elsewhere_are_shown_too(
    both: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = both
    _, [memory_id] = await kept(client, model, WEATHER, session="s1", project="p")
    again, _ = await kept(client, model, WEATHER, session="s2", project="p")
    found = await expanded(client, memory_id)
    assert [excerpt["external_id"] for excerpt in found["excerpts"]] == ["s1", "s2"]
    assert found["excerpts"][1]["session_id"] == again
    assert messages(found) == [(1, WEATHER, True)] * 2


async def test_a_reflection_of_reflections_leads_to_its_messages(
    both: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE, session="s1", project="p")
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    _, [train] = await kept(client, model, TRAIN, session="s2", project="p")
    [middle] = [one["id"] for one in (await client.get("/v1/memories?kind=reflection")).json()["memories"]]
    model.say({"rows": [row(SHORTER, middle, train)]})
    await pool_reflected(client)
    [top] = [
        one["id"]
        for one in (await client.get("/v1/memories?kind=reflection")).json()["memories"]
        if one["content"] == SHORTER
    ]
    found = await expanded(client, top)
    behind = [(one["memory"]["id"], one["depth"], one["source_of"]) for one in found["drawn_from"]]
    assert sorted(behind[:2]) == sorted([(middle, 1, top), (train, 1, top)])
    assert behind[2:] == [(ids[0], 2, middle), (ids[1], 2, middle)]
    assert {one["memory"]["superseded_by"] for one in found["drawn_from"]} == {top, middle}
    assert sorted(messages(found)) == sorted([(1, WEATHER, True), (2, COFFEE, True), (1, TRAIN, True)])
    below = await expanded(client, ids[0])
    assert below["expanded"]["memory"]["superseded_by"] == middle
    assert below["drawn_from"] == []


async def test_an_undone_reflection_still_leads_to_its_sources(both: tuple[httpx2.AsyncClient, ModelServer]) -> None:
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    [made] = [one["id"] for one in (await client.get("/v1/memories?kind=reflection")).json()["memories"]]
    assert (await client.post(f"/v1/reflections/{reflection}/undo")).status_code == 200
    found = await expanded(client, made)
    assert found["expanded"]["memory"]["superseded_by"] == reflection
    assert [(one["memory"]["id"], one["memory"]["superseded_by"]) for one in found["drawn_from"]] == [
        (memory_id, None) for memory_id in ids
    ]
    assert messages(found) == [(1, WEATHER, True), (2, COFFEE, True)]


async def test_rows_that_cite_each_other_are_shown_once(
    both: tuple[httpx2.AsyncClient, ModelServer], owner_url: str
) -> None:
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    [made] = [one["id"] for one in (await client.get("/v1/memories?kind=reflection")).json()["memories"]]
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET source_ids = %s WHERE id = %s", ([made, ids[1], ids[0]], ids[0]))
    found = await expanded(client, made)
    assert [one["memory"]["id"] for one in found["drawn_from"]] == ids


async def test_a_deleted_source_hides_no_other_and_does_not_count_as_left_out(
    both: tuple[httpx2.AsyncClient, ModelServer], owner_url: str
) -> None:
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    [made] = [one["id"] for one in (await client.get("/v1/memories?kind=reflection")).json()["memories"]]
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET source_ids = %s WHERE id = %s", (["mem_gone", ids[0]], made))
        connection.execute("UPDATE memories SET source_ids = %s WHERE id = %s", ([ids[1]], ids[0]))
    found = await expanded(client, made)
    assert [one["memory"]["id"] for one in found["drawn_from"]] == ids
    assert found["left_out"]["memories"] == 0


async def test_forgotten_messages_are_shown_as_forgotten(both: tuple[httpx2.AsyncClient, ModelServer]) -> None:
    client, model = both
    gone, stays = await told(client, model, NUMBERED[:3], [1, 2], [2, 3])
    assert (await client.delete(f"/v1/memories/{gone}?messages=true")).status_code == 200
    found = await expanded(client, stays)
    assert messages(found) == [(1, FORGOTTEN, False), (2, FORGOTTEN, True), (3, NUMBERED[2], True)]
    assert [m["forgotten"] for m in found["excerpts"][0]["messages"]] == [True, True, False]


@pytest.mark.parametrize("messages_too", ["true", "false"])
async def test_the_words_of_a_forgotten_fact_are_in_no_expansion_of_its_neighbours(
    both: tuple[httpx2.AsyncClient, ModelServer], messages_too: str
) -> None:
    client, model = both
    secret, beside = await told(
        client, model, ["My salary is paid in Zanzibar.", "The cluster is called Osprey."], [1], [2]
    )
    assert "Zanzibar" in str(await expanded(client, beside))
    await client.delete(f"/v1/memories/{secret}?messages={messages_too}")
    found = await expanded(client, beside)
    assert "Zanzibar" not in str(found)
    assert "Osprey" in str(found)


async def test_a_message_that_only_claims_to_be_forgotten_is_shown(
    both: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = both
    [memory_id] = await told(client, model, [FORGOTTEN], [1])
    [message] = (await expanded(client, memory_id))["excerpts"][0]["messages"]
    assert (message["text"], message["forgotten"]) == (FORGOTTEN, False)


async def test_a_note_says_who_wrote_it_and_when(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    note = {"content": "Our hill is the Brocken.", "session_id": session}
    written = (await client.post("/v1/memories", json=note)).json()
    found = await expanded(client, written["id"])
    assert found["excerpts"] == []
    assert found["expanded"]["memory"]["author"] == "local"
    assert found["expanded"]["memory"]["created_at"] == written["created_at"]


async def test_an_expansion_fits_its_token_limit_and_the_rest_is_counted(
    both: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = both
    texts = [f"Thing {n} is in drawer {n}. {'And so on. ' * 100}" for n in range(1, 12)]
    [memory_id] = await told(client, model, texts, [6])
    small, large = [await expanded(client, memory_id, around=5, max_tokens=tokens) for tokens in (600, 20_000)]
    assert messages(large) == [(seq, text.strip(), seq == 6) for seq, text in enumerate(texts, start=1)]
    assert set(large["left_out"].values()) == {0}
    [[seq, text, cited]] = messages(small)
    assert (seq, cited, texts[5].startswith(text)) == (6, True, True)
    assert small["left_out"] == {"memories": 0, "cited": 0, "around": 10}


async def test_a_pool_sees_nothing_of_another(
    both: tuple[httpx2.AsyncClient, ModelServer], parts: Parts, who: Principal
) -> None:
    client, model = both
    _, [memory_id] = await kept(client, model, WEATHER)
    pool = await create_pool(parts, "strangers")
    key = await create_key(parts, name="s", pool="strangers", scopes=["read"])
    mine = await create_key(parts, name="m", pool="default", scopes=["read"])
    stranger = Principal(pool.id, pool.name, "stranger", who.scopes)
    [theirs] = await remember(parts, stranger, [Note("Theirs.")])
    for opens, own, other in ((key, theirs, memory_id), (mine, memory_id, theirs)):
        client.headers["Authorization"] = f"Bearer {opens.key}"
        assert (await client.get(f"/v1/memories/{own}/sources")).status_code == 200
        refused = await client.get(f"/v1/memories/{other}/sources")
        assert (refused.status_code, other in refused.json()["detail"]) == (404, True)


@pytest.mark.parametrize(
    "memory_id",
    ["mem_nothing", "ref_1", "..", "%00", "%ff", "' OR true --", "mem_%25", "x" * 2_000, "河", "a%2Fb", "mem_1%0A"],
)
async def test_an_unknown_id_is_not_found(client: httpx2.AsyncClient, memory_id: str) -> None:
    await client.post("/v1/memories", json={"content": "Our hill is the Brocken."})
    answer = await client.get(f"/v1/memories/{memory_id}/sources")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "query", ["around=-1", "around=21", "around=x", "max_tokens=1", "max_tokens=999999", "arond=1"]
)
async def test_an_invalid_size_is_refused(client: httpx2.AsyncClient, query: str) -> None:
    written = (await client.post("/v1/memories", json={"content": "Our hill is the Brocken."})).json()["id"]
    assert (await client.get(f"/v1/memories/{written}/sources?{query}")).status_code == 422
