"""Recall in other words: more is found, within a deadline and a day's money, and asked of the model once."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured
from esker.server.db.database import Database
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.spending import set_daily_cap
from tests.support.api import contents, recalled, settled, until
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.serving import serving, serving_meaning
from tests.support.waiting import PATIENCE, eventually

NOTES = ["My sister breeds whippets.", "The crane is checked on Mondays.", "A refund never exceeds the price."]
QUERY = "Does the family keep dogs?"
PARAPHRASED = {"paraphrases": ["who breeds whippets", "pets of relatives"]}
PRICES = "claude-haiku-5-5=10000/50000"


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer]:
    """A scripted model."""
    async with model_server() as server:
        server.say(PARAPHRASED)
        yield server


def asked_of(model: ModelServer, database_url: str, **settings: str) -> Parts:
    """Return the parts of a server that asks the model for paraphrases, and waits long for them."""
    values = {
        "ESKER_EMBEDDER": "none",
        "ESKER_OBSERVER": "off",
        "ESKER_REFLECTOR": "off",
        "ESKER_PARAPHRASE": "true",
        "ESKER_PARAPHRASE_SECONDS": "30",
        "ESKER_LLM_BASE_URL": model.url,
        "ESKER_LLM_PRICES": PRICES,
    }
    more = {f"ESKER_{name.upper()}": value for name, value in settings.items()}
    return make_parts(Settings.from_environment(values | more), Database(database_url), system_clock)


@asynccontextmanager
async def asking(parts: Parts) -> AsyncGenerator[httpx2.AsyncClient]:
    """Run a server that keeps the notes, and yield a client of it."""
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        rows = {"memories": [{"content": note} for note in NOTES]}
        assert (await client.post("/v1/memories/batch", json=rows)).status_code == 201
        yield client


async def test_a_text_that_only_a_paraphrase_finds_is_found(database_url: str, model: ModelServer) -> None:
    async with asking(asked_of(model, database_url)) as client:
        answer = await recalled(client, QUERY)
        assert contents(answer) == [NOTES[0]]
        assert (answer["paraphrased"], answer["paraphrases"]) == ("ok", PARAPHRASED["paraphrases"])
        assert QUERY in model.prompt()
        ready = (await client.get("/readyz")).json()
        assert ready["paraphraser"] == "claude-haiku-5-5"


async def test_without_paraphrases_no_model_is_called(database_url: str, model: ModelServer) -> None:
    async with asking(asked_of(model, database_url, paraphrase="false")) as client:
        answer = await recalled(client, QUERY)
        assert (answer["hits"], answer["paraphrased"], answer["paraphrases"]) == ([], "off", [])
    assert model.asked == []


async def test_a_repeated_recall_calls_the_model_once_and_answers_the_same(
    database_url: str, model: ModelServer
) -> None:
    async with asking(asked_of(model, database_url)) as client:
        together = await asyncio.gather(*(recalled(client, QUERY) for _ in range(5)))
        again = await recalled(client, QUERY)
    assert len(model.asked) == 1
    assert {json.dumps(answer["paraphrases"]) for answer in [*together, again]} == {
        json.dumps(PARAPHRASED["paraphrases"])
    }
    assert {tuple(contents(answer)) for answer in [*together, again]} == {(NOTES[0],)}


async def test_a_pool_cannot_learn_the_questions_of_another(database_url: str, model: ModelServer) -> None:
    parts = asked_of(model, database_url)
    async with asking(parts) as client:
        await recalled(client, QUERY)
        other = (await create_pool(parts, "other")).id
        answer = await recall(parts, other, RecallRequest(QUERY))
        assert (answer.hits, answer.paraphrased) == ([], "ok")
    assert len(model.asked) == 2


async def test_the_cache_holds_as_many_questions_as_configured(database_url: str, model: ModelServer) -> None:
    async with asking(asked_of(model, database_url, remembered_paraphrases="2")) as client:
        for query in ("one?", "two?", "one?", "three?", "one?", "two?"):
            await recalled(client, query)
    asked = [model.prompt(number) for number in range(len(model.asked))]
    assert [next(word for word in ("one", "two", "three") if word in text) for text in asked] == [
        "one",
        "two",
        "three",
        "two",
    ]


async def test_rankings_for_measurement_call_no_model(database_url: str, model: ModelServer) -> None:
    async with asking(asked_of(model, database_url)) as client:
        for ranking in ("keyword", "vector", "fused"):
            assert (await recalled(client, QUERY, ranking=ranking))["paraphrased"] == "off"
    assert model.asked == []


async def test_a_late_model_changes_nothing_is_counted_and_paused(database_url: str, model: ModelServer) -> None:
    held = asyncio.Event()
    model.say(ScriptedAnswer(json.dumps(PARAPHRASED), wait_for=held))
    parts = asked_of(model, database_url, paraphrase_seconds="0.05")
    try:
        async with asking(parts) as client:
            answer = await recalled(client, "When is the crane checked?")
            assert (contents(answer), answer["paraphrased"]) == ([NOTES[1]], "late")
            await eventually(lambda: recalled(client, QUERY), lambda answer: answer["paraphrased"] == "failed")
            calls = len(model.asked)
            assert (await recalled(client, "Anything else?"))["paraphrased"] == "failed"
            assert len(model.asked) == calls
            spent = await until(client, "/v1/spend", lambda spent: sum(day["calls"] for day in spent["days"]) >= calls)
            assert {day["purpose"] for day in spent["days"]} == {"recall"}
            assert sum(day["output_tokens"] for day in spent["days"]) == 500 * calls, "at most so many"
    finally:
        held.set()


async def test_concurrent_calls_are_limited_and_other_recalls_do_not_wait(
    database_url: str, model: ModelServer
) -> None:
    held = asyncio.Event()
    model.say(ScriptedAnswer(json.dumps(PARAPHRASED), wait_for=held))
    async with asking(asked_of(model, database_url)) as client:
        on_their_way = [asyncio.create_task(recalled(client, f"Question {n}?")) for n in range(4)]
        while len(model.asked) < 4:
            model.arrived.clear()
            await model.arrived.wait()
        assert (await recalled(client, "Question 5?"))["paraphrased"] == "late"
        held.set()
        assert {answer["paraphrased"] for answer in await asyncio.gather(*on_their_way)} == {"ok"}
        assert (await recalled(client, "Question 5?"))["paraphrased"] == "ok"
    assert len(model.asked) == 5


@pytest.mark.parametrize(
    "said",
    [
        ScriptedAnswer(status=401),
        ScriptedAnswer(status=400),
        ScriptedAnswer(stop_reason="refusal"),
        ScriptedAnswer("no object"),
        ScriptedAnswer(raw="{}"),
    ],
)
async def test_a_failing_model_changes_nothing_and_is_paused(
    database_url: str, model: ModelServer, said: ScriptedAnswer
) -> None:
    model.say(said)
    async with asking(asked_of(model, database_url)) as client:
        query = "When is the crane checked?"
        answer = await recalled(client, query)
        assert (contents(answer), answer["paraphrased"], answer["paraphrases"]) == ([NOTES[1]], "failed", [])
        calls = len(model.asked)
        answer = await recalled(client, query)
        assert (contents(answer), answer["paraphrases"]) == ([NOTES[1]], [])
        assert len(model.asked) == calls


async def test_calls_count_as_recall_spending_and_stop_at_the_daily_cap(database_url: str, model: ModelServer) -> None:
    parts = asked_of(model, database_url, daily_cap_usd="3")
    async with asking(parts) as client:
        for number in range(2):  # each costs 2.007 dollars
            assert (await recalled(client, f"Question {number}?"))["paraphrased"] == "ok"
        answer = await recalled(client, "When is the crane checked?")
        assert (contents(answer), answer["paraphrased"]) == ([NOTES[1]], "off")
        assert len(model.asked) == 2
        [spent] = (await client.get("/v1/spend")).json()["days"]
        assert (spent["purpose"], spent["calls"], round(spent["cost_usd"], 3)) == ("recall", 2, 4.014)
        assert (await recalled(client, "Question 0?"))["paraphrases"] == PARAPHRASED["paraphrases"], (
            "what is known costs nothing"
        )
        await set_daily_cap(parts, "default", cap_usd=100, without_own=False, when_spent=None)
        assert (await recalled(client, "When is the crane checked?"))["paraphrased"] == "ok"


async def test_a_paraphrase_is_searched_for_only_if_it_differs_from_the_question(
    database_url: str, model: ModelServer
) -> None:
    offered = ["does the  family keep dogs?", " ", "a\x00b", "x" * 401, "two\nlines", "Two lines", "three", "four"]
    model.say({"paraphrases": offered})
    async with asking(asked_of(model, database_url)) as client:
        answer = await recalled(client, QUERY)
    assert answer["paraphrases"] == ["a\ufffdb", "two lines", "three"]


async def test_a_question_is_redacted_before_the_model_sees_it(database_url: str, model: ModelServer) -> None:
    secret = "ghp_" + "a1B2" * 9
    async with asking(asked_of(model, database_url)) as client:
        await recalled(client, f"Where do we use {secret}?")
    assert len(model.asked) == 1
    assert secret not in json.dumps(model.asked)


async def test_paraphrases_never_lower_the_score_of_a_text_that_the_question_finds(
    database_url: str, model: ModelServer
) -> None:
    model.say({"paraphrases": ["harbour", "price of a refund"]})
    query = "When is the crane checked?"
    async with asking(asked_of(model, database_url, paraphrase="false")) as client:
        [alone] = (await recalled(client, query, explain=True))["hits"]
    async with asking(asked_of(model, database_url)) as client:
        answer = await recalled(client, query, explain=True)
    found = {hit["content"]: hit for hit in answer["hits"]}
    assert set(found) == {NOTES[1], NOTES[2]}
    assert found[NOTES[1]]["score"] == alone["score"]


async def test_paraphrases_are_searched_for_by_meaning_and_must_stand_out_more(
    database_url: str, minilm: LocalEmbedder, model: ModelServer
) -> None:
    meant = "Does anybody in the relatives own animals?"
    model.say({"paraphrases": []}, {"paraphrases": [meant, "unrelated"]}, {"paraphrases": []})
    settings = asked_of(model, database_url).settings
    async with (
        serving_meaning(database_url, minilm, settings) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client,
    ):
        # Among few texts none stands out by chance, however often one asks.
        others = [f"Invoice {number} was paid on time." for number in range(40)]
        rows = {"memories": [{"content": note} for note in [*NOTES, *others]]}
        assert (await client.post("/v1/memories/batch", json=rows)).status_code == 201
        await settled(client, meant, ranking="fused")
        [direct] = (await recalled(client, meant, explain=True))["hits"]
        answer = await recalled(client, "frumious bandersnatch", explain=True)
        assert (await recalled(client, "frumious jabberwock"))["hits"] == []
    [found] = answer["hits"]
    assert (found["content"], direct["content"]) == (NOTES[0], NOTES[0])
    assert found["parts"]["cosine"] == direct["parts"]["cosine"]
    assert found["score"] < direct["score"]


def test_paraphrasing_without_a_model_stops_the_server_from_starting(database_url: str) -> None:
    with pytest.raises(Misconfigured, match="paraphrase"):
        make_parts(Settings(paraphrase=True, embedder="none"), Database(database_url), system_clock)
