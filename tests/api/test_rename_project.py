"""Renaming and merging projects: everything of a project moves, in one transaction, and what comes later, too."""

import asyncio
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg import sql

from esker.server.usecases import rename_project as renaming
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from esker.server.usecases.rename_project import move_all_late_rows
from tests.support.api import observed, opened, recalled, said
from tests.support.processes import esker

TABLES = ("sessions", "memories", "passages", "reflections", "quarantines")


async def fill(client: httpx2.AsyncClient, project: str, word: str) -> str:
    """Put one of everything into a project; return its session."""
    session = await opened(client, f"of-{project}", project=project)
    fact = f"We decided that the {word} boat is painted blue."
    await said(client, session, {"external_id": f"m-{project}", "role": "user", "content": fact})
    await observed(client, session)
    await remember(client, f"The {word} is ripe.", project)
    await remember(client, f"Pin the {word}.", project, kind="manual")
    await client.post("/v1/quarantines", json={"project": project, "until": "2001-01-01T00:00:00Z"})
    return session


async def remember(client: httpx2.AsyncClient, content: str, project: str | None, **more: Any) -> dict[str, Any]:
    body = {"content": content, "project": project, **more}
    return (await client.post("/v1/memories", json=body)).raise_for_status().json()


async def rename(client: httpx2.AsyncClient, project: str, name: str, **more: Any) -> httpx2.Response:
    return await client.post("/v1/projects/rename", json={"project": project, "name": name, **more})


def places(owner_url: str) -> set[str]:
    """Return the projects of all rows."""
    with psycopg.connect(owner_url) as connection:
        found: set[str] = set()
        for table in TABLES:
            statement = sql.SQL("SELECT DISTINCT project FROM {} WHERE project IS NOT NULL")
            found |= {row[0] for row in connection.execute(statement.format(sql.Identifier(table)))}
        return found


async def test_everything_of_a_project_moves_and_the_old_name_leads_to_it(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await fill(client, "old/shop", "mango")
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()["text"]
    plan = (await rename(client, "Old/Shop", "new/shop", dry_run=True)).json()
    assert (plan["moved"]["sessions"], plan["moved"]["quarantines"], plan["repeated"]) == (1, 1, False)
    assert places(owner_url) == {"old/shop"}
    done = (await rename(client, "old/shop", "new/shop")).json()
    assert done["moved"] == plan["moved"]
    assert places(owner_url) == {"new/shop"}
    assert (await rename(client, "old/shop", "new/shop")).json()["repeated"]
    for name in ("old/shop", "new/shop"):
        found = await recalled(client, "mango", project=name)
        assert (found["unknown_project"], len(found["hits"]) > 0) == (None, True)
        listed = (await client.get("/v1/memories", params={"project": name})).json()["memories"]
        assert {row["project"] for row in listed} == {"new/shop"}
        assert (await client.get("/v1/briefing", params={"project": name})).json()["known"]
    assert (await client.get(f"/v1/sessions/{session}/pack")).json()["text"] == pack, "the prefix is frozen"
    actions = [entry["action"] for entry in (await client.get("/v1/audit")).json()["entries"]]
    assert actions.count("project.rename") == 1


async def test_what_agents_send_under_the_old_name_lands_in_the_new_project(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await fill(client, "old", "mango")
    ripe = await remember(client, "The mango is ripe.", "old")
    await rename(client, "old", "new")
    again = await opened(client, "another", project="old")
    assert (await client.get(f"/v1/sessions/{again}")).json()["project"] == "new"
    assert (await remember(client, "The mango is ripe.", "old"))["id"] == ripe["id"]
    assert (await remember(client, "The mango is ripe.", "new"))["id"] == ripe["id"]
    await said(client, session, "We decided that the mango boat gets a red sail.")
    await observed(client, session)
    await rename(client, "new", "newest")
    assert (await remember(client, "Of old.", "old"))["project"] == "newest"
    assert places(owner_url) == {"newest"}


async def test_a_renamed_project_can_be_renamed_back(client: httpx2.AsyncClient, owner_url: str) -> None:
    await fill(client, "old", "mango")
    before = (await client.get("/v1/memories")).json()
    await rename(client, "old", "new")
    await rename(client, "new", "old")
    assert (await client.get("/v1/memories")).json() == before
    assert (places(owner_url), (await remember(client, "Of new.", "new"))["project"]) == ({"old"}, "old")


async def test_projects_are_merged_only_if_asked(client: httpx2.AsyncClient, owner_url: str) -> None:
    await fill(client, "one", "mango")
    await fill(client, "two", "melon")
    same = [await remember(client, "Both say this.", project) for project in ("one", "two")]
    taken = await rename(client, "one", "two")
    assert (taken.status_code, "merge" in taken.json()["hint"]) == (409, True)
    assert places(owner_url) == {"one", "two"}
    unknown = await rename(client, "one", "tow", merge=True)
    assert (unknown.status_code, "two" in unknown.json()["detail"]) == (404, True)
    merged = (await rename(client, "one", "two", merge=True)).json()
    assert merged["there"]["sessions"] == merged["moved"]["sessions"] == 1
    assert places(owner_url) == {"two"}
    rows = {row["id"] for row in (await client.get("/v1/memories", params={"limit": 1000})).json()["memories"]}
    assert {row["id"] for row in same} <= rows
    assert (await remember(client, "Both say this.", "one"))["id"] == same[1]["id"]


@pytest.mark.parametrize(("project", "name", "status"), [("a", "A", 422), ("nowhere", "x", 404), ("a", " ", 422)])
async def test_a_wrong_request_changes_nothing(
    client: httpx2.AsyncClient, project: str, name: str, status: int
) -> None:
    await remember(client, "Here.", "a")
    assert (await rename(client, project, name)).status_code == status
    assert (await remember(client, "Here.", "a"))["project"] == "a"


async def test_a_merge_that_pins_too_much_changes_nothing(client: httpx2.AsyncClient, owner_url: str) -> None:
    for project in ("one", "two"):
        await remember(client, " ".join(f"{project}{n}" for n in range(700)), project, kind="manual")
    assert (await rename(client, "one", "two", merge=True)).status_code == 422
    assert places(owner_url) == {"one", "two"}


async def test_a_project_to_which_a_key_is_bound_keeps_its_name(client: httpx2.AsyncClient, parts: Parts) -> None:
    await remember(client, "Here.", "old")
    key = await create_key(parts, name="all", pool="default")
    client.headers["Authorization"] = f"Bearer {key.key}"
    await create_key(parts, name="laptop", pool="default", project="old")
    refused = await rename(client, "old", "new")
    assert (refused.status_code, "laptop" in refused.json()["detail"]) == (409, True)


async def test_a_row_that_was_being_written_is_moved_after_it(
    client: httpx2.AsyncClient, owner_url: str, parts: Parts, kept_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction that wrote under the old name commits after the new one."""
    await fill(client, "old", "mango")
    monkeypatch.setattr(renaming, "_PAUSES", ())
    with psycopg.connect(owner_url) as writer:
        [memory_id] = [row[0] for row in writer.execute("SELECT min(id) FROM memories WHERE kind = 'note'")]
        await rename(client, "old", "new")
        writer.execute("UPDATE memories SET project = 'old' WHERE id = %s", (memory_id,))
        writer.commit()
    assert places(owner_url) == {"old", "new"}
    assert await move_all_late_rows(parts) == 1
    assert places(owner_url) == {"new"}
    assert await move_all_late_rows(parts) == 0


async def test_renaming_races_writers_without_losing_one(client: httpx2.AsyncClient, owner_url: str) -> None:
    await fill(client, "old", "mango")

    async def write(number: int) -> None:
        await remember(client, f"Note number {number}.", "old")
        session = await opened(client, f"racing-{number}", project="old")
        await said(client, session, f"We decided that boat {number} is painted blue.")

    results = await asyncio.gather(*(write(number) for number in range(12)), rename(client, "old", "new"))
    assert results[-1].status_code == 200  # type: ignore[union-attr]
    assert places(owner_url) == {"new"}
    notes = (await client.get("/v1/memories", params={"project": "new", "limit": 1000, "kind": "note"})).json()
    assert sum(row["content"].startswith("Note number") for row in notes["memories"]) == 12


async def test_what_was_forgotten_in_a_project_stays_forgotten_under_its_new_name(client: httpx2.AsyncClient) -> None:
    async def decide(external_id: str) -> list[str]:
        session = await opened(client, external_id, project="old")
        fact = "We decided that the mango boat is painted blue."
        message = {"external_id": external_id, "role": "user", "content": fact, "sent_at": "2026-01-02T10:00:00Z"}
        await said(client, session, message)
        return (await observed(client, session))["memory_ids"]

    assert len(await decide("s1")) == 1
    await client.post("/v1/forget", json={"source": "user", "project": "old", "messages": False})
    await remember(client, "Something else.", "old")
    await rename(client, "old", "new")
    assert await decide("s2") == []


async def test_the_verbs_show_the_effect_first_and_delete_with_proof(client: httpx2.AsyncClient) -> None:
    session = await fill(client, "old", "mango")
    there = {"ESKER_URL": str(client.base_url).rstrip("/")}

    async def run(*arguments: str) -> Any:
        return await asyncio.to_thread(esker, *arguments, **there)

    shown = await run("project", "rename", "old", "new", "--dry-run")
    assert (shown.returncode, "old → new: 1 session" in shown.stdout) == (0, True)
    assert (await run("project", "rename", "old", "new", "--json")).returncode == 2, "it cannot ask"
    assert "old is new now." in (await run("project", "rename", "old", "new", "--yes")).stdout
    assert "new" in (await run("project", "list")).stdout
    shown = await run("session", "delete", session, "--dry-run")
    assert "mango" in shown.stdout
    gone = await run("session", "delete", session, "--yes")
    assert (gone.returncode, "is left" in gone.stdout) == (0, True)
    assert "mango" not in str((await client.get(f"/v1/sessions/{session}/messages")).json())
    gone = await run("project", "delete", "new", "--yes", "--json")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    assert (await recalled(client, "mango"))["hits"] == []


async def test_requests_that_name_a_project_as_before_mean_it(
    client: httpx2.AsyncClient, owner_url: str, parts: Parts
) -> None:
    session = await fill(client, "old", "mango")
    await said(client, session, "We chose Postgres for the billing service.")
    await observed(client, session)
    await rename(client, "old", "zebra")
    hidden = (await client.post("/v1/quarantines", json={"project": "old"})).json()
    assert hidden["memories"] > 0
    await client.delete(f"/v1/quarantines/{hidden['id']}")
    condensed = (await client.post("/v1/reflect", json={"project": "old", "min_age_days": 0, "dry_run": True})).json()
    assert [batch["project"] for batch in condensed["batches"]] == ["zebra"]
    refused = await client.post("/v1/forget", json={"project": "old"})
    assert (refused.status_code, "zebra" in refused.json()["detail"]) == (404, True), (
        "after a merge it would be too much"
    )
    key = await create_key(parts, name="laptop", pool="default", project="old")
    assert key.project == "zebra"
    assert places(owner_url) == {"zebra"}
