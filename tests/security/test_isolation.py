"""Isolation as a matrix: every way into the server, with the ids, filters and cursors of another pool or project.

A caller of one pool must get the same answer for what another pool has as for what nobody has, see none of its words,
and change nothing in it. All of it holds with the statements as they are, and by row-level security alone. It holds too
for a key that is bound to another project of the same pool; what reaches over projects is refused to it.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString, get_args

import httpx2
import psycopg
import pytest
from mcp import MCPError
from mcp.types import TextContent

from esker.server.app import make_parts, unconnected_app
from esker.server.cli.verbs import VERBS
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Forbidden
from esker.server.core.records import JobKind, Principal
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.rest.access import is_open
from esker.server.rest.bound_keys import check_binding
from esker.server.tools.instructions import INSTRUCTIONS
from esker.server.tools.scopes import SCOPES as TOOLS
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.parts import Parts
from tests.support.kept_servers import KeptDatabase
from tests.support.mcp_clients import connected
from tests.support.processes import esker
from tests.support.serving import serving
from tests.support.two_pools import (
    FilledPool,
    everything_of,
    filled_in,
    filled_pool,
    filled_project,
    missing_ids,
    rows_of,
    with_bound_key,
    without_pool_conditions,
)
from tests.support.waiting import PATIENCE


@dataclass(frozen=True)
class Ask:
    """One request; kinds of ids in braces. `same` is whether its answer does not depend on when it is asked.

    `name` says that it takes a name which a pool has only once, so that one of another project is refused. With a
    `form` it is sent as a page of the server sends it.
    """

    query: dict[str, Any] = field(default_factory=dict[str, Any])
    body: Any = None
    path: dict[str, str] = field(default_factory=dict[str, str])
    same: bool = True
    name: bool = False
    form: dict[str, str] | None = None


MEMORY_IDS = [Ask(path={"memory_id": kind}) for kind in ("{memory}", "{observation}", "{passage}")]
SESSION = [Ask(path={"session_id": "{session}"})]
REFLECTION = [Ask(path={"reflection_id": "{reflection}"})]
SAID = {"messages": [{"external_id": "x", "role": "user", "content": "Hello."}]}
WAIT = {"wait": "true"}

ROUTES: dict[tuple[str, str], list[Ask]] = {
    ("POST", "/v1/sessions"): [Ask(body={"client": "api", "external_id": "{other}-1"}, same=False, name=True)],
    ("GET", "/v1/sessions"): [Ask(same=False), Ask({"before": "{session}"}), Ask({"external_id": "x-{other}"})],
    ("GET", "/v1/sessions/{session_id}"): SESSION,
    ("GET", "/v1/sessions/{session_id}/messages"): SESSION,
    ("POST", "/v1/sessions/{session_id}/messages"): [Ask(path={"session_id": "{session}"}, body=SAID)],
    ("POST", "/v1/sessions/{session_id}/observe"): [Ask(WAIT, path={"session_id": "{session}"})],
    ("POST", "/v1/sessions/{session_id}/reflect"): [Ask(WAIT, path={"session_id": "{session}"})],
    ("POST", "/v1/sessions/{session_id}/events"): [
        Ask(path={"session_id": "{session}"}, body={"kind": kind, "dedupe_key": "d"})
        for kind in ("session_end", "evicted", "compaction_pending")
    ],
    ("GET", "/v1/sessions/{session_id}/pack"): [*SESSION, Ask({"explain": "true"}, path={"session_id": "{session}"})],
    ("POST", "/v1/sessions/{session_id}/context"): [Ask(path={"session_id": "{session}"}, body={"recall": "boat"})],
    ("POST", "/v1/sessions/{session_id}/usage"): [
        Ask(path={"session_id": "{session}"}, body={"input_tokens": 1, "output_tokens": 1, "request_id": "{request}"})
    ],
    ("GET", "/v1/sessions/{session_id}/memory"): SESSION,
    ("POST", "/v1/memories"): [
        Ask(body={"content": "Mine.", "session_id": "{session}"}),
        Ask(body={"content": "Mine by name.", "external_id": "{external}"}, same=False, name=True),
    ],
    ("POST", "/v1/memories/batch"): [
        Ask(body={"memories": [{"content": "One."}, {"content": "Two.", "session_id": "{session}"}]}),
        Ask(body={"memories": [{"content": "Three.", "external_id": "{external}"}]}, same=False, name=True),
    ],
    ("GET", "/v1/memories"): [
        Ask({"limit": "1000", "include_superseded": "true"}, same=False),
        Ask({"session_id": "{session}"}),
        Ask({"project": "{project}"}, same=False),
        Ask({"tag": "{tag}"}),
        Ask({"before": "{memory}"}),
    ],
    ("GET", "/v1/memories/{memory_id}"): MEMORY_IDS,
    ("PATCH", "/v1/memories/{memory_id}"): [Ask(path=each.path, body={"content": "Changed."}) for each in MEMORY_IDS],
    ("DELETE", "/v1/memories/{memory_id}"): [Ask({"messages": "true"}, path=each.path) for each in MEMORY_IDS],
    ("GET", "/v1/memories/{memory_id}/sources"): MEMORY_IDS,
    ("POST", "/v1/memories/{memory_id}/confirm"): MEMORY_IDS,
    ("POST", "/v1/forget"): [
        Ask(body={"ids": ["{memory}", "{observation}", "{passage}"]}),
        Ask(body={"session_id": "{session}", "messages": True}),
        Ask(body={"project": "{project}", "messages": True}),
        Ask(body={"words": ["{word}"]}),
        Ask(body={"ids": ["{memory}"], "dry_run": True}),
    ],
    ("GET", "/v1/forget/{receipt_id}"): [Ask(path={"receipt_id": "{receipt}"})],
    ("DELETE", "/v1/forget/{receipt_id}"): [Ask(path={"receipt_id": "{receipt}"})],
    ("POST", "/v1/quarantines"): [
        Ask(body={"session_id": "{session}"}),
        Ask(body={"client": "{other}"}),
    ],
    ("GET", "/v1/quarantines"): [Ask()],
    ("DELETE", "/v1/quarantines/{quarantine_id}"): [Ask(path={"quarantine_id": "{quarantine}"})],
    ("GET", "/v1/retention"): [Ask()],
    ("PUT", "/v1/retention"): [Ask(body={"messages_days": 30_000})],
    ("POST", "/v1/recall"): [
        Ask(body={"query": "{word} boat ripe", "limit": 50}, same=False),
        Ask(body={"query": "boat", "session_id": "{session}"}),
        Ask(body={"query": "boat", "session_id": "{session}", "scope": "session"}),
        Ask(body={"query": "boat", "project": "{project}", "scope": "project"}, same=False),
        Ask(body={"query": "boat", "tags": ["{tag}"]}, same=False),
        Ask(body={"query": "boat", "without": ["{memory}", "{passage}"]}, same=False),
        Ask(body={"query": "boat queue worker", "tier": "passages", "explain": True}, same=False),
    ],
    ("GET", "/v1/briefing"): [Ask(same=False), Ask({"project": "{project}"}, same=False)],
    ("GET", "/v1/projects"): [Ask()],
    ("POST", "/v1/projects/rename"): [
        Ask(body={"project": "{project}", "name": "renamed", "dry_run": True}, same=False),
        Ask(body={"project": "{project}", "name": "renamed"}, same=False),
        Ask(body={"project": "{project}", "name": "project-of-mine", "merge": True}, same=False),
    ],
    ("POST", "/v1/reflect"): [
        Ask(body={"project": "{project}", "min_age_days": 0, "dry_run": True}),
        Ask(WAIT, body={"project": "{project}", "min_age_days": 0}),
    ],
    ("GET", "/v1/reflections"): [Ask(), Ask({"session_id": "{session}"}), Ask({"before": "{reflection}"})],
    ("GET", "/v1/reflections/{reflection_id}"): REFLECTION,
    ("GET", "/v1/reflections/{reflection_id}/diff"): REFLECTION,
    ("POST", "/v1/reflections/{reflection_id}/undo"): REFLECTION,
    ("GET", "/v1/export"): [Ask(same=False)],
    ("POST", "/v1/import"): [],  # see test_an_import_of_another_pools_file_takes_nothing_from_that_pool
    ("GET", "/v1/spend"): [Ask()],
    ("GET", "/v1/savings"): [Ask(same=False)],
    ("GET", "/v1/key"): [Ask()],
    ("GET", "/v1/audit"): [Ask({"actor": "{key}"}), Ask({"before": "{entry}"}), Ask(same=False)],
    ("GET", "/v1/status"): [Ask(same=False)],
    ("POST", "/v1/login-links"): [],  # see test_a_link_signs_in_once; a link has the rights of its own request
    ("GET", "/"): [Ask(same=False)],
    ("GET", "/ui/search"): [
        Ask({"q": "{word} boat ripe"}, same=False),
        Ask({"q": "boat", "project": "{project}"}, same=False),
    ],
    ("GET", "/ui/memories"): [
        Ask({"superseded": "true"}, same=False),
        Ask({"project": "{project}"}, same=False),
        Ask({"before": "{memory}"}),
    ],
    ("GET", "/ui/memories/{memory_id}"): MEMORY_IDS,
    ("POST", "/ui/memories/{memory_id}/edit"): [
        Ask(path=each.path, form={"content": "Changed.", "priority": "high"}) for each in MEMORY_IDS
    ],
    ("POST", "/ui/memories/{memory_id}/pin"): [Ask(path=each.path, form={"pinned": "true"}) for each in MEMORY_IDS],
    ("POST", "/ui/memories/{memory_id}/priority"): [
        Ask(path=each.path, form={"priority": "low"}) for each in MEMORY_IDS
    ],
    ("POST", "/ui/memories/{memory_id}/confirm"): [Ask(path=each.path, form={}) for each in MEMORY_IDS],
    ("GET", "/ui/memories/{memory_id}/forget"): MEMORY_IDS,
    ("POST", "/ui/memories/{memory_id}/forget"): [
        Ask(path=each.path, form={"messages": "true", "shown": ""}) for each in MEMORY_IDS
    ],
    ("GET", "/ui/bulk"): [Ask(same=False), Ask({"project": "{project}"}, same=False)],
    ("POST", "/ui/bulk/change"): [Ask(form={"id": kind, "change": "pin"}) for kind in ("{memory}", "{passage}")],
    ("POST", "/ui/bulk/confirm"): [Ask(form={"id": "{memory}"})],
    ("GET", "/ui/bulk/forget"): [Ask({"id": kind}) for kind in ("{memory}", "{passage}")],
    ("POST", "/ui/bulk/forget"): [
        Ask(form={"id": kind, "messages": "true", "shown": ""}) for kind in ("{memory}", "{passage}")
    ],
    ("GET", "/ui/sessions"): [Ask(same=False), Ask({"project": "{project}"}, same=False)],
    ("GET", "/ui/sessions/{session_id}"): SESSION,
    ("GET", "/ui/sessions/{session_id}/pack"): SESSION,
    ("GET", "/ui/sessions/{session_id}/pack/changes"): [
        Ask({"older": "1", "newer": "1"}, path={"session_id": "{session}"})
    ],
    ("GET", "/ui/reflections"): [Ask(same=False), Ask({"before": "{reflection}"})],
    ("GET", "/ui/reflections/{reflection_id}"): REFLECTION,
    ("POST", "/ui/reflections/{reflection_id}/undo"): [Ask(path=each.path, form={}) for each in REFLECTION],
    ("GET", "/ui/operations"): [Ask(same=False)],
    ("GET", "/ui/events"): [],  # see test_a_page_is_told_of_new_rows_of_its_own_project_alone
    ("GET", "/ui/login"): [Ask()],
    ("POST", "/ui/login"): [],  # it keeps what it is given, see tests/api/test_page.py
    ("POST", "/ui/logout"): [Ask(form={})],
    ("GET", "/ui/link/{code}"): [Ask(path={"code": "{memory}"})],
    ("GET", "/ui/static/{name}"): [Ask(path={"name": "esker.css"})],
    ("GET", "/help"): [Ask()],
    ("GET", "/help/{path:path}"): [Ask(path={"path:path": "{memory}"})],
    ("GET", "/ui/{path:path}"): [Ask(path={"path:path": "{memory}"})],
    ("GET", "/livez"): [Ask()],
    ("GET", "/readyz"): [Ask()],
    ("GET", "/metrics"): [Ask(same=False)],
    ("GET", "/openapi.json"): [Ask(same=False)],
    ("GET", "/docs"): [Ask()],
    ("*", "/mcp"): [],  # see the tools and the resources
    ("*", "/gateway/{path:path}"): [],  # see tests/gateway: sessions are named by their client, as at POST /v1/sessions
}

# Routes that reach over the projects of a pool, and so are refused to a key of one.
CROSSING = {
    ("DELETE", "/v1/memories/{memory_id}"),
    ("POST", "/v1/memories/{memory_id}/confirm"),
    ("POST", "/v1/forget"),
    ("GET", "/v1/forget/{receipt_id}"),
    ("DELETE", "/v1/forget/{receipt_id}"),
    ("POST", "/v1/projects/rename"),
    ("POST", "/v1/quarantines"),
    ("GET", "/v1/quarantines"),
    ("DELETE", "/v1/quarantines/{quarantine_id}"),
    ("GET", "/v1/retention"),
    ("PUT", "/v1/retention"),
    ("POST", "/v1/reflect"),
    ("GET", "/v1/export"),
    ("POST", "/v1/import"),
    ("GET", "/v1/spend"),
    ("GET", "/v1/audit"),
    ("GET", "/metrics"),
    ("POST", "/ui/memories/{memory_id}/confirm"),
    ("GET", "/ui/memories/{memory_id}/forget"),
    ("POST", "/ui/memories/{memory_id}/forget"),
    ("POST", "/ui/bulk/confirm"),
    ("GET", "/ui/bulk/forget"),
    ("POST", "/ui/bulk/forget"),
    ("GET", "/ui/{path:path}"),
}

TOOL_CALLS: dict[str, list[dict[str, Any]]] = {
    "recall_memory": [
        {"query": "boat ripe"},
        {"query": "boat", "session_id": "{session}"},
        {"query": "boat", "project": "{project}"},
        {"query": "boat", "tags": ["{tag}"]},
    ],
    "expand_memory": [{"memory_id": kind} for kind in ("{memory}", "{observation}", "{passage}")],
    "remember": [{"content": "Mine.", "session_id": "{session}"}, {"content": "Mine.", "replaces": "{memory}"}],
    "forget_memory": [{"memory_id": kind, "messages": True} for kind in ("{memory}", "{observation}", "{passage}")],
    "memory_status": [{}],
    "memory_briefing": [{"project": "{project}"}],
}
RESOURCES = {
    "memory://pack/{session}": ["memory://pack/{session}"],
    "memory://memory/{memory_id}": ["memory://memory/{memory}", "memory://memory/{passage}"],
}

SPENT: LiteralString = """
    INSERT INTO spend (pool_id, day, model, purpose, calls, input_tokens, cache_write_tokens, cache_read_tokens,
                       output_tokens, cost_usd)
    VALUES (%(pool)s, current_date, %(model)s, 'observe', 1, 1, 0, 0, 1, 1)
"""

# Verbs that ask the server, with the ids of another pool.
ASKING_VERBS: dict[str, list[list[str]]] = {
    "sessions": [[], ["{session}"]],
    "observe": [["--wait"], ["{session}", "--wait"]],
    "reflect": [["{session}", "--wait"], ["--sessions", "--wait"]],
    "reflections": [[], ["diff", "{reflection}"], ["undo", "{reflection}"]],
    "pack": [["{session}"]],
    "status": [[]],
    "briefing": [["--project", "{project}"]],
    "recall": [["boat ripe"], ["boat", "--project", "{project}"]],
    "search": [["boat ripe"]],
    "expand": [["{memory}"], ["{passage}"]],
    "memories": [["--limit", "1000"], ["--project", "{project}"]],
    "remember": [["Mine from the command line.", "--project", "mine"]],
    "open": [["--no-browser"]],
    "edit": [["{memory}", "Changed."]],
    "pin": [["{memory}"], ["{passage}", "--undo"]],
    "forget": [["{memory}", "--messages"], ["{passage}"]],
    "export": [["jsonl", "{folder}/pool.jsonl"], ["memory-md", "{folder}/MEMORY.md"], ["daily", "{folder}/logs"]],
    "sync": [["{folder}/vault"]],
    "session": [["delete", "{session}", "--yes"]],
    "project": [["list"], ["rename", "{project}", "renamed", "--yes"], ["delete", "{project}", "--yes"]],
    "quarantine": [[], ["--lift", "{quarantine}"], ["--session", "{session}"]],
    "spend": [[]],
    "savings": [[]],
    "audit": [["--actor", "{key}"], []],
}
# Verbs that ask no server, or nothing of a pool but what the routes above do.
OTHER_VERBS = {
    "serve": "runs the server",
    "confirm": "confirms from a terminal, as the route above",
    "worker": "works for all pools",
    "mcp": "has the tools above, over the routes above",
    "hook": "opens sessions and sends messages, as the routes above",
    "gateway": "starts a program of the user, whose requests take the route above",
    "demo": "runs a server of its own",
    "service": "runs the server, and asks it nothing but whether it lives",
    "logs": "reads a file of the user, or the journal of systemd",
    "openapi": "describes routes and reads nothing",
    "install": "writes files of clients",
    "setup": "writes the settings file of the user",
    "uninstall": "writes files of clients",
    "ingest": "opens sessions and sends messages, as the routes above",
    "exclude": "writes a file of the user",
    "config": "reads the environment and files of the user",
    "spool": "sends what hooks kept, as the routes above",
    "import": "imports, as the route above",
    "backup": "reads the whole database, as the operator",
    "restore": "replaces the whole database, as the operator",
    "migrate": "changes the schema, as the operator",
    "pool": "sets pools, as the operator",
    "key": "makes keys, as the operator",
    "jobs": "shows and drops jobs of the database, as the operator",
    "scan": "masks secrets in the whole database, as the operator",
    "reembed": "changes models, as the operator",
    "doctor": "checks the whole database, as the operator",
    "eval": "reads one pool of the database, as the operator",
    "bench": "runs a server of its own",
}


@dataclass
class Two:
    """Two pools of one server, or projects of one pool: `mine` asks, `theirs` has what it must not get."""

    url: str
    owner: psycopg.Connection
    mine: FilledPool
    theirs: FilledPool

    @property
    def bound(self) -> bool:
        """Whether the caller has a key of a project."""
        return self.mine.alone_in is not None

    def targets(self) -> list[dict[str, str]]:
        """Return the ids of the other pool, and ids that nobody has."""
        return [
            self.theirs.ids | {"word": self.theirs.word, "other": self.theirs.name},
            missing_ids(self.theirs) | {"word": "nobodysword", "other": "nobody"},
        ]


BOUND = "a key of another project"


async def _pools(parts: Parts, url: str) -> tuple[FilledPool, FilledPool]:
    mine = await filled_pool(parts, url, "mine", "aardvarkish")
    return mine, await filled_pool(parts, url, "theirs", "bumblebeeish")


async def _projects(parts: Parts, url: str) -> tuple[FilledPool, FilledPool]:
    pool = await create_pool(parts, "shared")
    mine = await filled_project(parts, url, pool.id, pool.name, "mine", "aardvarkish")
    theirs = await filled_project(parts, url, pool.id, pool.name, "theirs", "bumblebeeish")
    return await with_bound_key(parts, url, pool.name, mine), theirs


@pytest.fixture(scope="module", params=["statements as they are", "row-level security alone", BOUND])
async def two(request: pytest.FixtureRequest, cluster: Cluster) -> AsyncGenerator[Two]:
    """Two filled pools, or two filled projects and a key of one."""
    database = await KeptDatabase.made(cluster)
    settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
    parts = make_parts(settings, database.open, system_clock)
    served = make_parts(settings, Database(database.url), system_clock)
    async with serving(served) as url:
        mine, theirs = await (_projects(parts, url) if request.param == BOUND else _pools(parts, url))
        for pool in (mine, theirs):
            await database.owner.execute(SPENT, {"pool": pool.pool_id, "model": f"model-{pool.word}"})
        owner_url = database.url.replace("esker_app@", f"{OWNER}@")
        owner = database.stack.enter_context(psycopg.connect(owner_url, autocommit=True))
        two = Two(url, owner, mine, theirs)
        if request.param == "row-level security alone":
            with without_pool_conditions() as count:
                assert count > 10
                yield two
        else:
            yield two
        await mine.client.aclose()
        await theirs.client.aclose()
    await database.stack.aclose()


def told(text: str, ids: dict[str, str]) -> str:
    """Return a text without the ids that its request had, and without times."""
    for kind, given in ids.items():
        if kind not in ("entry", "other", "word"):  # they are parts of other words
            text = text.replace(given, f"<{kind}>")
    text = re.sub(r"(fgt|qua)_\w{26}|req_[0-9a-f]+", "<made>", text)
    return re.sub(r"\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|\+00:00)?", "<time>", text)


def refuse_leak(two: Two, text: str, ids: dict[str, str]) -> None:
    """Fail if a text has words or ids of the other pool that its request did not have."""
    left = told(text, ids)
    assert ids.get("word") == two.theirs.word or two.theirs.word not in left
    for kind, given in two.theirs.ids.items():
        # Names that a caller chose itself are no news to it.
        if kind not in ("entry", "external", "request"):
            assert given not in left, kind


async def ask(two: Two, method: str, path: str, ask: Ask, ids: dict[str, str]) -> httpx2.Response:
    """Send a request of the first pool."""
    for name, kind in ask.path.items():
        path = path.replace(f"{{{name}}}", kind)
    query = filled_in(ask.query, ids)
    # The same id for each, since problem documents show it.
    headers = {"X-Request-Id": "asked"}
    if ask.form is not None:
        headers["Origin"] = two.url
        form = filled_in(ask.form, ids)
        return await two.mine.client.request(method, filled_in(path, ids), data=form, headers=headers)
    body = filled_in(ask.body, ids)
    return await two.mine.client.request(method, filled_in(path, ids), params=query, json=body, headers=headers)


def files_in(folder: Path) -> list[Path]:
    """Return all files in a folder and below."""
    return [path for path in folder.rglob("*") if path.is_file()]


def of_the_app() -> set[tuple[str, str]]:
    """Return every method and path of the server."""
    app = unconnected_app()
    found: set[tuple[str, str]] = set()
    for route in app.router.routes:
        methods = getattr(route, "methods", None) or {"*"}
        found |= {(method, route.path) for method in methods - {"HEAD"}}  # type: ignore[attr-defined]
    return found


def test_every_way_into_the_server_is_in_the_matrix() -> None:
    assert of_the_app() == ROUTES.keys()
    assert TOOLS.keys() == TOOL_CALLS.keys()
    assert ASKING_VERBS.keys() & OTHER_VERBS.keys() == set()
    assert VERBS.keys() == ASKING_VERBS.keys() | OTHER_VERBS.keys()
    assert set(JOBS) == set(get_args(JobKind))


def test_every_route_is_decided_for_keys_of_a_project() -> None:
    """A route that is in no list is refused to them, and this test asks for a decision."""
    key = Principal("p", "p", "key", frozenset(("read", "write")), project="shop")

    def is_refused(method: str, path: str) -> bool:
        try:
            check_binding(key, "POST" if method == "*" else method, re.sub(r"\{\w+\}", "x", path))
        except Forbidden:
            return True
        return False

    needs_a_key = {route for route in of_the_app() if not is_open(re.sub(r"\{\w+\}", "x", route[1]))}
    assert {route for route in needs_a_key if is_refused(*route)} == CROSSING


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_a_route_gives_nothing_of_another_pool_and_changes_nothing_there(
    two: Two, route: tuple[str, str]
) -> None:
    before = rows_of(two.owner, two.theirs)
    for case in ROUTES[route]:
        answers: list[tuple[int, str]] = []
        for ids in two.targets():
            answer = await ask(two, *route, case, ids)
            refuse_leak(two, answer.text, ids)
            answers.append((answer.status_code, told(answer.text, ids)))
        theirs, nobodys = answers
        if two.bound and case.name:
            assert theirs[0] in (403, 409), case
            continue
        assert theirs[0] == nobodys[0] < 500, case
        assert (theirs[0] == 403) >= (two.bound and route in CROSSING), case
        assert theirs == nobodys or not case.same, case
    assert rows_of(two.owner, two.theirs) == before


@pytest.mark.parametrize("tool", TOOL_CALLS)
async def test_a_tool_gives_nothing_of_another_pool_and_changes_nothing_there(two: Two, tool: str) -> None:
    before = rows_of(two.owner, two.theirs)
    async with connected(two.url, "auto", two.mine.key) as client:
        for case in TOOL_CALLS[tool]:
            answers: list[str] = []
            for ids in two.targets():
                answer = await client.call_tool(tool, filled_in(case, ids))
                shown = " ".join(part.text for part in answer.content if isinstance(part, TextContent))
                refuse_leak(two, f"{shown} {json.dumps(answer.structured_content)}", ids)
                answers.append(told(f"{answer.is_error} {shown}", ids))
            assert answers[0] == answers[1], case
    assert rows_of(two.owner, two.theirs) == before


async def test_resources_and_instructions_have_nothing_of_another_pool(two: Two) -> None:
    async with connected(two.url, "auto", two.mine.key) as client:
        assert client.instructions == INSTRUCTIONS
        templates = (await client.list_resource_templates()).resource_templates
        assert {each.uri_template for each in templates} == RESOURCES.keys()
        for address in [each for some in RESOURCES.values() for each in some]:
            refused: list[str] = []
            for ids in two.targets():
                with pytest.raises(MCPError) as error:
                    await client.read_resource(filled_in(address, ids))
                refused.append(told(str(error.value), ids))
            assert refused[0] == refused[1]


@pytest.mark.parametrize("verb", ASKING_VERBS)
async def test_a_verb_shows_nothing_of_another_pool_and_changes_nothing_there(
    two: Two, verb: str, tmp_path: Path
) -> None:
    before = rows_of(two.owner, two.theirs)
    there = {"ESKER_URL": two.url, "ESKER_KEY": two.mine.key, "ESKER_STATE_DIR": str(tmp_path / "state")}
    ids = two.targets()[0] | {"folder": str(tmp_path)}
    for arguments in ASKING_VERBS[verb]:
        done = await asyncio.to_thread(esker, verb, *filled_in(arguments, ids), **there)
        assert "internal error" not in done.stderr
        refuse_leak(two, done.stdout + done.stderr, ids)
    for path in files_in(tmp_path):
        refuse_leak(two, path.read_text(errors="replace"), {})
    assert rows_of(two.owner, two.theirs) == before


async def test_what_is_counted_is_counted_in_the_own_pool(two: Two) -> None:
    rows = rows_of(two.owner, two.mine)
    status = (await two.mine.client.get("/v1/status")).json()
    assert status["sessions"] == len(rows["sessions"])
    assert status["messages"] == len(rows["messages"])
    assert status["passages"] == len(rows["passages"])
    assert sum(status["memories"].values()) + status["superseded"] == len(rows["memories"])
    daily = 1 if two.bound else 0  # it is of the pool
    assert status["jobs"] + status["failed_jobs"] == len(rows["jobs"]) + daily
    saved = (await two.mine.client.get("/v1/savings")).json()
    assert [each["session_id"] for each in saved["sessions"]] == [
        json.loads(row)["session_id"] for row in rows["session_usage"]
    ]
    assert [(each["client"], each["sessions"]) for each in saved["clients"]] == [("api", len(rows["session_usage"]))]
    if two.bound:
        return
    spent = (await two.mine.client.get("/v1/spend")).json()["days"]
    assert [day["model"] for day in spent] == [f"model-{two.mine.word}"]


async def test_an_import_of_another_pools_file_takes_nothing_from_that_pool(two: Two) -> None:
    if two.bound:
        assert (await two.mine.client.post("/v1/import", content=b"{}")).status_code == 403
        return
    before = everything_of(two.owner, two.theirs.pool_id)
    file = (await two.theirs.client.get("/v1/export")).content
    record = everything_of(two.owner, two.theirs.pool_id)
    assert len(record.pop("audit")) == len(before.pop("audit")) + 1
    async with httpx2.AsyncClient(base_url=two.url, timeout=PATIENCE, headers=two.mine.client.headers) as client:
        answer = await client.post("/v1/import", content=file)
    # Its own words arrive as a copy, and their sessions are others.
    assert answer.status_code < 500
    after = everything_of(two.owner, two.theirs.pool_id)
    after.pop("audit")
    assert after == record == before


# The route that makes each kind of job due, for a session or for the pool.
JOBS: dict[str, str] = {
    "observe": "/v1/sessions/{session}/observe",
    "reflect": "/v1/sessions/{session}/reflect",
    "reflect_pool": "/v1/reflect",
}


@pytest.mark.parametrize("kind", JOBS)
async def test_a_job_of_one_pool_changes_nothing_in_another(two: Two, kind: str) -> None:
    before = rows_of(two.owner, two.theirs)
    path = filled_in(JOBS[kind], two.mine.ids)
    await two.mine.client.post(f"/v1/sessions/{two.mine.ids['session']}/messages", json=SAID)
    answer = await two.mine.client.post(path, params=WAIT, json={"min_age_days": 0} if kind == "reflect_pool" else None)
    assert answer.status_code in ((403,) if two.bound and kind == "reflect_pool" else (200, 202)), answer.text
    assert rows_of(two.owner, two.theirs) == before
