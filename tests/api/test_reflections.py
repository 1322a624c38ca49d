"""Reflections of the pool and of sessions through the public API: condensing, diffs and undo."""

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.core.budgets import REFLECTION_TOKENS
from esker.server.core.facts.records import Draft, Reflected, ReflectionTask
from esker.server.core.ids import memory_ids_in
from esker.server.core.records import Lease, Principal
from esker.server.db.database import Database
from esker.server.providers.roles import Meter
from esker.server.store import jobs
from esker.server.usecases import run_job as running
from esker.server.usecases.authenticate import create_key, create_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe_leased
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect_pool import (
    PoolReflection,
    plan_pool_reflection,
    reflect_pool,
    reflect_pool_leased,
)
from esker.server.usecases.reflections import list_reflections
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.run_job import claim_job, run_job
from tests.support.api import contents, observed, recalled, said, until
from tests.support.clock import FakeClock
from tests.support.model_server import ModelServer, ScriptedAnswer
from tests.support.reflecting import fact, kept, live, pool_reflected, row, scripted, session_reflected, stored

WEATHER = "The agent explained at great length how the weather comes about, and that it rains a lot in the west."
COFFEE = "The coffee machine of the office was out of order for a whole week in the summer, and nobody mended it."
TRAIN = "The train to the coast was so full that everybody had to stand in the corridor for the whole way there."
GARDEN = "The garden behind the house has an old apple tree that carries far more fruit than anyone could eat."
RULE = fact("Never use floats for money.", priority="high", category="preference")
SHORT = "Weather and coffee were talked about."


@pytest.fixture
def client(scripted_client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """A client of a server with the scripted model."""
    return scripted_client


def ago(**duration: float) -> str:
    """Return a time before now."""
    return (datetime.now(UTC) - timedelta(**duration)).isoformat()


async def noted(client: httpx2.AsyncClient, content: str, **more: Any) -> str:
    """Write a memory and return its id."""
    answer = await client.post("/v1/memories", json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


async def planned(client: httpx2.AsyncClient, **asked: Any) -> dict[str, Any]:
    """Return the plan of a reflection of the pool."""
    answer = await client.post("/v1/reflect", json={**asked, "dry_run": True})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def listed(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """Return all reflections, newest first."""
    return (await client.get("/v1/reflections")).json()["reflections"]


async def undone(client: httpx2.AsyncClient, reflection: str) -> httpx2.Response:
    """Undo a reflection and return the response."""
    return await client.post(f"/v1/reflections/{reflection}/undo")


def held(*rows: dict[str, Any], insights: Any = ()) -> tuple[ScriptedAnswer, asyncio.Event]:
    """Return a reflector's answer that is sent when the event is set."""
    release = asyncio.Event()
    return ScriptedAnswer(json.dumps({"rows": rows, "insights": list(insights)}), wait_for=release), release


# The rows of a reflection of the pool -------------------------------------------------------------------------------


async def test_only_rows_that_are_old_enough_are_read_and_a_dry_run_changes_nothing(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    session, _ = await kept(client, model, WEATHER, COFFEE)
    await kept(client, model, TRAIN, GARDEN, session="s2", days_ago=1)
    await noted(client, "A note that is old.", said_at=ago(days=9))
    await noted(client, "A note of yesterday.", said_at=ago(days=1))
    await noted(client, "What a person pinned.", kind="manual", said_at=ago(days=9), session_id=session)
    before = stored(owner_url)
    model.asked.clear()
    assert (await planned(client))["rows"] == 3
    assert (await planned(client, min_age_days=0))["rows"] == 5, "a note is never condensed before three days"
    assert (await planned(client, min_age_days=9.5))["rows"] == 2
    assert (await planned(client, min_age_days=30)) == {"dry_run": True, "rows": 0, "tokens": 0, "batches": []}
    assert (model.asked, await listed(client)) == ([], [])
    assert stored(owner_url) == before


async def test_rows_condensed_by_the_pool_are_never_condensed_again(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    _, ids = await kept(client, model, WEATHER, COFFEE, TRAIN)
    model.say({"rows": [row(SHORT, *ids[:2]), row("The train was full.", ids[2])]})
    report = await pool_reflected(client)
    assert (report["memories"], report["superseded"], len(model.asked)) == (2, 3, 1)
    before = stored(owner_url)
    assert (await planned(client, min_age_days=0))["rows"] == 0
    again = await pool_reflected(client, min_age_days=0)
    assert (again["memories"], again["superseded"], again["reflection_ids"]) == (0, 0, [])
    assert (len(model.asked), len(await listed(client))) == (1, 1)
    assert stored(owner_url) == before


async def test_a_rejected_batch_is_not_retried_until_rows_are_added(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    _, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(WEATHER, ids[0]), row(COFFEE, ids[1])]})
    assert (await pool_reflected(client))["rejected"]
    asked = len(model.asked)
    assert asked == 4
    assert (await pool_reflected(client))["rejected"] is None
    assert len(model.asked) == asked
    _, more = await kept(client, model, TRAIN, session="s2")
    model.say({"rows": [row(SHORT, *ids, *more)]})
    assert (await pool_reflected(client))["memories"] == 1


async def test_batches_have_one_project_are_oldest_first_and_within_the_trigger(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    async def written(project: str | None, *tokens: int) -> None:
        for place, cost in enumerate(tokens):
            text = f"A note of {project} about the matter {place}."
            found = await noted(client, text, project=project, said_at=ago(days=20 - place))
            with psycopg.connect(owner_url, autocommit=True) as connection:
                connection.execute("UPDATE memories SET tokens = %s WHERE id = %s", [cost, found])

    await written("a", 30_000, 30_000, 5_000, 1, 70_000, 10, 20)
    await written("b", 64_000)
    await written(None, 7, 8)
    shown = (await planned(client))["batches"]
    assert [(batch["project"], batch["rows"], batch["tokens"]) for batch in shown] == [
        ("a", 2, 60_000),  # the third does not fit because of the tokens of its id and date
        ("a", 2, 5_001),
        ("a", 1, 70_000),
        ("a", 2, 30),
        (None, 2, 15),
    ]
    assert [batch["first_said_at"] for batch in shown[:4]] == sorted(batch["first_said_at"] for batch in shown[:4])
    [only] = (await planned(client, project="b", min_age_days=25))["batches"] or [None]
    assert only is None


async def test_the_report_counts_all_projects(client: httpx2.AsyncClient, model: ModelServer) -> None:
    texts, projects = ("The anchor of the ship is blue.", "The mast of the ship is blue."), range(110)
    rows = [{"content": text, "project": f"p{n}", "said_at": ago(days=9)} for n in projects for text in texts]
    written = await client.post("/v1/memories/batch", json={"memories": rows})
    assert written.status_code == 201, written.text

    def answer(_: dict[str, Any]) -> ScriptedAnswer:
        shown = [line.split()[0] for line in model.prompt().splitlines() if line.startswith("mem_")]
        return ScriptedAnswer(json.dumps({"rows": [row("All of it is blue.", *shown)]}))

    model.say(answer)
    report = await pool_reflected(client)
    assert (report["memories"], report["superseded"], len(report["reflection_ids"])) == (110, 220, 110)


async def test_later_batches_of_a_session_run_even_if_earlier_ones_are_rejected(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    def made_large(*ids: str) -> None:
        with psycopg.connect(owner_url, autocommit=True) as connection:
            connection.execute("UPDATE memories SET tokens = 64_990 WHERE id = ANY(%s)", [list(ids)])

    session, [old] = await kept(client, model, RULE)
    made_large(old)  # a batch of its own
    model.say({"rows": [row(RULE["text"], old, priority="high", category="preference")]})
    [reflected] = (await session_reflected(client, session))["reflection_ids"]
    [[output]] = [one["output_ids"] for one in await listed(client) if one["id"] == reflected]
    made_large(output)
    # Reflected rows fill the first batch; the candidates for the second are all rejected.
    _, [stubborn] = await kept(client, model, WEATHER)
    made_large(stubborn)
    _, later = await kept(client, model, COFFEE, TRAIN)

    def answer(_: dict[str, Any]) -> ScriptedAnswer:
        if stubborn in model.prompt():
            return ScriptedAnswer(json.dumps({"rows": [row("Rain.", stubborn)]}))
        return ScriptedAnswer(
            json.dumps({"rows": [row("The train was full and the coffee machine out of order.", *later)]})
        )

    model.say(answer)
    report = await session_reflected(client, session)
    assert (report["memories"], report["superseded"]) == (1, 2)
    assert report["rejected"]
    assert {output, stubborn} < (await live(client)).keys()
    assert not {*later} & (await live(client)).keys()
    assert output not in "".join(model.prompt(place) for place in range(len(model.asked)))


async def test_a_project_is_reflected_alone_within_the_requested_tokens(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    _, ids = await kept(client, model, *(f"{WEATHER} It was day {word}." for word in WORDS), project="a")
    _, others = await kept(client, model, COFFEE, TRAIN, session="s2", project="b")
    long = " ".join(f"It rained on day {word}." for word in WORDS)
    model.say(
        {"rows": [row(f"{long} {long}", *ids)]},
        {"rows": [row("The agent said at length that it rains a lot, day after day.", *ids)]},
    )
    report = await pool_reflected(client, project="a", target_tokens=100)
    assert (report["memories"], len(model.asked)) == (1, 2)
    assert "at most 100 tokens" in model.prompt(0)
    assert "the limit is 100" in model.prompt(1)
    assert {*others} <= (await live(client)).keys()
    [made] = [one for one in (await live(client)).values() if one["kind"] == "reflection"]
    assert (made["project"], made["session_id"], made["author"]) == ("a", None, "claude-sonnet-5-5")


WORDS = "anchor basket candle dragon engine forest harbour island jacket kettle ladder magnet".split()


# Candidates --------------------------------------------------------------------------------------------------------


async def test_guidance_grows_with_each_candidate_and_the_first_valid_one_is_taken(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    echo = {"rows": [row(WEATHER, ids[0]), row(COFFEE, ids[1])]}
    model.say(echo, echo, echo, {"rows": [row(SHORT, *ids)]}, {"rows": [row("Never asked for.", *ids)]})
    await session_reflected(client, session)
    assert len(model.asked) == 4
    guidance = ["Write at most", "somewhat harder", "much harder", "last attempt"]
    for place, words in enumerate(guidance):
        assert [other in model.prompt(place) for other in guidance] == [other == words for other in guidance]
        assert (place == 0) or "what it would replace has" in model.prompt(place)
    [made] = await listed(client)
    assert (made["level"], made["state"], made["input_tokens"], made["output_tokens"]) == (3, "committed", 428, 80)
    assert [one["content"] for one in (await live(client)).values()] == [SHORT]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (
            lambda ids: row("The train was full. " * 20 + " ".join(f"word{n}" for n in range(600)), ids[2]),
            "at most 600",
        ),
        (lambda ids: row("The train had 47 wagons.", ids[2]), "'47' of"),
        (lambda ids: row("The train was full.", ids[2], "mem_unknown"), "'mem_unknown' was not shown"),
    ],
    ids=["over 600 tokens", "ungrounded", "unknown id"],
)
async def test_a_bad_row_is_sent_back_once_and_then_its_sources_stay_unchanged(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str, bad: Any, complaint: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN)
    before = stored(owner_url)[ids[2]]
    model.say({"rows": [row(SHORT, *ids[:2]), bad(ids)]})
    report = await session_reflected(client, session)
    assert len(model.asked) == 2
    assert complaint in model.prompt(1)
    assert (report["memories"], report["superseded"], report["left_out"]) == (1, 2, 0)
    assert stored(owner_url)[ids[2]] == before
    assert sorted(one["content"] for one in (await live(client)).values()) == sorted([SHORT, TRAIN])


async def test_a_row_that_is_corrected_after_it_was_sent_back_is_used(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN)
    model.say(
        {"rows": [row(SHORT, *ids[:2]), row("The train had 47 wagons.", ids[2])]},
        {"rows": [row(SHORT, *ids[:2]), row("The train was full.", ids[2])]},
    )
    assert (await session_reflected(client, session))["memories"] == 2
    assert len(model.asked) == 2


async def test_an_open_point_never_becomes_an_outcome(client: httpx2.AsyncClient, model: ModelServer) -> None:
    later = "Migrate the invoices table; this was put off until the release."
    open_point = fact(later, category="next_step", priority="medium")
    session, ids = await kept(client, model, WEATHER, open_point, COFFEE)
    done = row(f"The weather and the coffee machine were discussed. {later}", *ids, category="outcome")
    model.say({"rows": [done]})
    await session_reflected(client, session)
    by_category = {one["category"]: one for one in (await live(client)).values()}
    assert (by_category["next_step"]["content"], by_category["next_step"]["source_ids"]) == (later, [ids[1]])
    assert by_category["outcome"]["source_ids"] == [ids[0], ids[2]]


async def test_an_insight_belongs_to_the_pool_and_is_forgotten_with_its_source(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN, project="shop")
    insight = {"facet": "knowledge", "text": "It rains a lot in the west.", "priority": "medium"}
    model.say({"rows": [row(SHORT, *ids)], "insights": [insight | {"source_ids": [ids[0]]}]})
    report = await session_reflected(client, session)
    assert (report["memories"], report["superseded"]) == (2, 3)
    [found] = [one for one in (await live(client)).values() if one["facet"]]
    assert (found["content"], found["facet"], found["session_id"]) == (insight["text"], "knowledge", None)
    assert (found["project"], found["source_ids"]) == ("shop", [ids[0]])
    [made] = [one for one in (await live(client)).values() if not one["facet"]]
    assert (await client.get(f"/v1/memories/{ids[0]}")).json()["superseded_by"] == made["id"], (
        "an insight supersedes nothing"
    )
    assert insight["text"] in contents(await recalled(client, "rains in the west", project="shop"))
    assert (await planned(client, min_age_days=0))["rows"] == 0, (
        "the session has a single row; an insight does not count"
    )
    await client.delete(f"/v1/memories/{ids[0]}")
    assert found["id"] not in stored(owner_url)
    assert {*await live(client)} == {ids[1], ids[2]}


# Changes meanwhile -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["session", "pool"])
async def test_rows_used_or_added_during_a_reflection_count(
    client: httpx2.AsyncClient, model: ModelServer, scope: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, project="shop")
    answer, release = held(row(SHORT, *ids))
    path = f"/v1/sessions/{session}/reflect" if scope == "session" else "/v1/reflect"
    again, new = fact(WEATHER, sources=[3]), fact(TRAIN, sources=[4])
    model.say(answer, {"facts": [again, new]})
    waiting = asyncio.create_task(client.post(f"{path}?wait=true"))
    await model.arrived.wait()
    now = datetime.now(UTC).isoformat()
    texts = [{"external_id": text, "role": "user", "content": text, "sent_at": now} for text in (WEATHER, TRAIN)]
    await said(client, session, *texts)
    report = await observed(client, session)
    assert (report["memories"], report["merged"]) == (1, 1)
    release.set()
    assert (await waiting).json()["memories"] == 1
    found = {one["content"]: one for one in (await live(client)).values()}
    assert {*found} == {SHORT, TRAIN}
    assert found[TRAIN]["id"] == report["memory_ids"][0]
    assert datetime.fromisoformat(found[SHORT]["last_used_at"]) == datetime.fromisoformat(now)


async def test_only_the_reflected_sessions_pack_is_frozen_again(client: httpx2.AsyncClient, model: ModelServer) -> None:
    async def pack(of: str) -> dict[str, Any]:
        return (await client.get(f"/v1/sessions/{of}/pack")).json()

    session, ids = await kept(client, model, WEATHER, COFFEE)
    other, more = await kept(client, model, TRAIN, GARDEN, session="s2")
    own, others = await pack(session), await pack(other)
    assert WEATHER in others["text"], "observations of other sessions are in a pack"
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    after = await pack(session)
    assert (after["reason"], after["version"], SHORT in after["text"]) == ("reflection", own["version"] + 1, True)
    assert WEATHER not in after["text"]
    assert await pack(other) == others
    model.say({"rows": [row("Trains and gardens, weather and coffee.", *more, *(await live(client)).keys() - {*more})]})
    assert (await pool_reflected(client))["memories"] == 1
    assert (await pack(session), await pack(other)) == (after, others)


# Diffs and undo ----------------------------------------------------------------------------------------------------


async def test_a_diff_shows_condensed_dropped_and_kept_rows_and_insights(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN, GARDEN)
    insight = {"facet": "skill", "text": "An old apple tree carries fruit.", "source_ids": [ids[3]]}
    ungrounded = row("The train had 47 wagons.", ids[2])
    model.say({"rows": [row(SHORT, *ids[:2]), ungrounded], "insights": [insight]})
    report = await session_reflected(client, session)
    [reflection] = report["reflection_ids"]
    diff = (await client.get(f"/v1/reflections/{reflection}/diff")).json()
    changes = {
        change["change"]: ([one["id"] for one in change["before"]], change["after"] and change["after"]["content"])
        for change in diff["changes"]
    }
    assert changes == {
        "became": (ids[:2], SHORT),
        "insight": ([ids[3]], insight["text"]),
        "kept": ([ids[2]], None),
        "dropped": ([ids[3]], None),
    }
    shown = (await client.get(f"/v1/reflections/{reflection}")).json()
    assert diff["reflection"] == shown
    assert (shown["input_ids"], shown["dropped_ids"], shown["scope"]) == (ids, [ids[3]], "session")
    assert (report["superseded"], report["left_out"], report["memories"]) == (3, 1, 2)


@pytest.mark.parametrize("scope", ["session", "pool"])
async def test_undo_restores_exactly_the_rows_that_were_live(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str, scope: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, RULE, TRAIN)
    before, shown = stored(owner_url), await live(client)
    insight = {"facet": "knowledge", "text": "It rains a lot in the west.", "source_ids": [ids[0]]}
    model.say({"rows": [row(SHORT, *ids[:2])], "insights": [insight]})
    report = await (session_reflected(client, session) if scope == "session" else pool_reflected(client))
    assert report["left_out"] == 1
    [reflection] = report["reflection_ids"]
    answer = await undone(client, reflection)
    assert answer.json() == {"id": reflection, "restored": 4, "taken_back": 3}
    after = stored(owner_url)
    # The only difference: rows of an undone reflection of the pool are not condensed again.
    assert {i: after[i] for i in before} == {i: {**before[i], "left_alone": scope == "pool"} for i in before}
    assert await live(client) == shown
    assert SHORT not in contents(await recalled(client, "weather and coffee talked about", include_superseded=False))
    assert (await client.get(f"/v1/reflections/{reflection}")).json()["state"] == "undone"
    assert (await undone(client, reflection)).status_code == 409
    assert await live(client) == shown


async def test_undo_keeps_the_last_use_since_the_reflection(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("UPDATE memories SET last_used_at = now() WHERE reflection_id = %s", [reflection])
    [made] = (await live(client)).values()
    await undone(client, reflection)
    assert {one["last_used_at"] for one in (await live(client)).values()} == {made["last_used_at"]}


async def test_a_later_reflection_must_be_undone_before_the_one_it_depends_on(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    shown = await live(client)
    model.say({"rows": [row(SHORT, *ids)]})
    [first] = (await session_reflected(client, session))["reflection_ids"]
    [made] = await live(client)
    _, more = await kept(client, model, TRAIN, session="s2")
    model.say({"rows": [row("Weather, coffee, trains.", made, *more)]})
    [second] = (await pool_reflected(client))["reflection_ids"]
    refused = await undone(client, first)
    assert (refused.status_code, second in refused.json()["detail"]) == (409, True)
    assert (await undone(client, second)).status_code == 200
    assert (await undone(client, first)).status_code == 200
    assert {i: one for i, one in (await live(client)).items() if i in shown} == shown
    assert {*await live(client)} == {*ids, *more}


async def test_a_rejected_or_unknown_reflection_cannot_be_undone(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(WEATHER, ids[0]), row(COFFEE, ids[1])]})
    await session_reflected(client, session)
    [rejected] = await listed(client)
    before = stored(owner_url)
    answer = await undone(client, rejected["id"])
    assert (answer.status_code, "rejected" in answer.json()["detail"]) == (409, True)
    assert (await undone(client, "ref_nowhere")).status_code == 404
    assert stored(owner_url) == before


async def test_undo_does_not_restore_rows_superseded_since(client: httpx2.AsyncClient, model: ModelServer) -> None:
    session, ids = await kept(client, model, "Deploys of the shop go to Render.", COFFEE, project="shop")
    model.say({"rows": [row("Deploys go to Render.", ids[0]), row("The coffee machine was broken.", ids[1])]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    [made] = [i for i, one in (await live(client)).items() if "Render" in one["content"]]
    now = fact("Deploys of the shop go to Hetzner now.", replaces=made)
    _, [new] = await kept(client, model, now, days_ago=0.1, project="shop")
    assert (await client.get(f"/v1/memories/{made}")).json()["superseded_by"] == new
    assert (await undone(client, reflection)).status_code == 200
    assert {*await live(client)} == {ids[1], new}
    old = (await client.get(f"/v1/memories/{ids[0]}")).json()
    assert old["superseded_by"] == new


@pytest.mark.parametrize("how", ["undone", "forgotten"])
@pytest.mark.parametrize("dropped", [False, True], ids=["stood for", "left out"])
async def test_undo_does_not_duplicate_a_note_that_was_written_again(
    client: httpx2.AsyncClient, model: ModelServer, how: str, dropped: bool
) -> None:
    notes = [await noted(client, text, said_at=ago(days=9)) for text in (WEATHER, COFFEE, TRAIN)]
    model.say({"rows": [row(SHORT, *(notes[1:] if dropped else notes))]})
    [reflection] = (await pool_reflected(client))["reflection_ids"]
    again = await noted(client, WEATHER)
    assert again not in notes
    if how == "undone":
        assert (await undone(client, reflection)).status_code == 200
        assert {*await live(client)} == {again, *notes[1:]}
    else:
        assert (await client.delete(f"/v1/memories/{notes[1]}")).status_code == 200
        assert {*await live(client)} == {again, notes[2]}
    if how == "undone" or not dropped:
        assert (await client.get(f"/v1/memories/{notes[0]}")).json()["superseded_by"] == again


async def test_forgotten_rows_never_return_by_reflecting_or_undoing(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN, GARDEN)
    model.say({"rows": [row(SHORT, *ids[:2]), row("The train was full.", ids[2])]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    await client.delete(f"/v1/memories/{ids[0]}")
    await client.delete(f"/v1/memories/{ids[3]}")
    shown = (await client.get(f"/v1/reflections/{reflection}")).json()
    assert (shown["input_ids"], len(shown["output_ids"]), shown["dropped_ids"]) == (ids[1:3], 1, [])
    assert (await undone(client, reflection)).status_code == 200
    assert {*await live(client)} == {ids[1], ids[2]}
    model.say({"rows": [row("A broken machine and a full train.", *ids[1:])]})
    await pool_reflected(client)
    await session_reflected(client, session)
    assert all(ids[0] not in model.prompt(asked) for asked in range(1, len(model.asked)))
    with psycopg.connect(owner_url) as connection:
        [count] = connection.execute(
            "SELECT count(*) FROM memories WHERE content ~ 'weather|Weather' OR %s = ANY (source_ids)", [ids[0]]
        ).fetchone() or [None]
    assert count == 0


async def test_a_reflection_of_another_pool_is_not_found(database_url: str, parts: Parts, pool_id: str) -> None:
    async with scripted(database_url) as (client, model):
        session, ids = await kept(client, model, WEATHER, COFFEE)
        model.say({"rows": [row(SHORT, *ids)]})
        [reflection] = (await session_reflected(client, session))["reflection_ids"]
        shown = await live(client)
        await create_pool(parts, "strangers")
        [mine, theirs] = [
            {"Authorization": f"Bearer {(await create_key(parts, name=pool, pool=pool, scopes=['read', 'write'])).key}"}
            for pool in ("default", "strangers")
        ]
        for method, path in (("GET", ""), ("GET", "/diff"), ("POST", "/undo")):
            answer = await client.request(method, f"/v1/reflections/{reflection}{path}", headers=theirs)
            assert answer.status_code == 404, path
        assert (await client.get("/v1/reflections", headers=theirs)).json()["reflections"] == []
        client.headers.update(mine)
        assert await live(client) == shown


# Races -------------------------------------------------------------------------------------------------------------


async def test_undoing_during_a_reflection_of_the_session_loses_nothing(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    [first] = (await session_reflected(client, session))["reflection_ids"]
    [made] = await live(client)
    _, [train] = await kept(client, model, TRAIN, days_ago=5)
    answer, release = held(row("All of it was talked about.", made, train))
    model.say(answer)
    waiting = asyncio.create_task(client.post(f"/v1/sessions/{session}/reflect?wait=true"))
    await model.arrived.wait()
    assert (await undone(client, first)).status_code == 200
    release.set()
    assert (await waiting).status_code == 409
    assert {*await live(client)} == {*ids, train}


async def test_concurrent_reflections_of_the_pool_condense_once(client: httpx2.AsyncClient, model: ModelServer) -> None:
    _, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    await asyncio.gather(*(pool_reflected(client) for _ in range(4)))
    [made] = await listed(client)
    assert (made["state"], len(model.asked)) == ("committed", 1)
    assert [one["content"] for one in (await live(client)).values()] == [SHORT]


@pytest.mark.parametrize("first", ["session", "pool"])
async def test_the_pool_and_a_session_never_condense_the_same_row_twice(
    client: httpx2.AsyncClient, model: ModelServer, first: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    answers = {name: held(row(f"Weather and coffee, says the {name}.", *ids)) for name in ("session", "pool")}
    paths = {"session": f"/v1/sessions/{session}/reflect", "pool": "/v1/reflect"}
    waiting: dict[str, asyncio.Task[httpx2.Response]] = {}
    for name, (answer, _) in answers.items():
        model.arrived.clear()
        model.say(answer)
        waiting[name] = asyncio.create_task(client.post(f"{paths[name]}?wait=true"))
        await model.arrived.wait()
    second = "pool" if first == "session" else "session"
    answers[first][1].set()
    assert (await waiting[first]).json()["memories"] == 1
    answers[second][1].set()
    late = await waiting[second]
    assert late.status_code == (409 if second == "session" else 200)
    assert [one["content"] for one in (await live(client)).values()] == [f"Weather and coffee, says the {first}."]
    assert len([one for one in await listed(client) if one["state"] == "committed"]) == 1


async def test_rows_forgotten_during_a_reflection_of_the_pool_never_return(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    _, ids = await kept(client, model, WEATHER, COFFEE)
    answer, release = held(row(SHORT, *ids))
    model.say(answer)
    waiting = asyncio.create_task(client.post("/v1/reflect?wait=true"))
    await model.arrived.wait()
    assert (await client.delete(f"/v1/memories/{ids[0]}")).status_code == 200
    release.set()
    report = (await waiting).json()
    assert (report["memories"], report["superseded"]) == (0, 0)
    assert {*await live(client)} == {ids[1]}


async def test_concurrent_undo_forget_reflect_and_observe_leave_every_fact_once(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    names = ["a", "b", "c"]
    sessions = {name: await kept(client, model, WEATHER, COFFEE, TRAIN, session=name, project=name) for name in names}

    def answer(asked: dict[str, Any]) -> ScriptedAnswer:
        shown = [word for word in model.prompt().split() if word.startswith("mem_")]
        written = [row("Small talk.", *dict.fromkeys(shown))] if asked["model"].startswith("claude-sonnet") else []
        return ScriptedAnswer(json.dumps({"rows": written, "facts": []}))

    for _ in range(3):
        model.say(answer)
        reflections = [one["id"] for one in await listed(client)]
        answers = await asyncio.gather(
            client.post("/v1/reflect?wait=true", json={"min_age_days": 0}),
            *(client.post(f"/v1/sessions/{session}/reflect?wait=true") for session, _ in sessions.values()),
            *(undone(client, reflection) for reflection in reflections),
            *(client.delete(f"/v1/memories/{ids[0]}?echoes=false") for _, ids in list(sessions.values())[:1]),
        )
        assert {found.status_code for found in answers} <= {200, 404, 409}
    for session, ids in sessions.values():
        for i in ids:
            shown = await client.get(f"/v1/memories/{i}")
            if shown.status_code == 404:
                assert ids is sessions["a"][1]
                continue
            by = shown.json()["superseded_by"]
            while by and by.startswith("mem_"):
                by = (await client.get(f"/v1/memories/{by}")).json()["superseded_by"]
            assert by is None, f"{i} of {session} leads to a live row"


# The daily run -----------------------------------------------------------------------------------------------------


async def at_work(parts: Parts, pool_id: str) -> Lease | None:
    """Run the pool's reflection if it is due, and return its lease."""
    lease = await claim_job(parts, pool_id, ["reflect_pool"])
    if lease:
        await run_job(parts, lease, reflect_pool_leased)
    return lease


async def spoken(parts: Parts, pool_id: str, *texts: str) -> None:
    """Add a message to a session now, and observe it."""
    session = await open_session(parts, pool_id, SessionRequest("api", "s1"))
    messages = [IncomingMessage(text, "user", text, parts.clock()) for text in texts]
    await ingest(parts, pool_id, session.id, messages)
    async with parts.database.tenant(pool_id) as connection:
        await jobs.request(connection, "observe", session.id, parts.clock(), up_to_seq=1_000)
    lease = await claim_job(parts, pool_id, ["observe"])
    assert lease
    await run_job(parts, lease, observe_leased)


class JoiningReflector:
    """Writes one row for all rows that it is given."""

    name = "joining"

    async def batch_tokens(self) -> int:
        """Return the usual size."""
        return REFLECTION_TOKENS

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return one row that cites every row of the task."""
        told = "; ".join(row.content[: len(row.content) // 3].rsplit(",", 1)[0] for row in task.rows)
        return Reflected((Draft(told, "medium", "fact", tuple(row.id for row in task.rows)),))

    async def close(self) -> None:
        """Close nothing."""


def shelves() -> list[Note]:
    """Return notes of more than 1,000 tokens altogether."""
    return [Note(f"Shelf {word} has {', '.join(f'{word} jar {n}' for n in range(40))}.") for word in WORDS]


async def test_rows_below_1000_tokens_are_not_reflected_daily_but_on_request(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    parts = replace(parts, reflector=JoiningReflector())
    await remember(parts, who, shelves()[:2])
    clock.advance(days=4)
    assert await at_work(parts, who.pool_id)
    assert await list_reflections(parts, who.pool_id) == []
    await reflect_pool(parts, who.pool_id, PoolReflection(), wait=False)
    assert await at_work(parts, who.pool_id)
    [made] = await list_reflections(parts, who.pool_id)
    assert (made.state, 0 < made.tokens_before < 1_000) == ("committed", True)


async def test_the_pool_is_reflected_daily_with_rows_of_at_least_three_days(
    parts: Parts, who: Principal, clock: FakeClock
) -> None:
    parts, pool_id = replace(parts, reflector=JoiningReflector()), who.pool_id
    await remember(parts, who, shelves())
    assert await at_work(parts, pool_id) is None
    for day in (1, 2):
        clock.advance(hours=23)
        assert await at_work(parts, pool_id) is None, day
        clock.advance(hours=1)
        assert await at_work(parts, pool_id), day
        assert await list_reflections(parts, pool_id) == []
    clock.advance(hours=24.1)
    assert await plan_pool_reflection(parts, pool_id, PoolReflection())
    assert await at_work(parts, pool_id)
    [made] = await list_reflections(parts, pool_id)
    assert (made.scope, made.state, made.tokens_before >= 1_000) == ("pool", "committed", True)
    clock.advance(hours=24.1)
    await at_work(parts, pool_id)
    assert await list_reflections(parts, pool_id) == [made]


async def test_a_pool_with_only_notes_is_reflected_daily(parts: Parts, who: Principal, clock: FakeClock) -> None:
    await remember(parts, who, [Note(WEATHER), Note(COFFEE)])
    assert await at_work(parts, who.pool_id) is None
    clock.advance(days=1)
    assert await at_work(parts, who.pool_id)
    clock.advance(days=1)
    assert await at_work(parts, who.pool_id), "the notes will be old enough later"


async def test_a_dead_daily_reflection_is_retried_when_rows_are_added(
    parts: Parts, database: Database, pool_id: str, clock: FakeClock
) -> None:
    await spoken(parts, pool_id, "Please fix the login.")
    async with database.tenant(pool_id) as connection:
        await connection.execute(
            "UPDATE jobs SET state = 'dead', last_error = 'x', error_kind = 'ModelFailed' WHERE kind = 'reflect_pool'"
        )
    clock.advance(days=4)
    assert await at_work(parts, pool_id) is None
    await spoken(parts, pool_id, "Never use floats for money.")
    clock.advance(days=1)
    assert await at_work(parts, pool_id)


async def test_after_an_undo_a_session_is_not_reflected_until_enough_is_new(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    stories = [f"{WEATHER} {COFFEE} {TRAIN} It was told by {word}." for word in WORDS]
    session, ids = await kept(client, model, *stories, effective_context=2_000)

    async def shown() -> dict[str, Any]:
        """Return the session when it has no job."""
        return await until(client, f"/v1/sessions/{session}", lambda found: not found["jobs"])

    async def calls_after(*texts: str) -> int:
        """Return how often the reflector was called after these were observed."""
        seq = (await shown())["messages"]
        model.asked.clear()
        model.say({"facts": [fact(text, sources=[seq + place]) for place, text in enumerate(texts, start=1)]})
        await said(client, session, *texts)
        await observed(client, session)
        await shown()
        return len([asked for asked in model.asked if asked["model"] == "claude-sonnet-5-5"])

    await shown()
    model.say({"rows": [row(f"{WEATHER} {COFFEE}", *ids)]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    assert (await undone(client, reflection)).status_code == 200
    assert sum(one["tokens"] for one in (await live(client)).values()) > 650, "more than the trigger"
    assert await calls_after("The footer is cut off.") == 0
    assert await calls_after(*(f"{GARDEN} {story}" for story in stories[:2])) > 0


# Forgetting and undo -----------------------------------------------------------------------------------------------


async def test_forgetting_a_row_also_forgets_undone_reflections_of_it(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    await undone(client, reflection)
    await client.delete(f"/v1/memories/{ids[0]}")
    assert {*stored(owner_url)} == {ids[1]}


async def test_a_tag_with_the_name_of_a_facet_makes_no_insight(client: httpx2.AsyncClient, model: ModelServer) -> None:
    ids = [await noted(client, text, tags=["event"], said_at=ago(days=9)) for text in (WEATHER, COFFEE)]
    model.say({"rows": [row(SHORT, *ids)]})
    report = await pool_reflected(client)
    assert (report["memories"], report["superseded"]) == (1, 2)
    diff = (await client.get(f"/v1/reflections/{report['reflection_ids'][0]}/diff")).json()
    assert [change["change"] for change in diff["changes"]] == ["became"]


async def test_undo_keeps_a_reflections_row_that_was_said_again_since(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    [reflection] = (await session_reflected(client, session))["reflection_ids"]
    await said(client, session, SHORT)
    model.say({"facts": [fact(SHORT, sources=[3])]})
    assert (await observed(client, session))["merged"] == 1
    answer = (await undone(client, reflection)).json()
    assert (answer["restored"], answer["taken_back"]) == (2, 0)
    assert {one["content"] for one in (await live(client)).values()} == {WEATHER, COFFEE, SHORT}


async def test_two_waiting_requests_both_run_and_the_daily_run_keeps_its_time(
    client: httpx2.AsyncClient, model: ModelServer, owner_url: str
) -> None:
    for project in ("a", "b"):
        for text in (WEATHER, COFFEE):
            await noted(client, f"{text} In {project}.", project=project, said_at=ago(days=9))
    daily = "SELECT run_after FROM jobs WHERE kind = 'reflect_pool' AND subject = ''"
    with psycopg.connect(owner_url, autocommit=True) as connection:
        before = connection.execute(daily).fetchall()
    model.say(lambda asked: ScriptedAnswer(json.dumps({"rows": [row(SHORT, *ids_in(asked))]})))
    answers = await asyncio.gather(
        *(client.post("/v1/reflect?wait=true", json={"project": project}) for project in ("a", "b"))
    )
    assert [(answer.status_code, answer.json()["superseded"]) for answer in answers] == [(200, 2), (200, 2)]
    with psycopg.connect(owner_url, autocommit=True) as connection:
        assert connection.execute(daily).fetchall() == before != []


def ids_in(asked: dict[str, Any]) -> list[str]:
    """Return the ids of the rows that a reflector was shown."""
    return memory_ids_in(asked["messages"][0]["content"][0]["text"])


async def test_a_repeated_request_waits_for_the_present_run(
    client: httpx2.AsyncClient, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, ids = await kept(client, model, WEATHER, COFFEE)
    monkeypatch.setattr(running, "LONGEST_WAIT_SECONDS", 0.2)
    release = asyncio.Event()
    model.say(ScriptedAnswer(json.dumps({"rows": [row(SHORT, *ids)]}), wait_for=release))
    asked = len(model.asked)
    for _ in range(3):
        answer = await client.post(f"/v1/sessions/{session}/reflect?wait=true")
        assert (answer.status_code, answer.json()["queued"]) == (202, True)
    release.set()
    await until(client, f"/v1/sessions/{session}", lambda shown: not shown["jobs"])
    assert len(model.asked) == asked + 1


async def test_an_outage_does_not_count_as_a_rejection(client: httpx2.AsyncClient, model: ModelServer) -> None:
    ids = [await noted(client, text, said_at=ago(days=9)) for text in (WEATHER, COFFEE)]
    model.say(ScriptedAnswer(raw="<html>"))
    assert (await client.post("/v1/reflect?wait=true")).status_code == 502
    assert (await client.get("/v1/reflections")).json()["reflections"] == []
    model.say({"rows": [row(SHORT, *ids)]})
    assert (await pool_reflected(client))["superseded"] == 2
