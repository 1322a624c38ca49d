"""Facts that are repeated, stated more fully or retracted; with a scripted model and without one."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.core.records import Memory
from esker.server.db.database import Connection
from esker.server.store import memories
from esker.server.usecases.authenticate import create_key, create_pool
from esker.server.usecases.parts import Parts
from tests.api.test_memories import dump
from tests.support.api import contents, observed, opened, recalled, said
from tests.support.model_server import ModelServer

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
REDIS = "User decided to keep the sessions in Redis."
POSTGRES = "User decided to keep the sessions in Postgres."


@dataclass(slots=True)
class ScriptedServer:
    """A server whose observer returns the facts that a test sets."""

    client: httpx2.AsyncClient
    model: ModelServer
    minute: int = 0

    async def hears(
        self, session: str, text: str, *, used: tuple[str, ...] = (), asked: bool = False, **fact: Any
    ) -> dict[str, Any]:
        """Add a message of the user, one minute later, observe it as a fact, and return the report."""
        words = f"Should it be so: {text[:-1]}?" if asked else text
        seq = await self.told(session, words)
        return await self.observes(session, {"text": text, "sources": [seq], **fact}, used=used)

    async def told(self, session: str, content: Any, role: str = "user", minute: int | None = None) -> int:
        """Add a message and return its seq."""
        self.minute += 1
        sent_at = NOON + timedelta(minutes=self.minute if minute is None else minute)
        message = {"external_id": f"m{self.minute}", "role": role, "content": content, "sent_at": sent_at.isoformat()}
        await said(self.client, session, message)
        page = (await self.client.get(f"/v1/sessions/{session}/messages")).json()
        return page["messages"][-1]["seq"]

    async def observes(self, session: str, *facts: dict[str, Any], used: tuple[str, ...] = ()) -> dict[str, Any]:
        """Observe the unobserved messages with these facts as the result; return the report."""
        whole = [{"priority": "high", "category": "decision", **fact} for fact in facts]
        self.model.say({"facts": whole, "used_memories": list(used)})
        return await observed(self.client, session)

    async def rows(self, **query: Any) -> list[dict[str, Any]]:
        """Return the live rows, oldest first."""
        rows = (await self.client.get("/v1/memories", params=query)).json()["memories"]
        return sorted(rows, key=lambda row: row["id"])

    async def live(self) -> list[str]:
        """Return the contents of the live rows, oldest first."""
        return [row["content"] for row in await self.rows()]

    async def row(self, memory_id: str) -> dict[str, Any]:
        """Return one row."""
        return (await self.client.get(f"/v1/memories/{memory_id}")).json()


@pytest.fixture
def memory(scripted_client: httpx2.AsyncClient, model: ModelServer) -> ScriptedServer:
    """A server with the scripted model."""
    return ScriptedServer(scripted_client, model)


# Repeated -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first_words", "again"),
    [
        (REDIS, REDIS),
        (REDIS, "User decided to keep sessions  in redis"),
        ("User decided to keep all shop sessions in Redis.", "User decided to keep shop sessions in Redis."),
    ],
)
@pytest.mark.parametrize("other_session", [False, True])
async def test_a_repeated_fact_is_merged_into_its_row(
    memory: ScriptedServer, first_words: str, again: str, other_session: bool
) -> None:
    first = await opened(memory.client, project="shop")
    [row_id] = (await memory.hears(first, first_words))["memory_ids"]
    second = await opened(memory.client, "s2", project="shop") if other_session else first
    report = await memory.hears(second, again)
    assert (report["memories"], report["merged"], report["replaced"]) == (0, 1, 0)
    [row] = await memory.rows()
    assert (row["id"], row["content"]) == (row_id, first_words)
    assert row["last_used_at"] == "2026-03-02T12:02:00Z"
    where = [{"session_id": first, "seqs": [1], "memory_ids": []}]
    where += [{"session_id": second, "seqs": [1 if other_session else 2], "memory_ids": []}]
    assert (await memory.row(row_id))["sources"] == row["sources"] == where
    [hit] = (await recalled(memory.client, "sessions Redis"))["hits"]
    assert hit["sources"] == where


@pytest.mark.parametrize("projects", [("shop", "blog"), (None, None), ("shop", None)])
async def test_the_same_fact_in_another_project_is_a_row_of_its_own(
    memory: ScriptedServer, projects: tuple[str | None, ...]
) -> None:
    for number, project in enumerate(projects):
        session = await opened(memory.client, f"s{number}", **({"project": project} if project else {}))
        assert (await memory.hears(session, REDIS))["memories"] == 1
    assert await memory.live() == [REDIS, REDIS]


async def test_a_fuller_statement_supersedes_the_shorter_row(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    fuller = "User decided to keep the shop sessions in Redis."
    [short] = (await memory.hears(session, REDIS))["memory_ids"]
    report = await memory.hears(session, fuller)
    assert (report["memories"], report["replaced"]) == (1, 1)
    assert await memory.live() == [fuller]
    assert (await memory.row(short))["superseded_by"] == report["memory_ids"][0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("User decided to keep the sessions for 30 days.", "User decided to keep the sessions for 90 days."),
        ("User wants Ada to review the payment code.", "User wants Bob to review the payment code."),
        ("User decided to cache the price list.", "User decided not to cache the price list."),
        ("User decided to enable the price cache.", "User decided to disable the price cache."),
        ("User moved orders from Redis to Postgres.", "User moved orders from Postgres to Redis."),
        ("User decided that auth.ts:45 is to change.", "User decided that auth.ts:54 is to change."),
    ],
)
async def test_facts_that_differ_in_substance_are_never_one_row(memory: ScriptedServer, one: str, other: str) -> None:
    session = await opened(memory.client)
    await memory.hears(session, one)
    assert (await memory.hears(session, other))["merged"] == 0
    assert await memory.live() == [one, other]


async def test_twenty_sessions_with_the_same_fact_at_once_make_one_row(memory: ScriptedServer) -> None:
    sessions = [await opened(memory.client, f"s{n}", project="shop") for n in range(20)]
    for session in sessions:
        await memory.told(session, REDIS)
    fact = {"text": REDIS, "priority": "high", "category": "decision", "sources": [1]}
    memory.model.say({"facts": [fact]})
    await asyncio.gather(*(observed(memory.client, session) for session in sessions))
    [row] = await memory.rows()
    assert {source["session_id"] for source in row["sources"]} == set(sessions)
    assert len(row["sources"]) == 20


async def test_a_web_page_with_the_same_fact_never_raises_a_rows_priority(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    await memory.hears(session, REDIS, priority="low", tentative=True)
    seq = await of_tool(memory, session, "WebFetch", REDIS)
    await memory.observes(session, {"text": REDIS, "sources": [seq], "priority": "high"})
    [row] = await memory.rows()
    assert (row["priority"], row["tentative"]) == ("low", True)


async def test_a_persons_statement_is_never_merged_into_a_row_that_is_easier_to_supersede(
    memory: ScriptedServer,
) -> None:
    session = await opened(memory.client)
    seq = await of_tool(memory, session, "WebFetch", REDIS)
    await memory.observes(session, {"text": REDIS, "sources": [seq], "category": "fact"})
    await memory.hears(session, REDIS)
    [row] = await memory.rows()
    assert (row["trust"], row["category"]) == ("user", "decision")


# Superseded ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_id", [True, False])
async def test_a_fact_supersedes_the_row_that_it_names_and_both_are_kept(memory: ScriptedServer, by_id: bool) -> None:
    session = await opened(memory.client)
    [old] = (await memory.hears(session, REDIS))["memory_ids"]
    report = await memory.hears(session, POSTGRES, replaces=old if by_id else "The sessions are kept in Redis.")
    assert report["replaced"] == 1
    query = "sessions decided"
    assert contents(await recalled(memory.client, query)) == [POSTGRES]
    assert set(contents(await recalled(memory.client, query, include_superseded=True))) == {POSTGRES, REDIS}
    then = (NOON + timedelta(minutes=1, seconds=30)).isoformat()
    assert contents(await recalled(memory.client, query, as_of=then)) == [REDIS]
    assert (await memory.row(old))["superseded_by"] == report["memory_ids"][0]


async def test_one_fact_can_supersede_several_rows(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    [one] = (await memory.hears(session, REDIS))["memory_ids"]
    [other] = (await memory.hears(session, "User decided to keep the carts in Memcached."))["memory_ids"]
    report = await memory.hears(session, "User decided to keep everything in Postgres.", replaces=f"{one}, {other}")
    assert report["replaced"] == 2
    assert await memory.live() == ["User decided to keep everything in Postgres."]


async def test_related_rows_of_the_project_are_shown_and_can_be_superseded(memory: ScriptedServer) -> None:
    elsewhere = await opened(memory.client, "s0", project="shop")
    [shown] = (await memory.hears(elsewhere, REDIS))["memory_ids"]
    session = await opened(memory.client, project="shop")
    assert (await memory.hears(session, POSTGRES, replaces=shown))["replaced"] == 1
    assert await memory.live() == [POSTGRES]


@pytest.mark.parametrize("words", ["", f": {REDIS}"])
async def test_an_id_that_was_not_shown_is_never_superseded(memory: ScriptedServer, words: str) -> None:
    elsewhere = await opened(memory.client, "s0", project="blog")
    [hidden] = (await memory.hears(elsewhere, REDIS))["memory_ids"]
    session = await opened(memory.client, project="shop")
    assert (await memory.hears(session, POSTGRES, replaces=f"{hidden}{words}"))["replaced"] == 0
    assert await memory.live() == [REDIS, POSTGRES]


@pytest.mark.parametrize("how", [{"asked": True}, {"tentative": True}])
@pytest.mark.parametrize("old", [{"category": "decision"}, {"category": "fact", "tentative": True}])
async def test_questions_and_tentative_facts_supersede_nothing(
    memory: ScriptedServer, how: dict[str, Any], old: dict[str, Any]
) -> None:
    session = await opened(memory.client)
    [old_id] = (await memory.hears(session, REDIS, **old))["memory_ids"]
    assert (await memory.hears(session, POSTGRES, replaces=old_id, **how))["replaced"] == 0
    assert await memory.live() == [REDIS, POSTGRES]


async def test_a_fuller_question_never_supersedes_a_decision(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    await memory.hears(session, REDIS)
    assert (await memory.hears(session, "User decided to keep the shop sessions in Redis.", asked=True))[
        "replaced"
    ] == 0


async def of_tool(memory: ScriptedServer, session: str, name: str, text: str) -> int:
    """Add a tool result and return its seq."""
    call = {"type": "tool_use", "id": f"t{memory.minute}", "name": name, "input": {}}
    await memory.told(session, [call], "assistant")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    return await memory.told(session, [result])


@pytest.mark.parametrize(
    ("category", "tool", "beside_a_person"),
    [
        ("decision", "WebFetch", False),
        ("decision", "Bash", True),
        ("preference", "WebFetch", True),
        ("fact", "Bash", False),
        ("fact", "WebFetch", True),
    ],
)
async def test_a_tool_never_supersedes_a_persons_statement(
    memory: ScriptedServer, category: str, tool: str, beside_a_person: bool
) -> None:
    session = await opened(memory.client)
    [old] = (await memory.hears(session, REDIS, category=category))["memory_ids"]
    seqs = [await of_tool(memory, session, tool, POSTGRES)]
    if beside_a_person:
        seqs.append(await memory.told(session, "Look at what it says."))
    fact = {"text": POSTGRES, "sources": seqs, "replaces": old, "category": category}
    assert (await memory.observes(session, fact))["replaced"] == 0
    assert await memory.live() == [REDIS, POSTGRES]


@pytest.mark.parametrize(("category", "replaced"), [("decision", 0), ("preference", 0), ("fact", 1)])
async def test_the_assistant_supersedes_facts_but_no_decision_of_a_person(
    memory: ScriptedServer, category: str, replaced: int
) -> None:
    session = await opened(memory.client)
    [old] = (await memory.hears(session, REDIS, category=category))["memory_ids"]
    seq = await memory.told(session, POSTGRES, "assistant")
    fact = {"text": POSTGRES, "sources": [seq], "replaces": old, "category": category}
    assert (await memory.observes(session, fact))["replaced"] == replaced


async def test_a_proposal_that_a_person_accepts_counts_as_theirs(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    [old] = (await memory.hears(session, REDIS))["memory_ids"]
    seqs = [await memory.told(session, POSTGRES, "assistant"), await memory.told(session, "Yes, do that.")]
    assert (await memory.observes(session, {"text": POSTGRES, "sources": seqs, "replaces": old}))["replaced"] == 1


async def test_an_older_fact_that_is_imported_later_supersedes_nothing(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    await memory.hears(session, REDIS)
    for text in (POSTGRES, "User decided to keep the shop sessions in Redis."):
        seq = await memory.told(session, text, minute=-60)
        report = await memory.observes(session, {"text": text, "sources": [seq], "replaces": REDIS})
        assert report["replaced"] == 0
    assert REDIS in await memory.live()


async def test_a_pinned_row_is_never_superseded(memory: ScriptedServer) -> None:
    session = await opened(memory.client)
    body = {"content": REDIS, "kind": "manual", "session_id": session, "said_at": NOON.isoformat()}
    pinned = (await memory.client.post("/v1/memories", json=body)).json()
    pack = (await memory.client.get(f"/v1/sessions/{session}/pack")).json()
    assert pinned["id"] in pack["memory_ids"]
    assert (await memory.hears(session, POSTGRES, replaces=pinned["id"]))["replaced"] == 0
    assert (await memory.row(pinned["id"]))["superseded_at"] is None


# Within one call ----------------------------------------------------------------------------------------------------


async def two_facts(memory: ScriptedServer, session: str) -> dict[str, Any]:
    """Observe a decision and the one that supersedes it in one call, the later one first."""
    seqs = [await memory.told(session, REDIS), await memory.told(session, f"Actually: {POSTGRES}")]
    old, new = {"text": REDIS, "sources": seqs[:1]}, {"text": POSTGRES, "sources": seqs[1:], "replaces": REDIS}
    return await memory.observes(session, new, old)


async def test_of_two_facts_in_one_call_the_later_supersedes_the_earlier(memory: ScriptedServer) -> None:
    report = await two_facts(memory, await opened(memory.client))
    assert (report["memories"], report["replaced"]) == (2, 1)
    assert await memory.live() == [POSTGRES]
    assert set(contents(await recalled(memory.client, "sessions", include_superseded=True))) == {REDIS, POSTGRES}


async def test_the_later_fact_also_supersedes_an_earlier_one_that_was_a_row_already(memory: ScriptedServer) -> None:
    first = await opened(memory.client, project="shop")
    [old] = (await memory.hears(first, REDIS))["memory_ids"]
    report = await two_facts(memory, await opened(memory.client, "s2", project="shop"))
    assert (report["memories"], report["merged"], report["replaced"]) == (1, 1, 1)
    assert await memory.live() == [POSTGRES]
    row = await memory.row(old)
    assert (row["superseded_by"], len(row["sources"])) == (report["memory_ids"][0], 2)


@pytest.mark.parametrize("known", [True, False])
async def test_a_fact_retracted_and_stated_again_in_one_call_is_live(memory: ScriptedServer, known: bool) -> None:
    session = await opened(memory.client)
    if known:
        await memory.hears(session, REDIS)
    seqs = [await memory.told(session, text) for text in (REDIS, POSTGRES, REDIS)]
    texts = (REDIS, POSTGRES, REDIS)
    replaces = (None, REDIS, POSTGRES)
    facts = [
        {"text": text, "sources": [seq], "replaces": old} for text, seq, old in zip(texts, seqs, replaces, strict=True)
    ]
    await memory.observes(session, *facts)
    assert await memory.live() == [REDIS]


# Used ---------------------------------------------------------------------------------------------------------------


async def test_only_shown_rows_count_as_used_and_of_identical_ones_the_best(memory: ScriptedServer) -> None:
    elsewhere = await opened(memory.client, "s0", project="blog")
    [hidden] = (await memory.hears(elsewhere, "User decided to write the blog in Hugo."))["memory_ids"]
    session = await opened(memory.client, project="shop")
    best = await noted(memory, REDIS, "shop", priority="high")
    pack = (await memory.client.get(f"/v1/sessions/{session}/pack")).json()
    assert pack["memory_ids"] == [best]
    again = await noted(memory, REDIS, "shop", priority="low", external_id="again")
    vault = await noted(memory, "The vault is called Xanadu.", "shop")
    door = await noted(memory, "The door of the vault is green.", "shop")
    answer = f"1. The vault is called Xanadu. ({vault})\n2. {REDIS} ({again})"
    await of_tool(memory, session, "mcp__esker__recall_memory", answer)
    ids = (again, best, vault, door, hidden, "mem_unknown")
    before = {memory_id: (await memory.row(memory_id)).get("last_used_at") for memory_id in ids}
    await memory.hears(session, "User decided to go on.", used=ids)
    after = {memory_id: (await memory.row(memory_id)).get("last_used_at") for memory_id in ids}
    assert {memory_id for memory_id in ids if before[memory_id] != after[memory_id]} == {best, vault}


async def noted(memory: ScriptedServer, text: str, project: str, **more: str) -> str:
    """Write a note at noon and return its id."""
    body = {"content": text, "project": project, "said_at": NOON.isoformat(), **more}
    return (await memory.client.post("/v1/memories", json=body)).json()["id"]


async def test_a_row_of_another_pool_is_never_touched(
    memory: ScriptedServer, parts: Parts, who: object, owner_url: str
) -> None:
    await create_pool(parts, "other")
    keys = [await create_key(parts, name=pool, pool=pool, scopes=["read", "write"]) for pool in ("other", "default")]
    bearers = [{"authorization": f"Bearer {key.key}"} for key in keys]
    memory.client.headers.update(bearers[0])
    theirs = (await memory.hears(await opened(memory.client, project="shop"), REDIS))["memory_ids"][0]
    with psycopg.connect(owner_url, autocommit=True) as connection:
        untouched = connection.execute("SELECT m::text FROM memories m").fetchall()
        memory.client.headers.update(bearers[1])
        session = await opened(memory.client, project="shop")
        await of_tool(memory, session, "mcp__esker__recall_memory", theirs)
        report = await memory.hears(session, REDIS, replaces=theirs, used=(theirs,))
        assert (report["memories"], report["merged"]) == (1, 0)
        kept = connection.execute("SELECT m::text FROM memories m WHERE id = %s", (theirs,)).fetchall()
    assert kept == untouched


# Forgotten ----------------------------------------------------------------------------------------------------------


async def test_forgetting_a_row_forgets_all_its_sources(memory: ScriptedServer, owner_url: str) -> None:
    fact = "User decided to call the vault Xanadu."
    fuller = "User decided to call the green vault Xanadu."
    for number, text in enumerate((fact, fact, fuller)):
        session = await opened(memory.client, f"s{number}", project="shop")
        await memory.hears(session, text)
        await memory.hears(session, f"User decided to buy {('apples', 'pears', 'plums')[number]} tomorrow morning.")
    [row] = [row for row in await memory.rows() if row["content"] == fuller]
    receipt = (await memory.client.delete(f"/v1/memories/{row['id']}?messages=true")).json()
    assert (receipt["memories"], receipt["messages"], receipt["restored"]) == (2, 3, 0)
    left = dump(owner_url).lower()
    assert "xanadu" not in left
    assert all(fruit in left for fruit in ("apples", "pears", "plums"))


async def test_forgetting_a_row_while_facts_are_compared_causes_no_error(
    memory: ScriptedServer, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await opened(memory.client)
    [row_id] = (await memory.hears(session, REDIS))["memory_ids"]
    read = memories.get

    async def read_too_late(connection: Connection, ids: Collection[str]) -> dict[str, Memory]:
        if row_id in ids:
            with psycopg.connect(owner_url, autocommit=True) as other:
                other.execute("DELETE FROM memories WHERE id = %s", (row_id,))
        return await read(connection, ids)

    monkeypatch.setattr(memories, "get", read_too_late)
    assert (await memory.hears(session, REDIS))["memories"] == 1
    monkeypatch.undo()
    assert await memory.live() == [REDIS]


# Without a model ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("earlier", "later", "query"),
    [
        ("I love Tailwind.", "I hate Tailwind.", "Tailwind"),
        ("The deploy target is Fly.io.", "The deploy target is Render now.", "deploy target"),
        ("We use Redis.", "Actually, use Postgres instead of Redis.", "use Redis or Postgres"),
        ("Сборка идёт на Jenkins.", "Мы перешли с Jenkins на GitLab CI.", "Jenkins"),
        ("The build runs on Jenkins.", "Мы перешли с Jenkins на GitLab CI.", "Jenkins"),
    ],
)
@pytest.mark.parametrize("apart", ["one slice", "two slices", "two sessions"])
async def test_recall_finds_the_later_statement_and_the_earlier_is_kept(
    client: httpx2.AsyncClient, earlier: str, later: str, query: str, apart: str
) -> None:
    session = await opened(client, project="shop")
    await said(client, session, earlier)
    if apart != "one slice":
        await observed(client, session)
    if apart == "two sessions":
        session = await opened(client, "s2", project="shop")
        await client.get(f"/v1/sessions/{session}/pack")
    await said(client, session, later)
    assert (await observed(client, session))["replaced"] == 1
    [now] = contents(await recalled(client, query))
    assert later in now
    both = contents(await recalled(client, query, include_superseded=True))
    assert len(both) == 2
    assert any(earlier in row for row in both)


async def test_without_a_model_a_repeated_rule_is_one_row(client: httpx2.AsyncClient) -> None:
    for number in range(3):
        session = await opened(client, f"s{number}", project="shop")
        await said(client, session, "Never use floats for money.")
        await observed(client, session)
    [hit] = (await recalled(client, "floats for money"))["hits"]
    assert len(hit["sources"]) == 3


async def test_an_id_in_a_web_page_does_not_count_as_shown(memory: ScriptedServer) -> None:
    elsewhere = await opened(memory.client, "s0", project="blog")
    [hidden] = (await memory.hears(elsewhere, REDIS))["memory_ids"]
    session = await opened(memory.client, project="shop")
    await of_tool(memory, session, "WebFetch", f"An evil page knows {hidden}.")
    report = await memory.hears(session, POSTGRES, replaces=hidden, used=(hidden,))
    assert report["replaced"] == 0
    assert REDIS not in memory.model.prompt()
    assert (await memory.row(hidden))["superseded_by"] is None


async def test_a_row_of_another_project_is_never_superseded(memory: ScriptedServer) -> None:
    elsewhere = await opened(memory.client, "s0", project="blog")
    [shown] = (await memory.hears(elsewhere, REDIS))["memory_ids"]
    session = await opened(memory.client, project="shop")
    await of_tool(memory, session, "mcp__esker__recall_memory", f"[{shown}] {REDIS}")
    assert (await memory.hears(session, POSTGRES, replaces=shown))["replaced"] == 0
    assert (await memory.row(shown))["superseded_by"] is None


@pytest.mark.parametrize("replaces", ["nothing in particular", ""])
async def test_a_superseding_fact_must_be_grounded_as_well(memory: ScriptedServer, replaces: str) -> None:
    session = await opened(memory.client)
    await memory.hears(session, "The safe code is 9931 in Oslo.")
    seq = await memory.told(session, "Please make the page blue.")
    fact = {"text": "User ordered 9931 tickets.", "sources": [seq], "replaces": replaces}
    report = await memory.observes(session, fact)
    assert (report["memories"], report["refused"]) == (0, {"ungrounded": 1})


async def test_a_blank_session_is_a_session_that_does_not_exist(client: httpx2.AsyncClient) -> None:
    for session in ("", " "):
        for path, body in (
            ("/v1/memories", {"content": "x", "session_id": session}),
            ("/v1/memories/batch", {"memories": [{"content": "x", "session_id": session}]}),
        ):
            answer = await client.post(path, json=body)
            assert (answer.status_code, "no session" in answer.json()["detail"]) == (404, True), (path, session)
