"""Bound keys: one of a client writes only its sessions, one of a project sees and writes nothing of other projects."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Any, LiteralString

import httpx2
import psycopg
import pytest
from mcp import MCPError
from mcp.types import TextContent
from psycopg import sql

from esker.server.core.errors import InvalidInput, Misconfigured
from esker.server.core.records import Filter, Principal, Space
from esker.server.db.database import Database
from esker.server.store import keys, projects, search, vectors
from esker.server.usecases.authenticate import create_key, list_keys, revoke_key
from esker.server.usecases.embed import register
from esker.server.usecases.parts import Parts
from tests.support.api import contents, observed, opened, recalled, said
from tests.support.databases import until_one_waits
from tests.support.kept_servers import KeptServer
from tests.support.mcp_clients import connected
from tests.support.reflecting import OVERTAKEN
from tests.support.two_pools import FilledPool, rows_of
from tests.support.vectors import matrix
from tests.support.waiting import PATIENCE

SHOP, OTHER = "acme/shop", "acme/other"
DECIDED = "We decided that the boat is painted blue."
ORPHANS: LiteralString = """
    SELECT count(*) FROM postings p
    WHERE NOT EXISTS (SELECT FROM memories m WHERE m.number = p.number)
      AND NOT EXISTS (SELECT FROM passages t WHERE t.number = p.number)
"""


class Callers:
    """Makes clients of the server with keys of the default pool."""

    def __init__(self, url: str, parts: Parts, stack: AsyncExitStack) -> None:
        self.url = url
        self._parts = parts
        self._stack = stack
        self.keys: dict[str, str] = {}

    async def client(self, name: str, **bound: Any) -> httpx2.AsyncClient:
        """Return a client with a new key."""
        self.keys[name] = (await create_key(self._parts, name=name, pool="default", **bound)).key
        headers = {"Authorization": f"Bearer {self.keys[name]}"}
        return await self._stack.enter_async_context(
            httpx2.AsyncClient(base_url=self.url, timeout=PATIENCE, headers=headers)
        )


@pytest.fixture
async def callers(kept_server: KeptServer, parts: Parts) -> AsyncGenerator[Callers]:
    """Makes clients of the test's server."""
    async with AsyncExitStack() as stack:
        yield Callers(kept_server.url, parts, stack)


@pytest.fixture
async def free(callers: Callers) -> httpx2.AsyncClient:
    """A client whose key is not bound."""
    return await callers.client("free", scopes=["read", "write", "forget", "admin"])


@pytest.fixture
async def shop(callers: Callers) -> httpx2.AsyncClient:
    """A client whose key is bound to the shop."""
    return await callers.client("shop", project="Acme/Shop")


def other_project(who: Principal) -> FilledPool:
    """The other project of the default pool, as all of whose rows `rows_of` returns."""
    return FilledPool("other", who.pool_id, "", "", httpx2.AsyncClient(), "", alone_in=OTHER)


async def note(client: httpx2.AsyncClient, content: str, **more: Any) -> httpx2.Response:
    """Write a memory."""
    return await client.post("/v1/memories", json={"content": content, **more})


async def live(client: httpx2.AsyncClient) -> list[str]:
    """Return the contents of the live memories that a client sees."""
    return [row["content"] for row in (await client.get("/v1/memories")).json()["memories"]]


# Of a project ------------------------------------------------------------------------------------------------------


async def test_a_project_key_says_what_it_is_bound_to(shop: httpx2.AsyncClient, parts: Parts) -> None:
    told = (await shop.get("/v1/key")).json()
    assert (told["project"], told["client"], told["scopes"]) == (SHOP, None, ["read", "write"])
    [listed] = await list_keys(parts, "default")
    assert (listed.project, listed.client) == (SHOP, None)


async def test_the_name_of_a_project_is_forgotten_only_without_keys_that_are_bound_to_it(
    callers: Callers, free: httpx2.AsyncClient, shop: httpx2.AsyncClient, parts: Parts
) -> None:
    await note(shop, DECIDED)
    for dry_run in (True, False):
        refused = await free.post("/v1/forget", json={"words": ["shop"], "dry_run": dry_run})
        assert (refused.status_code, "'acme/shop'" in refused.json()["detail"]) == (409, True)
    assert await live(shop) == [DECIDED]
    await revoke_key(parts, key="shop", pool="default")
    assert (await free.post("/v1/forget", json={"words": ["shop"]})).json()["left"] == {}
    anew = await callers.client("again", project=SHOP)
    assert await live(anew) == [DECIDED]


async def test_a_project_is_not_forgotten_while_a_key_is_being_bound_to_it(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient, parts: Parts, who: Principal
) -> None:
    await note(shop, DECIDED)
    await revoke_key(parts, key="shop", pool="default")
    async with parts.database.tenant(who.pool_id) as connection:
        await projects.lock(connection)  # as `create_key` does
        forgetting = asyncio.create_task(free.post("/v1/forget", json={"words": ["shop"]}))
        await until_one_waits(parts.database, forgetting)
        values = {"prefix": "esk_", "key_hash": b"x" * 32, "scopes": ["read"], "client": None, "now": parts.clock()}
        await keys.insert(connection, key_id="key_late", name="late", project=SHOP, expires=None, **values)
    assert (await forgetting).status_code == 409


async def test_the_trail_says_that_a_key_is_bound(free: httpx2.AsyncClient, shop: httpx2.AsyncClient) -> None:
    newest = (await free.get("/v1/audit", params={"action": "key.create"})).json()["entries"][0]
    assert newest["detail"] == {"bound": ["project"]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"project": " "},
        {"client": ""},
        {"project": SHOP, "scopes": ["read", "forget"]},
        {"project": SHOP, "scopes": []},
    ],
)
async def test_a_key_with_a_wrong_binding_is_refused(parts: Parts, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await create_key(parts, name="a", pool="default", **wrong)


async def test_what_a_project_key_writes_belongs_to_its_project(shop: httpx2.AsyncClient) -> None:
    session = (await shop.post("/v1/sessions", json={"client": "api", "external_id": "s"})).json()
    again = {"client": "api", "external_id": "s", "project": "ACME/Shop"}
    assert (await shop.post("/v1/sessions", json=again)).json()["id"] == session["id"]
    assert session["project"] == SHOP
    written = [await note(shop, "One."), await note(shop, "Two.", project="Acme/SHOP")]
    assert [(answer.status_code, answer.json()["project"]) for answer in written] == [(201, SHOP)] * 2


async def test_another_project_in_a_request_is_refused_whether_or_not_it_exists(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    await note(free, "The anchor is heavy.", project=OTHER)
    for project in (OTHER, "acme/nowhere"):
        answers = [
            await shop.post("/v1/sessions", json={"client": "api", "external_id": "s", "project": project}),
            await note(shop, "One.", project=project),
            await shop.post("/v1/memories/batch", json={"memories": [{"content": "Two.", "project": project}]}),
            await shop.post("/v1/recall", json={"query": "anchor", "project": project}),
            await shop.get("/v1/memories", params={"project": project}),
            await shop.get("/v1/briefing", params={"project": project}),
        ]
        assert {answer.status_code for answer in answers} == {403}
        assert {answer.json()["detail"] for answer in answers} == {
            f"This key is bound to the project {SHOP!r}, and the request is about another one."
        }


async def test_a_project_key_reads_its_project_and_what_belongs_to_none(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    await note(free, "The anchor of the shop is red.", project=SHOP, priority="high")
    await note(free, "The anchor of everyone is green.", priority="high")
    await note(free, "The anchor of the others is yellow.", project=OTHER, priority="high")
    session = await opened(shop)
    seen = [
        contents(await recalled(shop, "anchor")),
        contents(await recalled(shop, "anchor", scope="pool")),
        contents(await recalled(shop, "anchor", scope="project")),
        [row["content"] for row in (await shop.get("/v1/memories")).json()["memories"]],
    ]
    for found in seen:
        assert sorted(found) == ["The anchor of everyone is green.", "The anchor of the shop is red."]
    texts = [
        (await shop.get(f"/v1/sessions/{session}/pack")).text,
        (await shop.get("/v1/briefing")).text,
        (await shop.post(f"/v1/sessions/{session}/context", json={"recall": "anchor"})).text,
    ]
    for text in texts:
        assert "yellow" not in text
        assert "red" in text
        assert "green" in text
    assert [each["project"] for each in (await shop.get("/v1/projects")).json()["projects"]] == [SHOP]


async def test_a_question_does_not_tell_which_words_other_projects_use(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    await note(shop, "The anchor is red.")
    await note(free, "Kumquat marmalade is stored in the cellar of the captain.", project=OTHER)
    session = await opened(free, project=OTHER)
    await said(free, session, "Kumquat marmalade is stored in the cellar.")
    for query in ("{} anchor", "{}", "Where is the {} stored?"):
        asked = [await recalled(shop, query.format(word), explain=True) for word in ("kumquat", "rumquat")]
        assert asked[0] == asked[1]


async def test_what_belongs_to_no_project_cannot_be_changed_by_a_project_key(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    session = await opened(free)
    await said(free, session, DECIDED)
    await observed(free, session)
    await note(free, "The key of another project.", project=OTHER)
    everywhere = (await note(free, "The anchor is green.", external_id="e")).json()["id"]
    place = f"/v1/sessions/{session}"
    assert (await free.get(f"{place}/pack")).status_code == 200
    assert (await shop.get(f"{place}/messages")).json()["messages"]
    assert (await shop.get(f"{place}/memory")).json()["pack_versions"] == []
    refused = [
        await shop.patch(f"/v1/memories/{everywhere}", json={"content": "The anchor is red."}),
        await note(shop, "The anchor is green.", external_id="e"),
        await note(shop, "In that session.", session_id=session),
        await shop.post("/v1/sessions", json={"client": "api", "external_id": "s1"}),
        await shop.post(f"{place}/messages", json={"messages": [{"external_id": "x", "role": "user", "content": "x"}]}),
        await shop.post(f"{place}/observe"),
        await shop.post(f"{place}/reflect"),
        await shop.post(f"{place}/events", json={"kind": "session_end"}),
        await shop.post(f"{place}/usage", json={"input_tokens": 1, "output_tokens": 1}),
        # Its pack shows rows of all projects.
        await shop.get(f"{place}/pack"),
        await shop.post(f"{place}/context", json={}),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert (await free.get(f"/v1/memories/{everywhere}")).json()["superseded_by"] is None


async def test_names_of_other_projects_are_taken_but_give_nothing_away(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    theirs = await opened(free, project=OTHER)
    memory = (await note(free, "The anchor is yellow.", project=OTHER, external_id="e")).json()["id"]
    session = await shop.post("/v1/sessions", json={"client": "api", "external_id": "s1"})
    row = await note(shop, "The anchor is yellow.", external_id="e")
    assert (session.status_code, row.status_code) == (403, 409)
    assert theirs not in session.text
    assert memory not in row.text


async def test_a_project_key_does_all_the_work_of_a_session(shop: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(shop)
    place = f"/v1/sessions/{session}"
    await said(shop, session, DECIDED)
    await said(shop, session, *OVERTAKEN)  # the last passage is cut again
    assert contents(await recalled(shop, "limit of the queue", tier="passages"))
    assert (await observed(shop, session))["memories"]
    reflected = (await shop.post(f"{place}/reflect?wait=true")).json()
    [reflection] = reflected["reflection_ids"]
    packed = (await shop.get(f"{place}/pack")).json()
    assert "blue" in packed["text"]
    used = await shop.post(f"{place}/usage", json={"input_tokens": 1, "output_tokens": 1, "request_id": "r"})
    done = [
        used,
        await shop.post(f"{place}/events", json={"kind": "evicted", "dedupe_key": "d"}),
        await shop.get(f"{place}/memory"),
        await shop.get(f"/v1/reflections/{reflection}/diff"),
        await shop.post(f"/v1/reflections/{reflection}/undo"),
        await shop.get("/v1/status"),
    ]
    assert [answer.status_code // 100 for answer in done] == [2] * len(done)
    assert done[-2].json()["restored"]
    written = (await note(shop, "The anchor is red.")).json()["id"]
    right = (await shop.patch(f"/v1/memories/{written}", json={"content": "The anchor is black."})).json()
    assert right["project"] == SHOP
    assert contents(await recalled(shop, "anchor", tier="memories")) == ["The anchor is black."]
    [window] = (await recalled(shop, "boat painted", tier="passages"))["hits"]
    assert (await shop.get(f"/v1/memories/{window['id']}/sources")).status_code == 200
    with psycopg.connect(owner_url) as owner:
        assert owner.execute(ORPHANS).fetchone() == (0,)


async def test_a_session_that_got_its_project_later_is_written_like_any_other(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    session = await opened(free)
    await said(free, session, DECIDED, *OVERTAKEN)
    await observed(free, session)
    [reflection] = (await free.post(f"/v1/sessions/{session}/reflect?wait=true")).json()["reflection_ids"]
    await opened(free, project=SHOP)
    await said(shop, session, "We decided to sell the shed.")
    undone = (await shop.post(f"/v1/reflections/{reflection}/undo")).json()
    again = (await free.get(f"/v1/reflections/{reflection}")).json()
    assert (undone["restored"] > 0, again["state"]) == (True, "undone")
    assert contents(await recalled(shop, "shed", tier="passages"))


async def test_rows_of_a_session_that_got_another_project_later_are_not_seen(
    free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    session = await opened(free)
    await said(free, session, DECIDED, *OVERTAKEN)
    await observed(free, session)
    [reflection] = (await free.post(f"/v1/sessions/{session}/reflect?wait=true")).json()["reflection_ids"]
    assert contents(await recalled(shop, "boat"))
    await opened(free, project=OTHER)
    assert contents(await recalled(shop, "boat", include_superseded=True)) == []
    assert (await shop.get("/v1/memories", params={"include_superseded": "true"})).json()["memories"] == []
    assert (await shop.get(f"/v1/reflections/{reflection}")).status_code == 404


async def test_the_tools_of_a_project_key_are_those_that_it_may_use(
    callers: Callers, free: httpx2.AsyncClient, shop: httpx2.AsyncClient
) -> None:
    await note(free, "The anchor is yellow.", project=OTHER)
    theirs, nobodys = await opened(free, project=OTHER), await opened(free, "s2")
    async with connected(callers.url, "auto", callers.keys["shop"]) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "remember" in names
        assert "forget_memory" not in names
        written = await client.call_tool("remember", {"content": "The anchor is red."})
        refused = await client.call_tool("remember", {"content": "The mast is high.", "project": OTHER})
        found = await client.call_tool("recall_memory", {"query": "anchor"})
        assert (written.is_error, refused.is_error) == (False, True)
        shown = " ".join(part.text for part in found.content if isinstance(part, TextContent))
        assert "red" in shown
        assert "yellow" not in shown
        for session in (theirs, nobodys):
            with pytest.raises(MCPError):
                await client.read_resource(f"memory://pack/{session}")


async def test_the_role_of_a_project_sees_and_changes_no_row_of_another(
    callers: Callers, parts: Parts, who: Principal, owner_url: str
) -> None:
    """In every table that it may read; a new table is closed to it."""
    space = Space("bound_3", "m", "r", 3, "", "openai:http://x#m")
    await vectors.create_space(parts.database, space)
    await register(parts, space, or_retired=False)
    free = await callers.client("free", scopes=["read", "write", "forget", "admin"])
    session = await opened(free, project=OTHER)
    await said(free, session, DECIDED, *OVERTAKEN)
    await observed(free, session)
    await free.post(f"/v1/sessions/{session}/reflect?wait=true")
    for path in ("pack", "memory"):
        await free.get(f"/v1/sessions/{session}/{path}")
    await free.post(f"/v1/sessions/{session}/usage", json={"input_tokens": 1, "output_tokens": 1, "request_id": "r"})
    await free.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})
    await note(free, "The anchor is yellow.", project=OTHER)
    await said(free, session, "One more, which is not observed yet.")
    with psycopg.connect(owner_url, autocommit=True) as owner:
        theirs = rows_of(owner, other_project(who))
    filled = {table for table, rows in theirs.items() if rows}
    assert filled >= {
        "sessions", "messages", "observation_groups", "memories", "passages", "postings", "packs", "former_packs",
        "reflections", "memory_links", "session_usage", "session_events", "jobs", "embedding_attempts",
    }  # fmt: skip
    for table in theirs:
        async with parts.database.of_project(SHOP).tenant(who.pool_id) as connection:
            try:
                cursor = await connection.execute(
                    sql.SQL("SELECT to_jsonb(t)::text FROM {} t").format(sql.Identifier(table))
                )
            except psycopg.errors.InsufficientPrivilege:
                continue
            seen = {row for (row,) in await cursor.fetchall()}
            assert not seen & {*theirs[table]}, table
    for change in (
        "UPDATE sessions SET project = 'acme/shop'",
        "UPDATE memories SET content = 'x'",
        "UPDATE messages SET text = 'x'",
        "DELETE FROM passages",
        "DELETE FROM packs",
        "UPDATE former_packs SET memory_ids = NULL",
        "DELETE FROM session_usage",
        "UPDATE jobs SET state = 'ready' WHERE subject <> ''",
        "UPDATE embedding_attempts SET dead = true",
        "UPDATE reflections SET state = 'undone', undone_at = now()",
    ):
        async with parts.database.of_project(SHOP).tenant(who.pool_id) as connection:
            assert (await connection.execute(change)).rowcount == 0, change
    with psycopg.connect(owner_url, autocommit=True) as owner:
        assert rows_of(owner, other_project(who)) == theirs


@pytest.mark.parametrize("table", ["api_keys", "quarantined_memories", "vector_probes", "schema_migrations"])
async def test_the_role_of_a_project_has_no_right_to_tables_that_it_does_not_need(
    database: Database, pool_id: str, table: str
) -> None:
    with pytest.raises(Misconfigured, match="permission denied"):
        async with database.of_project(SHOP).tenant(pool_id) as connection:
            await connection.execute(sql.SQL("SELECT FROM {}").format(sql.Identifier(table)))


async def test_a_search_by_meaning_stays_in_the_project(
    callers: Callers, parts: Parts, who: Principal, free: httpx2.AsyncClient
) -> None:
    space = Space("bound_3", "m", "r", 3, "", "openai:http://x#m")
    await vectors.create_space(parts.database, space)
    await register(parts, space, or_retired=False)
    for project in (SHOP, OTHER, None):
        await note(free, f"The anchor of {project}.", project=project)
    ids = {row["project"]: row["id"] for row in (await free.get("/v1/memories")).json()["memories"]}
    async with parts.database.tenant(who.pool_id) as connection:
        await connection.execute(
            "INSERT INTO embeddings_bound_3 (pool_id, tier, number, part, content_hash, embedding, created_at)"
            " SELECT pool_id, 'm', number, 0, content_hash, '[1,2,3]', now() FROM memories"
        )
    async with parts.database.of_project(SHOP).moment(who.pool_id) as connection:
        seen = connection, "memory", space.name, matrix([[1.0, 2.0, 3.0]])[0], Filter(parts.clock()), 10
        ways = [await search.by_vector(*seen), await search.by_vector_filtered(*seen)]
    assert [{one.id for one in found} for found in ways] == [{ids[SHOP], ids[None]}] * 2


# Of a client -------------------------------------------------------------------------------------------------------


async def test_a_client_key_writes_only_sessions_of_its_client(callers: Callers, free: httpx2.AsyncClient) -> None:
    codex = await callers.client("codex", client="codex")
    assert (await codex.get("/v1/key")).json()["client"] == "codex"
    own = await codex.post("/v1/sessions", json={"client": "codex", "external_id": "s"})
    assert own.status_code == 200
    await said(codex, own.json()["id"], DECIDED)
    other = await opened(free)
    place = f"/v1/sessions/{other}"
    refused = [
        await codex.post("/v1/sessions", json={"client": "api", "external_id": "s1"}),
        await codex.post("/v1/sessions", json={"client": "gemini-cli", "external_id": "s"}),
        await codex.post(
            f"{place}/messages", json={"messages": [{"external_id": "x", "role": "user", "content": "x"}]}
        ),
        await codex.post(f"{place}/observe"),
        await codex.post(f"{place}/reflect"),
        await codex.post(f"{place}/events", json={"kind": "session_end"}),
        await codex.post(f"{place}/usage", json={"input_tokens": 1, "output_tokens": 1}),
        await note(codex, "In that session.", session_id=other),
        await codex.post("/v1/import", content=b"{}"),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert all("bound to the client 'codex'" in answer.json()["detail"] for answer in refused)


async def test_a_client_key_reads_everything_of_its_pool(callers: Callers, free: httpx2.AsyncClient) -> None:
    codex = await callers.client("codex", client="codex")
    session = await opened(free, project=OTHER)
    await said(free, session, DECIDED)
    await observed(free, session)
    for path in ("", "/messages", "/pack", "/memory"):
        assert (await codex.get(f"/v1/sessions/{session}{path}")).status_code == 200
    assert contents(await recalled(codex, "boat"))
    written = await note(codex, "The anchor is red.", project=OTHER)
    assert written.json()["author"] == (await codex.get("/v1/key")).json()["id"]


async def test_a_key_can_be_bound_to_both(callers: Callers, free: httpx2.AsyncClient) -> None:
    both = await callers.client("both", client="codex", project=SHOP)
    assert (await both.post("/v1/sessions", json={"client": "codex", "external_id": "s"})).json()["project"] == SHOP
    other_client = await opened(free, project=SHOP)
    assert (await both.get(f"/v1/sessions/{other_client}/pack")).status_code == 200
    assert (await both.post(f"/v1/sessions/{other_client}/observe")).status_code == 403
    elsewhere = {"client": "codex", "external_id": "t", "project": OTHER}
    assert (await both.post("/v1/sessions", json=elsewhere)).status_code == 403
