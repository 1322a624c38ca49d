"""Reflection: known failures of other servers, and the promise of Esker for each."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from esker.embedding_worker.worker import run_worker
from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.usecases.parts import Parts
from tests.support.api import contents, observed, opened, recalled, said, settled, until
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.reflecting import (
    REFLECTOR,
    fact,
    kept,
    live,
    pool_reflected,
    row,
    session_reflected,
    stored,
)
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

WEATHER = "The agent explained at great length how the weather comes about, and that it rains a lot in the west."
COFFEE = "The coffee machine of the office was out of order for a whole week in the summer, and nobody mended it."
TRAIN = "The train to the coast was so full that everybody had to stand in the corridor for the whole way there."
GARDEN = "The garden behind the house has an old apple tree that carries far more fruit than anyone could eat."
SHORT = "Weather and coffee were talked about."
WORDS = "anchor basket candle dragon engine forest harbour island jacket kettle ladder magnet".split()

Both = tuple[httpx2.AsyncClient, ModelServer]


@pytest.fixture
def both(scripted_client: httpx2.AsyncClient, model: ModelServer) -> Both:
    """A client of a server with a scripted model, and the model."""
    return scripted_client, model


@pytest.fixture
async def meaning(database_url: str, minilm: LocalEmbedder) -> AsyncGenerator[Both]:
    """The same with the real embedding model, and a worker that embeds; reflections are made without a model."""
    await minilm.load()
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(model_server())
        environment = {"ESKER_LLM_BASE_URL": model.url, "ESKER_LLM_API_KEY": "sk-scripted"}
        settings = Settings.from_environment(environment | {"ESKER_REFLECTOR": "extractive"})
        made = make_parts(settings, Database(database_url), system_clock)
        parts = replace(made, embedders=QueryEmbedders(lambda _: minilm, settings.embedder))
        worker_parts = Parts(Database(database_url, connections=2), system_clock, settings)
        worker = asyncio.create_task(run_worker(worker_parts, minilm, stop))
        try:
            url = await stack.enter_async_context(serving(parts))
            yield await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=PATIENCE)), model
        finally:
            stop.set()
            await worker


async def worked(client: httpx2.AsyncClient, name: str = "s1", **more: Any) -> str:
    """Open a session with much to observe, observe it without a model, and return its id."""
    session = await opened(client, name, **more)
    began = datetime.now(UTC) - timedelta(days=30)
    texts: list[tuple[str, Any]] = [("user", "Please fix the login. Never use floats for money.")]
    for place, word in enumerate(WORDS[:6]):
        call, result = f"{name}-{place}", f"{word}.py"
        cause = f"The cause is that the `id` of the {word} was renamed to `{word}_id`."
        texts += [
            ("assistant", [{"type": "tool_use", "id": call, "name": "Edit", "input": {"file_path": result}}]),
            ("user", [{"type": "tool_result", "tool_use_id": call, "content": "KeyError: 'id'", "is_error": True}]),
            ("assistant", f"{cause} Fixed the {word} test. The limit of the queue in the worker is {place + 3}0 jobs."),
            ("user", f"Please also look at the {word} page, which is slow on the phone of my aunt."),
        ]
    batch = [
        {
            "external_id": f"{name}-m{place}",
            "role": role,
            "content": content,
            "sent_at": (began + timedelta(minutes=place)).isoformat(),
        }
        for place, (role, content) in enumerate(texts)
    ]
    await said(client, session, *batch)
    assert (await observed(client, session))["memories"] > 10
    return session


@pytest.mark.parametrize(
    "garbage",
    [
        "}{ nothing of this is JSON",
        {"rows": [{"text": 7}]},
        {"rows": [row("Made up.", "mem_unknown")]},
    ],
    ids=["no JSON", "no row", "unknown source"],
)
async def test_an_invalid_answer_of_the_reflector_changes_no_row(both: Both, owner_url: str, garbage: Any) -> None:
    # Count and content of the sources are unchanged.
    client, model = both
    session, _ = await kept(client, model, WEATHER, COFFEE)
    before = stored(owner_url)
    model.say(garbage if isinstance(garbage, str) else json.dumps(garbage))
    assert (await session_reflected(client, session))["rejected"]
    assert (await pool_reflected(client))["rejected"]
    assert stored(owner_url) == before


@pytest.mark.parametrize("nothing", ["", " \n\t ", {"rows": [row("ok", "SOURCE")]}, {"rows": []}])
async def test_an_empty_reflection_keeps_the_previous_one_and_is_recorded_as_a_failure(
    both: Both, owner_url: str, nothing: Any
) -> None:
    # The previous reflection stays, the failure is recorded.
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    await kept(client, model, TRAIN)
    before = stored(owner_url)
    [former] = [i for i, one in (await live(client)).items() if one["content"] == SHORT]
    text = nothing if isinstance(nothing, str) else json.dumps(nothing).replace("SOURCE", former)
    model.say(text)
    reason = (await session_reflected(client, session))["rejected"]
    assert stored(owner_url) == before
    found = (await client.get("/v1/reflections")).json()["reflections"]
    assert [(one["state"], one["reason"]) for one in found] == [("rejected", reason), ("committed", None)]


def echo(model: ModelServer) -> Any:
    """Return a script that observes each message as a fact of its own, and reflects rows into themselves."""

    def answer(asked: dict[str, Any]) -> ScriptedAnswer:
        lines = model.prompt().splitlines()
        if asked["model"] == REFLECTOR:
            rows = [line.split(" ", 4) for line in lines if line.startswith("mem_")]
            return ScriptedAnswer(json.dumps({"rows": [row(text, i) for i, _, _, _, text in rows]}))
        told = [
            (line, lines[place + 1]) for place, line in enumerate(lines) if line.startswith("[") and "] user" in line
        ]
        facts = [fact(text, sources=[int(head[1 : head.index("]")])]) for head, text in told]
        return ScriptedAnswer(json.dumps({"facts": facts}))

    return answer


async def test_a_reflector_that_echoes_is_called_a_bounded_number_of_times(both: Both, owner_url: str) -> None:
    # A bounded number of calls per new observation, no loop.
    client, model = both
    session = await opened(client, effective_context=4_000)
    trigger = 1_300
    model.say(echo(model))

    def calls() -> int:
        return sum(asked["model"] == REFLECTOR for asked in model.asked)

    async def after(*texts: str) -> int:
        """Return how many calls the reflector had once these texts were observed and no job waits."""
        model.asked.clear()
        await said(client, session, *texts)
        await observed(client, session)
        await until(client, f"/v1/sessions/{session}", lambda shown: not shown["jobs"])
        return calls()

    def tokens() -> int:
        return sum(one["tokens"] for one in stored(owner_url).values())

    stories = [f"{WEATHER} {COFFEE} {TRAIN} It was told about the {word}." for word in WORDS]
    assert await after(*stories[:4]) == 0
    assert tokens() < trigger
    # Enough for the trigger: four candidates, and not one more.
    much = [f"{GARDEN} {story}" for story in stories]
    assert await after(*much) == 4
    rejected = tokens()
    assert rejected > trigger
    # Few new observations cost no call, until an eighth of the trigger is new.
    new = [f"The {word} of the harbour was painted in another colour than the year before." for word in WORDS]
    for text in new:
        asked = await after(text)
        if tokens() - rejected < trigger // 8:
            assert asked == 0
        else:
            assert asked == 4
            break
    else:
        pytest.fail("an eighth of the trigger was never reached")
    assert await after("The lamp at the pier is out.") == 0


@pytest.mark.parametrize("scope", ["session", "pool"])
async def test_a_row_written_during_a_reflection_survives_unreflected(both: Both, scope: str) -> None:
    # A row inserted while the reflector sleeps survives and is not marked reflected.
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE)
    release = asyncio.Event()
    asleep = ScriptedAnswer(json.dumps({"rows": [row(SHORT, *ids)]}), wait_for=release)
    model.say(asleep, {"facts": [fact(TRAIN, sources=[3])]})
    path = f"/v1/sessions/{session}/reflect" if scope == "session" else "/v1/reflect"
    reflecting = asyncio.create_task(client.post(f"{path}?wait=true"))
    await model.arrived.wait()
    await said(client, session, TRAIN)
    [new] = (await observed(client, session))["memory_ids"]
    release.set()
    assert (await reflecting).json()["superseded"] == 2
    rows = await live(client)
    assert sorted(one["content"] for one in rows.values()) == sorted([SHORT, TRAIN])
    assert (rows[new]["superseded_by"], rows[new]["reflection_id"]) == (None, None)
    [reflection] = (await client.get("/v1/reflections")).json()["reflections"]
    assert new not in {*reflection["input_ids"], *reflection["dropped_ids"]}


async def test_a_fact_in_nearly_the_same_words_in_three_sessions_is_one_row_with_three_sources(both: Both) -> None:
    # Merged when it is written, without vectors.
    client, model = both
    texts = [
        "Deployments of the shop go to Fly.io.",
        "The deployments of the shop go to Fly.io!",
        "deployments of the shop go now to Fly.io",
    ]
    sessions = [
        (await kept(client, model, text, session=f"s{place}", project="shop"))[0] for place, text in enumerate(texts)
    ]
    await kept(client, model, COFFEE, TRAIN, session="s9", project="shop")
    hits = (await recalled(client, "Where is the shop deployed, Fly.io?", limit=5, project="shop"))["hits"]
    [hit] = [hit for hit in hits if "Fly.io" in hit["content"]]
    assert sorted(source["session_id"] for source in hit["sources"]) == sorted(sessions)
    assert hit is hits[0]


async def test_without_a_model_too_a_fact_of_three_sessions_is_one_row(client: httpx2.AsyncClient) -> None:
    # The extractive observer merges as well.
    sessions: list[str] = []
    for name in ("a", "b", "c"):
        sessions.append(await opened(client, name, project="shop"))
        await said(client, sessions[-1], "Never use floats for money.")
        await observed(client, sessions[-1])
    [hit] = (await recalled(client, "floats for money", limit=5, project="shop"))["hits"]
    assert [source["session_id"] for source in hit["sources"]] == sessions


PARAPHRASED = [
    (
        "How is the site deployed?",
        ["User deploys with Fly.io.", "Deployments go to Fly.io.", "The user said that deploys are done on Fly.io."],
    ),
    (
        "Where do sessions live?",
        ["Sessions live in Redis.", "The user said that sessions are stored in Redis.", "Sessions are saved in Redis."],
    ),
    (
        "When is the search index rebuilt?",
        [
            "The search index is rebuilt every Sunday.",
            "Every Sunday the search index gets rebuilt.",
            "User mentioned that the search index is rebuilt every Sunday.",
        ],
    ),
]


@pytest.mark.parametrize(("question", "texts"), PARAPHRASED, ids=["deploys", "sessions", "index"])
async def test_a_paraphrase_of_a_fact_is_shown_once_with_the_sources_of_all(
    meaning: Both, question: str, texts: list[str]
) -> None:
    # The top 5 show it once, with three sources; every row of it is named.
    client, model = meaning
    said_in = [await kept(client, model, text, session=f"s{n}", project="shop") for n, text in enumerate(texts)]
    await kept(client, model, COFFEE, TRAIN, "Mails are sent with Postmark.", session="s9", project="shop")
    await settled(client)
    hits = (await recalled(client, question, limit=5, project="shop"))["hits"]
    [hit] = [hit for hit in hits if hit["content"] in texts]
    assert {source["session_id"] for source in hit["sources"]} == {session for session, _ in said_in}
    assert len(hit["sources"]) == 3
    rows = {i for i, one in (await live(client)).items() if one["content"] in texts}
    assert {hit["id"], *hit["same"]} == rows


async def test_a_row_that_only_sounds_like_a_paraphrase_is_shown_separately(meaning: Both) -> None:
    # The reverse: no row with another meaning is hidden.
    client, model = meaning
    texts = [
        "Deployments of the shop go to Fly.io.",
        "Deployments of the shop no longer go to Fly.io.",
        "Deployments of the blog go to Fly.io.",
        "Deployments of the shop should go to Fly.io.",
    ]
    for place, text in enumerate(texts):
        await kept(client, model, text, session=f"s{place}", project="shop")
    await kept(client, model, "User said that deployments of the shop are done on Fly.io.", session="b", project="blog")
    await settled(client)
    found = await recalled(client, "Do deployments go to Fly.io?", limit=8)
    assert {*contents(found)} >= {*texts}
    assert all(hit["same"] == [] for hit in found["hits"])


async def test_without_a_model_the_pools_reflection_merges_paraphrases_into_one_row(meaning: Both) -> None:
    # The extractive reflector merges rows of the same meaning across sessions; the result leads back to all three.
    client, model = meaning
    texts = [*PARAPHRASED[2][1][:2], "Once every Sunday the search index is rebuilt."]
    said_in = [await kept(client, model, text, session=f"s{n}", project="shop") for n, text in enumerate(texts)]
    await kept(client, model, COFFEE, TRAIN, session="s9", project="shop")
    await settled(client)
    await pool_reflected(client)
    await settled(client)
    hits = (await recalled(client, "When is the search index rebuilt?", limit=5, project="shop"))["hits"]
    [hit] = [hit for hit in hits if "Sunday" in hit["content"]]
    [source] = hit["sources"]
    assert {*source["memory_ids"]} == {i for _, ids in said_in for i in ids}


async def test_a_reflection_never_increases_the_number_of_rows(both: Both, owner_url: str) -> None:
    # Of five rows a model makes six, in fewer words.
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN, GARDEN)
    before = stored(owner_url)
    model.say({"rows": [row(f"The {word} matters.", ids[n % 4]) for n, word in enumerate(WORDS[:5])]})
    reason = (await session_reflected(client, session))["rejected"]
    assert reason
    assert stored(owner_url) == before
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    assert len(await live(client)) == 1


@pytest.mark.parametrize("scope", ["session", "pool"])
async def test_without_a_model_too_a_reflection_leaves_fewer_rows_with_all_sources_and_deletes_none(
    client: httpx2.AsyncClient, owner_url: str, scope: str
) -> None:
    # Rows are fewer; the report counts the changes; every fact leads back to messages.
    session = await worked(client, project="shop")
    before, shown = stored(owner_url), await live(client)
    report = await (session_reflected(client, session) if scope == "session" else pool_reflected(client))
    after = stored(owner_url)
    made = {i: one for i, one in after.items() if i not in before}
    assert before.keys() <= after.keys(), "nothing is deleted"
    assert len(await live(client)) < len(shown)
    gone = [i for i in before if after[i]["superseded_at"]]
    assert (report["memories"], report["superseded"]) == (len(made), len(gone))
    left_out = [i for i in gone if after[i]["superseded_by"].startswith("ref_")]
    assert report["left_out"] == len(left_out)
    assert report["tokens_before"] == sum(one["tokens"] for one in before.values())
    assert report["tokens_after"] == sum(one["tokens"] for one in (await live(client)).values())
    for i in made:
        sources = (await client.get(f"/v1/memories/{i}")).json()["source_ids"]
        assert sources
        assert all(before[source]["source_seqs"] for source in sources)
    for i in gone:
        assert (await client.get(f"/v1/memories/{i}")).status_code == 200


async def test_the_counts_that_a_reflection_reports_equal_the_changes(both: Both, owner_url: str) -> None:
    # Became, left out, kept and insights, by the report, the record and the rows.
    client, model = both
    rule = fact("Never use floats for money.", priority="high")
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN, GARDEN, rule)
    before = stored(owner_url)
    insight = {"facet": "knowledge", "text": "It rains a lot in the west.", "source_ids": [ids[0]]}
    model.say({"rows": [row(SHORT, *ids[:2]), row("The train had 47 wagons.", ids[2])], "insights": [insight]})
    report = await session_reflected(client, session)
    after = stored(owner_url)
    gone = {i for i in before if after[i]["superseded_at"]}
    assert gone == {ids[0], ids[1], ids[3], ids[4]}
    assert (report["superseded"], report["left_out"], report["memories"]) == (len(gone), 1, len(after) - len(before))
    [shown] = (await client.get("/v1/reflections")).json()["reflections"]
    assert (len(shown["input_ids"]), len(shown["output_ids"]), len(shown["dropped_ids"])) == (5, 3, 1)
    assert (
        shown["tokens_after"] == report["tokens_after"] == sum(one["tokens"] for one in (await live(client)).values())
    )
    assert shown["tokens_before"] == sum(before[i]["tokens"] for i in ids)


async def test_a_reflection_deletes_nothing_and_each_of_its_rows_leads_back_to_messages(both: Both) -> None:
    # Over a reflection of a reflection, to the messages.
    client, model = both
    session, ids = await kept(client, model, WEATHER, COFFEE)
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    [first] = await live(client)
    _, [train] = await kept(client, model, TRAIN, session="s2")
    model.say({"rows": [row("Weather, coffee, trains.", first, train)]})
    await pool_reflected(client)
    [last] = await live(client)

    async def seqs(memory: str) -> set[tuple[str, int]]:
        shown = (await client.get(f"/v1/memories/{memory}")).json()
        own = {(shown["session_id"], seq) for seq in shown["source_seqs"]}
        return own.union(*[await seqs(source) for source in shown["source_ids"]])

    assert {seq for of, seq in await seqs(last) if of == session} == {1, 2}
    assert len(await seqs(last)) == 3
    old = contents(await recalled(client, "weather comes about", include_superseded=True))
    assert WEATHER in old


async def test_forgotten_and_replaced_facts_do_not_come_back_with_the_next_reflection(
    both: Both, owner_url: str
) -> None:
    # Neither is shown to the model, and neither is live afterwards.
    client, model = both
    old = "Deploys of the shop go to Render."
    session, ids = await kept(client, model, WEATHER, COFFEE, TRAIN, old)
    await client.delete(f"/v1/memories/{ids[0]}")
    change = fact("Deploys of the shop go to Hetzner now.", replaces=old)
    _, [new] = await kept(client, model, change, days_ago=5)
    model.say({"rows": [row("Coffee and trains.", ids[1], ids[2]), row("Deploys go to Hetzner.", new)]})
    await session_reflected(client, session)
    await pool_reflected(client)
    assert not [asked for asked in range(len(model.asked)) if ids[0] in model.prompt(asked)]
    assert not [asked for asked in range(len(model.asked)) if "Render" in model.prompt(asked)]
    assert not [one for one in (await live(client)).values() if "Render" in one["content"]]
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM memories WHERE content ~ 'weather'").fetchone() == (0,)


async def test_without_a_model_too_forgotten_facts_stay_forgotten(client: httpx2.AsyncClient, owner_url: str) -> None:
    # Through both reflections of the extractive reflector.
    session = await worked(client)
    [rule] = [i for i, one in (await live(client)).items() if "floats" in one["content"]]
    await session_reflected(client, session)
    await client.delete(f"/v1/memories/{rule}")
    await session_reflected(client, session)
    await pool_reflected(client)
    assert not [one for one in stored(owner_url).values() if "floats" in one["content"]]


async def test_a_condensed_row_keeps_the_dates_of_its_sources(both: Both) -> None:
    # The times when it was said, to which it refers and until which it is valid; not that of the reflection.
    client, model = both
    fair = fact(
        WEATHER,
        refers_from="2025-05-01T00:00:00Z",
        refers_to="2025-05-03T00:00:00Z",
        valid_until="2099-01-01T00:00:00Z",
    )
    trip = fact(COFFEE, refers_from="2025-06-01T00:00:00Z", valid_until="2098-01-01T00:00:00Z")
    session, ids = await kept(client, model, fair, trip)
    sources = await live(client)
    model.say({"rows": [row(SHORT, *ids)]})
    await session_reflected(client, session)
    [made] = (await live(client)).values()
    assert made["said_at"] == max(sources[i]["said_at"] for i in ids)
    assert (made["refers_from"], made["refers_to"]) == ("2025-05-01T00:00:00Z", "2025-06-01T00:00:00Z")
    assert made["valid_until"] == "2099-01-01T00:00:00Z"
    day = datetime.fromisoformat("2025-05-02T00:00:00Z")
    found = await recalled(client, "weather", since=day.isoformat(), until=(day + timedelta(days=1)).isoformat())
    assert contents(found) == [SHORT]


async def test_without_a_model_too_a_condensed_row_is_dated_by_its_sources(client: httpx2.AsyncClient) -> None:
    # No row is dated by the time of the run.
    session = await worked(client)
    before = await live(client)
    await session_reflected(client, session)
    rows = [one for one in (await live(client)).values() if one["kind"] == "reflection"]
    assert rows
    for one in rows:
        assert one["said_at"] == max(before[source]["said_at"] for source in one["source_ids"])


TOOLS = "\n".join(f"- {word}: 12 tests passed, 0 failed, coverage of the module is above the limit." for word in WORDS)


async def test_a_long_repetitive_summary_is_not_a_loop(both: Both) -> None:
    # A line for each of many modules, all alike, is what a tool summary looks like.
    client, model = both
    long = [f"The module {line[2:]} {WEATHER}" for line in TOOLS.splitlines()]
    session, ids = await kept(client, model, *long)
    model.say({"rows": [row(TOOLS, *ids)]})
    assert (await session_reflected(client, session))["rejected"] is None
    assert [one["content"] for one in (await live(client)).values()] == [TOOLS]


async def test_a_block_that_is_repeated_62_times_is_a_loop_and_changes_nothing(both: Both, owner_url: str) -> None:
    # 21 lines, 62 times; and a short loop that no limit of length stops.
    client, model = both
    long = [f"The {word} was painted. {WEATHER} {COFFEE} {TRAIN} {GARDEN}" for word in WORDS]
    session, ids = await kept(client, model, *long)
    before = stored(owner_url)
    block = "\n".join(f"{'The weather was' if n % 2 else 'The coffee machine was'} {'a ' * n}matter" for n in range(21))
    for loop in ("\n".join([block] * 62), "The coffee machine was out of order again. " * 20):
        model.say({"rows": [row(loop, *ids)]})
        assert (await session_reflected(client, session))["rejected"]
        assert stored(owner_url) == before
    [short, _] = (await client.get("/v1/reflections")).json()["reflections"]
    assert "repeat" in short["reason"] or "again" in short["reason"]
