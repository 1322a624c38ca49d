"""Correcting: a right row replaces a wrong one, and a caller never overwrites a change it has not seen."""

import asyncio

import httpx2
import pytest

from esker.server.usecases.authenticate import create_key, create_pool
from esker.server.usecases.parts import Parts
from tests.support.api import contents, observed, opened, recalled, said


async def written(client: httpx2.AsyncClient, content: str, **more: object) -> str:
    """Write a note and return its id."""
    answer = await client.post("/v1/memories", json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def test_recall_finds_the_correction_instead_of_the_wrong_row(client: httpx2.AsyncClient) -> None:
    wrong = await written(client, "The river is the Elbe.", project="p", tags=["geo"], priority="high")
    answer = await client.patch(f"/v1/memories/{wrong}", json={"content": "The river is the Rhine."})
    assert answer.status_code == 200
    right = answer.json()
    assert right["id"] != wrong
    assert (right["project"], right["tags"], right["priority"], right["kind"]) == ("p", ["geo"], "high", "note")
    assert contents(await recalled(client, "river", project="p")) == ["The river is the Rhine."]
    assert (await client.get(f"/v1/memories/{wrong}")).json()["superseded_by"] == right["id"]
    both = contents(await recalled(client, "river", project="p", include_superseded=True))
    assert set(both) == {"The river is the Rhine.", "The river is the Elbe."}


async def test_only_given_values_change(client: httpx2.AsyncClient) -> None:
    first = await written(client, "The river is the Rhine.", tags=["a"], category="decision")
    answer = (await client.patch(f"/v1/memories/{first}", json={"priority": "high"})).json()
    kept = (answer["content"], answer["tags"], answer["category"], answer["priority"])
    assert kept == ("The river is the Rhine.", ["a"], "decision", "high")
    answer = (await client.patch(f"/v1/memories/{answer['id']}", json={"tags": []})).json()
    assert (answer["tags"], answer["priority"]) == ([], "high")


async def test_of_two_concurrent_corrections_the_second_fails(client: httpx2.AsyncClient) -> None:
    wrong = await written(client, "The river is the Elbe.")
    answers = await asyncio.gather(
        *(client.patch(f"/v1/memories/{wrong}", json={"content": f"The river is number {n}."}) for n in range(24))
    )
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 23]
    [right] = [answer.json() for answer in answers if answer.status_code == 200]
    assert all(right["id"] in answer.json()["detail"] for answer in answers if answer.status_code == 409)
    assert contents(await recalled(client, "river")) == [right["content"]]


async def test_a_correction_to_the_words_of_an_existing_row_is_that_row(client: httpx2.AsyncClient) -> None:
    right = await written(client, "The river is the Rhine.")
    wrong = await written(client, "The river is the Elbe.")
    answer = (await client.patch(f"/v1/memories/{wrong}", json={"content": "The river is the Rhine."})).json()
    assert answer["id"] == right
    assert (await client.get(f"/v1/memories/{wrong}")).json()["superseded_by"] == right
    assert (await client.delete(f"/v1/memories/{right}")).json()["memories"] >= 1
    assert "Rhine" not in str((await client.get("/v1/memories?include_superseded=true")).json())


async def test_a_row_can_be_corrected_and_corrected_back(client: httpx2.AsyncClient) -> None:
    first = await written(client, "The river is the Elbe.")
    second = (await client.patch(f"/v1/memories/{first}", json={"content": "The river is the Rhine."})).json()["id"]
    third = (await client.patch(f"/v1/memories/{second}", json={"content": "The river is the Elbe."})).json()["id"]
    assert len({first, second, third}) == 3
    assert contents(await recalled(client, "river")) == ["The river is the Elbe."]
    assert await written(client, "The river is the Elbe.") == third


async def test_the_corrected_row_keeps_the_callers_external_id(client: httpx2.AsyncClient) -> None:
    first = await written(client, "The river is the Elbe.", external_id="river")
    right = (await client.patch(f"/v1/memories/{first}", json={"content": "The river is the Rhine."})).json()
    assert right["external_id"] == "river"
    other = await written(client, "A hill.", external_id="hill")
    taken = await client.patch(f"/v1/memories/{other}", json={"external_id": "river"})
    assert (taken.status_code, (await client.get(f"/v1/memories/{other}")).json()["superseded_by"]) == (409, None)


async def test_a_pinned_row_stays_pinned_and_within_the_limit_of_pins(client: httpx2.AsyncClient) -> None:
    pinned = await written(client, "Never push to main.", kind="manual")
    session = await opened(client)
    right = (await client.patch(f"/v1/memories/{pinned}", json={"content": "Never push to release."})).json()
    assert right["kind"] == "manual"
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()["text"]
    assert ("release" in pack, "main" in pack) == (True, False)
    long = await client.patch(f"/v1/memories/{right['id']}", json={"content": "word " * 3_000})
    assert (long.status_code, "pinned" in long.json()["detail"]) == (422, True)
    assert (await client.get(f"/v1/memories/{right['id']}")).json()["superseded_by"] is None


async def test_an_observation_can_be_corrected_and_forgotten(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="p")
    await said(client, session, "We decided that the ledger lives in Postgres.")
    await observed(client, session)
    [row] = (await client.get("/v1/memories")).json()["memories"]
    right = (await client.patch(f"/v1/memories/{row['id']}", json={"content": "The ledger lives in SQLite."})).json()
    assert (right["kind"], right["session_id"]) == ("note", session)
    assert (await client.delete(f"/v1/memories/{right['id']}")).json()["restored"] == 1
    assert (await client.get(f"/v1/memories/{row['id']}")).json()["superseded_by"] is None


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "The correction is empty"),
        ({"content": None}, 422, "The correction is empty"),
        ({"content": " \n"}, 422, "empty"),
        ({"content": "x" * 16_001}, 422, "16,000"),
        ({"priority": "huge"}, 422, "priority"),
        ({"contents": "x"}, 422, "contents"),
    ],
)
async def test_an_invalid_correction_changes_nothing(
    client: httpx2.AsyncClient, body: dict[str, object], status: int, words: str
) -> None:
    row = await written(client, "The river is the Rhine.")
    answer = await client.patch(f"/v1/memories/{row}", json=body)
    assert (answer.status_code, words in answer.text) == (status, True)
    assert (await client.get(f"/v1/memories/{row}")).json()["superseded_by"] is None


async def test_a_passage_cannot_be_corrected(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, "The river is the Rhine.")
    [hit] = (await recalled(client, "river"))["hits"]
    answer = await client.patch(f"/v1/memories/{hit['id']}", json={"content": "No."})
    assert (answer.status_code, "is verbatim" in answer.json()["detail"]) == (422, True)


async def test_a_row_of_another_pool_cannot_be_corrected(client: httpx2.AsyncClient, parts: Parts) -> None:
    row = await written(client, "The river is the Rhine.")
    await create_pool(parts, "strangers")
    key = await create_key(parts, name="a", pool="strangers", scopes=["read", "write"])
    reader = await create_key(parts, name="b", pool="strangers", scopes=["read"])
    headers = {"Authorization": f"Bearer {key.key}"}
    assert (await client.patch(f"/v1/memories/{row}", json={"content": "No."}, headers=headers)).status_code == 404
    headers = {"Authorization": f"Bearer {reader.key}"}
    assert (await client.patch(f"/v1/memories/{row}", json={"content": "No."}, headers=headers)).status_code == 403
