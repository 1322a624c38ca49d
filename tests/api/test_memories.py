"""Memories: written once, read back, forgotten without a trace."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.records import Principal
from esker.server.db.database import Connection, Database
from esker.server.db.programs import BINARIES
from esker.server.store import memories
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, get_memory, remember
from tests.support.api import contents, observed, opened, recalled, said
from tests.support.databases import dump, until_one_waits
from tests.support.reflecting import OVERTAKEN
from tests.support.serving import serving
from tests.support.waiting import PATIENCE, eventually


async def noted(client: httpx2.AsyncClient, content: str, **more: Any) -> dict[str, Any]:
    """Write a memory and return it."""
    answer = await client.post("/v1/memories", json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_a_note_is_read_back_as_it_was_written(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="p")
    written = await noted(
        client,
        "  The staging host is stage-3.  ",
        priority="high",
        category="fact",
        tags=["infra", "infra"],
        session_id=session,
        said_at="2026-03-01T08:00:00+02:00",
        external_id="n1",
    )
    assert (await client.get(f"/v1/memories/{written['id']}")).json() == written
    assert (written["content"], written["kind"], written["priority"]) == (
        "The staging host is stage-3.",
        "note",
        "high",
    )
    assert (written["tags"], written["project"], written["session_id"]) == (["infra"], "p", session)
    assert written["said_at"] == "2026-03-01T06:00:00Z"


async def test_twenty_concurrent_identical_writes_are_one_row(client: httpx2.AsyncClient) -> None:
    written = await asyncio.gather(*(noted(client, "Deploys are frozen.") for _ in range(20)))
    assert len({row["id"] for row in written}) == 1
    assert len((await client.get("/v1/memories")).json()["memories"]) == 1


async def test_the_same_words_in_another_project_or_session_are_another_row(client: httpx2.AsyncClient) -> None:
    ids = {(await noted(client, "Port 8377.", **more))["id"] for more in ({}, {"project": "p"}, {"external_id": "x"})}
    assert len(ids) == 3


async def test_an_external_id_belongs_to_one_row(client: httpx2.AsyncClient) -> None:
    first = await noted(client, "One.", external_id="n1")
    assert (await noted(client, "One.", external_id="n1"))["id"] == first["id"]
    answer = await client.post("/v1/memories", json={"content": "Two.", "external_id": "n1"})
    assert answer.status_code == 409
    assert (await client.get("/v1/memories")).json()["memories"] == [first]


async def test_a_batch_is_written_whole_or_not_at_all(client: httpx2.AsyncClient) -> None:
    rows = [{"content": f"Fact {n}."} for n in range(1_000)]
    answer = await client.post("/v1/memories/batch", json={"memories": rows})
    assert (answer.status_code, len(set(answer.json()["ids"]))) == (201, 1_000)
    again = await client.post("/v1/memories/batch", json={"memories": rows[:3]})
    assert again.json()["ids"] == answer.json()["ids"][:3]
    bad = await client.post("/v1/memories/batch", json={"memories": [{"content": "New."}, {"content": "  "}]})
    assert bad.status_code == 422
    assert (await recalled(client, "New"))["abstained"]
    too_many = await client.post("/v1/memories/batch", json={"memories": [*rows, {"content": "x"}]})
    assert too_many.status_code == 422


@pytest.mark.parametrize(
    "change",
    [
        {"content": ""},
        {"content": "x" * 16_001},
        {"content": None},
        {"kind": "observation"},
        {"priority": "urgent"},
        {"tags": ["x" * 101]},
        {"said_at": "0001-01-01T00:00:00Z"},
        {"prioritty": "high"},
    ],
)
async def test_an_invalid_note_is_refused(client: httpx2.AsyncClient, change: dict[str, Any]) -> None:
    answer = await client.post("/v1/memories", json={"content": "x", **change})
    assert answer.status_code == 422
    assert (await client.get("/v1/memories")).json()["memories"] == []


async def test_lists_are_filtered_and_paged(client: httpx2.AsyncClient) -> None:
    for n in range(5):
        await noted(client, f"Fact {n}.", tags=["odd" if n % 2 else "even"], project="p" if n < 2 else "q")
    first = (await client.get("/v1/memories?limit=3")).json()
    second = (await client.get(f"/v1/memories?limit=3&before={first['next']}")).json()
    assert [m["content"] for m in first["memories"] + second["memories"]] == [f"Fact {n}." for n in (4, 3, 2, 1, 0)]
    assert second["next"] is None
    assert len((await client.get("/v1/memories?tag=odd")).json()["memories"]) == 2
    assert len((await client.get("/v1/memories?project=p")).json()["memories"]) == 2


async def test_a_list_and_a_recall_with_the_same_scope_agree(client: httpx2.AsyncClient) -> None:
    for n in range(6):
        await noted(client, f"River number {n}.", project="p" if n % 2 else "q", tags=["t"] if n < 3 else [])
    for filters in ({"project": "p"}, {"tags": ["t"]}, {"project": "q", "tags": ["t"]}):
        query = {"tag" if name == "tags" else name: value for name, value in filters.items()}
        listed = (await client.get("/v1/memories", params=query)).json()["memories"]
        found = await recalled(client, "river number", limit=50, **filters)
        assert sorted(m["content"] for m in listed) == sorted(contents(found))


async def test_a_project_sees_its_own_rows_and_those_of_no_project(client: httpx2.AsyncClient) -> None:
    for project in ("p", "q", None):
        await noted(client, f"River of {project}.", project=project)
    listed = (await client.get("/v1/memories?project=p")).json()["memories"]
    assert {m["content"] for m in listed} == {"River of p.", "River of None."}
    assert {*contents(await recalled(client, "river", project="p"))} == {"River of p.", "River of None."}
    assert len(contents(await recalled(client, "river", project="p", scope="pool"))) == 3


async def test_writing_a_note_again_can_raise_its_priority_but_never_lower_it(client: httpx2.AsyncClient) -> None:
    first = await noted(client, "The vault is closed.", tags=["a"])
    assert (first["kind"], first["priority"], first["trust"]) == ("note", "medium", "assistant")
    pinned = await noted(client, "The vault is closed.", kind="manual", priority="high", tags=["b"])
    assert (pinned["id"], pinned["kind"], pinned["priority"], pinned["trust"]) == (
        first["id"],
        "manual",
        "high",
        "assistant",
    )
    assert pinned["tags"] == ["a", "b"]
    again = await noted(client, "The vault is closed.", priority="low")
    assert (again["kind"], again["priority"], again["trust"]) == ("manual", "high", "assistant")


async def test_more_pins_than_a_pack_can_show_are_refused_and_change_nothing(client: httpx2.AsyncClient) -> None:
    for n in range(2):
        await noted(client, f"Pin {n}: " + "word " * 1_200, kind="manual")
    there = (await client.get("/v1/memories")).json()
    for refused in ({"content": "Pin: " + "more " * 400}, {"content": "Note: " + "more " * 400}):
        answer = await client.post("/v1/memories", json={**refused, "kind": "manual"})
        assert (answer.status_code, "pinned" in answer.json()["detail"]) == (422, True)
    assert (await client.get("/v1/memories")).json() == there
    await noted(client, "Pin: " + "more " * 400, kind="manual", project="p")


async def test_expired_rows_are_in_no_list_recall_or_pack(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    await said(client, session, "Our river is the Rhine.")
    await observed(client, session)
    note = await noted(client, "The river bridge is closed.")
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET valid_until = now() - interval '1 minute'")
    assert (await client.get("/v1/memories")).json()["memories"] == []
    assert len((await client.get("/v1/memories?include_superseded=true")).json()["memories"]) == 2
    assert (await recalled(client, "river"))["abstained"]
    assert (await client.get(f"/v1/sessions/{session}/pack")).json()["memory_ids"] == []
    assert (await client.get(f"/v1/memories/{note['id']}")).status_code == 200


async def test_a_server_marks_expired_rows(client: httpx2.AsyncClient, database_url: str, owner_url: str) -> None:
    await noted(client, "The river bridge is closed.")
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET valid_until = now() - interval '1 minute'")
    parts = make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), Database(database_url), system_clock)
    async with (
        await psycopg.AsyncConnection.connect(owner_url, autocommit=True) as watching,
        serving(parts),
    ):

        async def expired() -> bool:
            return await (await watching.execute("SELECT expired FROM memories")).fetchone() == (True,)

        await eventually(expired)
    assert (await client.get("/v1/memories?include_superseded=true")).json()["memories"] != []


@pytest.mark.parametrize("path", ["/v1/memories?projct=p", "/v1/sessions?session_id=s", "/v1/memories/x?kind=note"])
async def test_a_misspelt_filter_is_refused(client: httpx2.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, "query parameter" in answer.json()["detail"]) == (422, True)


async def test_concurrent_pins_keep_the_limit(client: httpx2.AsyncClient) -> None:
    pins = [{"content": f"Pin {n}: " + "word " * 900, "kind": "manual"} for n in range(6)]
    answers = await asyncio.gather(*(client.post("/v1/memories", json=pin) for pin in pins))
    assert sorted(answer.status_code for answer in answers) == [201, 201, 422, 422, 422, 422]


@pytest.mark.parametrize("rounds", [3, pytest.param(12, marks=pytest.mark.slow)])
async def test_writing_and_forgetting_the_same_note_at_once_causes_no_error(
    client: httpx2.AsyncClient, rounds: int
) -> None:
    notes = [{"content": f"Note number {n}."} for n in range(30)]

    async def write(number: int) -> int:
        ordered = notes[::-1] if number % 2 else notes
        answer = await client.post("/v1/memories/batch", json={"memories": ordered})
        if answer.status_code == 201 and number < 3:
            await asyncio.gather(*(client.delete(f"/v1/memories/{gone}") for gone in answer.json()["ids"][:5]))
        return answer.status_code

    for _ in range(rounds):
        statuses = await asyncio.gather(*(write(number) for number in range(8)))
        assert set(statuses) <= {201, 409}, statuses


class ForgetfulDatabase(Database):
    """A database in which all rows are forgotten after every transaction."""

    @asynccontextmanager
    async def tenant_pipeline(self, pool_id: str) -> AsyncGenerator[Connection]:
        """Open a transaction, and forget all rows after it."""
        async with super().tenant_pipeline(pool_id) as connection:
            yield connection
        async with super().tenant(pool_id) as connection:
            await connection.execute("DELETE FROM memories")


async def test_a_written_note_is_returned_even_if_it_is_forgotten_at_once(
    database_url: str, settings: Settings
) -> None:
    parts = make_parts(settings, ForgetfulDatabase(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        written = await noted(client, "The lighthouse keeper is number seven.", tags=["keeper"])
        assert (written["content"], written["tags"]) == ("The lighthouse keeper is number seven.", ["keeper"])
        assert (await client.get(f"/v1/memories/{written['id']}")).status_code == 404


async def test_a_note_that_is_forgotten_while_it_is_written_again_exists_afterwards(
    parts: Parts, who: Principal, database: Database
) -> None:
    [first] = await remember(parts, who, [Note("The lighthouse keeper is number seven.")])
    async with asyncio.TaskGroup() as tasks, database.tenant(who.pool_id) as connection:
        await memories.lock_to_delete(connection, [first])  # as in forgetting it
        writing = tasks.create_task(remember(parts, who, [Note("The lighthouse keeper is number seven.")]))
        await until_one_waits(database, writing)
        await memories.delete(connection, [first])
    [again] = writing.result()
    assert (await get_memory(parts, who.pool_id, again)).content == "The lighthouse keeper is number seven."


async def test_a_list_cannot_continue_from_a_forgotten_row(client: httpx2.AsyncClient) -> None:
    ids = [(await noted(client, f"Fact {n}."))["id"] for n in range(3)]
    await client.delete(f"/v1/memories/{ids[1]}")
    for path in (f"/v1/memories?before={ids[1]}", "/v1/memories?before=mem_nope"):
        answer = await client.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


@pytest.mark.parametrize(
    ("query", "status"), [({"session_id": "ses_nope"}, 404), ({"since": "0001-01-01T00:00:00Z"}, 422)]
)
async def test_a_list_and_a_recall_refuse_the_same_filters(
    client: httpx2.AsyncClient, query: dict[str, str], status: int
) -> None:
    assert (await client.get("/v1/memories", params=query)).status_code == status
    assert (await client.post("/v1/recall", json={"query": "x", **query})).status_code == status


# Forgetting ------------------------------------------------------------------------------------------------------


async def test_forgetting_leaves_no_trace_in_a_dump(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    words = ("Our vault is called Xanadu and its door is green.", "Never use floats for money.")
    await said(client, session, *({"external_id": f"m{n}", "role": "user", "content": w} for n, w in enumerate(words)))
    await observed(client, session)
    await client.get(f"/v1/sessions/{session}/pack")
    await client.get(f"/v1/sessions/{await opened(client, 's2')}/pack")
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    [hit] = (await recalled(client, "Xanadu"))["hits"]
    receipt = (await client.delete(f"/v1/memories/{hit['id']}?messages=true")).json()
    assert receipt["memories"] >= 1
    assert receipt["packs"] >= 2
    assert receipt["messages"] == 1
    assert "xanadu" not in dump(owner_url).lower()
    assert "floats" in dump(owner_url)


async def test_forgetting_a_replaced_row_leaves_no_quotation_of_it(client: httpx2.AsyncClient, owner_url: str) -> None:
    told = ("The checkout service caches carts in Redis.", "The carts moved from Redis to Valkey.")
    for number, words in enumerate(told):
        session = await opened(client, f"s{number}", project="shop")
        await said(client, session, {"external_id": f"m{number}", "role": "user", "content": words})
        await observed(client, session)
    rows = (await client.get("/v1/memories?include_superseded=true")).json()["memories"]
    [old] = [row for row in rows if row["superseded_by"]]
    assert "checkout service" in next(row["content"] for row in rows if row["id"] == old["superseded_by"])
    await client.delete(f"/v1/memories/{old['id']}?messages=true")
    [newer] = (await client.get("/v1/memories")).json()["memories"]
    assert newer["id"] == old["superseded_by"]
    assert "from Redis to Valkey" in newer["content"]
    assert "checkout" not in dump(owner_url).lower()
    assert (await recalled(client, "Valkey"))["hits"][0]["id"] == newer["id"]


async def test_forgetting_changes_no_note_that_a_person_wrote(client: httpx2.AsyncClient) -> None:
    written = await noted(client, "The cellar door is green.")
    own = await noted(client, "Paint the door of the shed. (unlike: The cellar door is …)")
    assert (await client.delete(f"/v1/memories/{written['id']}")).status_code == 200
    assert (await client.get("/v1/memories")).json()["memories"] == [own]


async def test_forgetting_returns_a_receipt_and_an_unknown_id_is_a_404(client: httpx2.AsyncClient) -> None:
    written = await noted(client, "The door is green.")
    kept = await noted(client, "The door is heavy.")
    receipt = (await client.delete(f"/v1/memories/{written['id']}")).json()
    assert receipt.pop("id").startswith("fgt_")
    assert receipt.pop("left") == {}
    assert receipt == {
        "memories": 1, "reflections": 0, "restored": 0, "vectors": 0, "packs": 0, "messages": 0, "notes": 0,
        "renamed": 0,
    }  # fmt: skip
    assert (await client.delete(f"/v1/memories/{written['id']}")).status_code == 404
    assert (await client.get("/v1/memories")).json()["memories"] == [kept]
    assert contents(await recalled(client, "door green")) == ["The door is heavy."]


async def test_rows_condensed_with_a_forgotten_row_are_live_again(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    for number, wish in enumerate(("Make the button of the login green.", "Make the button of the login round."), 1):
        edit = {"type": "tool_use", "id": f"t{number}", "name": "Edit", "input": {"file_path": "login.css"}}
        await said(client, session, wish, {"external_id": f"a{number}", "role": "assistant", "content": [edit]})
        await observed(client, session)
    report = (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).json()
    assert report["memories"] == 1
    everything = (await client.get("/v1/memories?include_superseded=true")).json()["memories"]
    [source] = [m for m in everything if m["kind"] == "observation" and "green" in m["content"]]
    receipt = (await client.delete(f"/v1/memories/{source['id']}")).json()
    assert (receipt["memories"], receipt["reflections"]) == (2, 1)
    assert receipt["restored"] >= 1
    live = (await client.get("/v1/memories")).json()["memories"]
    assert [m["kind"] for m in live] == ["observation"] * receipt["restored"]
    assert not [m for m in live if "green" in m["content"]]


async def test_forgetting_a_reflection_forgets_its_sources(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    await said(client, session, "Our vault is called Xanadu.", *OVERTAKEN)
    await observed(client, session)
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    [hit] = (await recalled(client, "Xanadu"))["hits"]
    assert hit["kind"] == "reflection"
    await client.delete(f"/v1/memories/{hit['id']}")
    assert (await recalled(client, "Xanadu", include_superseded=True))["hits"] == []
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memories WHERE content LIKE '%Xanadu%'").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM postings WHERE term = 'xanadu'").fetchone() == (0,)


async def test_a_forgotten_note_can_be_written_again(client: httpx2.AsyncClient) -> None:
    first = await noted(client, "The door is green.")
    await client.delete(f"/v1/memories/{first['id']}")
    assert (await noted(client, "The door is green."))["id"] != first["id"]


async def test_forgetting_replaces_only_packs_that_showed_the_row(client: httpx2.AsyncClient) -> None:
    written = await noted(client, "The door is green.", project="p")
    shown, other = await opened(client, "s1", project="p"), await opened(client, "s2", project="q")
    before = {s: (await client.get(f"/v1/sessions/{s}/pack")).json() for s in (shown, other)}
    await client.delete(f"/v1/memories/{written['id']}")
    after = {s: (await client.get(f"/v1/sessions/{s}/pack")).json() for s in (shown, other)}
    assert after[other] == before[other]
    assert after[shown]["reason"] == "forgotten"
    assert "green" not in after[shown]["text"]


def test_the_programs_for_a_dump_exist() -> None:
    assert (Path(BINARIES) / "pg_dump").exists()


async def test_a_pin_is_the_agents_until_a_person_confirms_it(client: httpx2.AsyncClient) -> None:
    pinned = (await client.post("/v1/memories", json={"content": "Deploy on Fridays.", "kind": "manual"})).json()
    assert pinned["trust"] == "assistant"
    first = await opened(client, "first")
    assert "Deploy on Fridays. (pinned by an agent)" in (await client.get(f"/v1/sessions/{first}/pack")).json()["text"]
    confirmed = await client.post(f"/v1/memories/{pinned['id']}/confirm", json={})
    assert confirmed.json() == pinned | {"trust": "user"}
    second = await opened(client, "second")
    assert "(pinned by an agent)" not in (await client.get(f"/v1/sessions/{second}/pack")).json()["text"]
    # An agent that repeats or corrects it does not speak for the person.
    again = (await client.post("/v1/memories", json={"content": "Deploy on Fridays.", "kind": "manual"})).json()
    assert (again["id"], again["trust"]) == (pinned["id"], "user")
    changed = (await client.patch(f"/v1/memories/{pinned['id']}", json={"content": "Deploy at night."})).json()
    assert (changed["kind"], changed["trust"]) == ("manual", "assistant")


async def test_only_a_live_row_that_was_written_down_can_be_confirmed(client: httpx2.AsyncClient) -> None:
    old = (await client.post("/v1/memories", json={"content": "The port is 1."})).json()["id"]
    await client.patch(f"/v1/memories/{old}", json={"content": "The port is 2."})
    for missing in (old, "mem_" + "0" * 26):
        assert (await client.post(f"/v1/memories/{missing}/confirm", json={})).status_code == 404
