"""Recall with a reranker: a better order in time, recall's own otherwise, and never another answer."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import RerankerLate
from esker.server.db.database import Database
from esker.server.providers.remote_reranker import RemoteReranker
from esker.server.providers.reranking import Reranking
from tests.support.api import contents, recalled
from tests.support.rerank_server import RerankServer, rerank_server
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

NOTES = [f"The harbour crane {name} is checked on {day}." for name, day in zip("ABCDE", "12345", strict=True)]
QUERY = "When is a harbour crane checked?"
SCORED = [{"index": n, "relevance_score": n} for n in range(5)]


@pytest.fixture
async def reranker() -> AsyncGenerator[RerankServer]:
    """A scripted reranker."""
    async with rerank_server() as server:
        yield server


@asynccontextmanager
async def asking(
    database_url: str, reranker: RerankServer | None, **settings: str
) -> AsyncGenerator[httpx2.AsyncClient]:
    """Run a server, with a reranker that it waits long for, and yield a client of it."""
    values = {"ESKER_EMBEDDER": "none", "ESKER_RERANK_SECONDS": "30"}
    if reranker:
        values["ESKER_RERANKER"] = f"http:{reranker.url}#judge-1"
    made = Settings.from_environment(values | {f"ESKER_{name.upper()}": value for name, value in settings.items()})
    parts = make_parts(made, Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        yield client


async def noted(client: httpx2.AsyncClient, notes: list[str]) -> None:
    """Write memories."""
    rows = {"memories": [{"content": note} for note in notes]}
    assert (await client.post("/v1/memories/batch", json=rows)).status_code == 201


def without_ages(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what changes from one moment to the next, and without what a reranker may change."""
    hits = [{key: value for key, value in hit.items() if key != "age"} for hit in answer["hits"]]
    return {**answer, "hits": hits, "reranked": None}


async def test_hits_are_in_the_rerankers_order_and_each_position_keeps_its_score(
    database_url: str, reranker: RerankServer
) -> None:
    async with asking(database_url, None) as client:
        await noted(client, NOTES)
        before = await recalled(client, QUERY, explain=True)
    assert before["reranked"] == "off"
    reranker.likes = {"crane B": 3.0, "crane D": 9.0}
    async with asking(database_url, reranker, reranker_api_key="k-1") as client:
        after = await recalled(client, QUERY, explain=True)
        ready = (await client.get("/readyz")).json()
    assert after["reranked"] == "ok"
    assert contents(after)[:2] == [NOTES[3], NOTES[1]]
    assert contents(after)[2:] == [note for note in contents(before) if note not in (NOTES[1], NOTES[3])]
    assert [hit["score"] for hit in after["hits"]] == [hit["score"] for hit in before["hits"]]
    assert [hit["parts"]["rerank"] for hit in after["hits"]] == [9.0, 3.0, 0.0, 0.0, 0.0]
    assert reranker.asked == [{"model": "judge-1", "query": QUERY, "documents": contents(before)}]
    assert reranker.keys == ["Bearer k-1"]
    assert ready["reranker"] == "judge-1"


async def test_a_hit_beyond_the_limit_can_move_up_into_the_answer(database_url: str, reranker: RerankServer) -> None:
    async with asking(database_url, reranker) as client:
        await noted(client, NOTES)
        last = contents(await recalled(client, QUERY))[-1]
        reranker.likes = {last: 1.0}
        answer = await recalled(client, QUERY, limit=1)
    assert contents(answer) == [last]
    assert answer["omitted"] == len(NOTES) - 1


async def test_hits_below_the_floor_stay_out_and_without_hits_the_reranker_is_not_called(
    database_url: str, reranker: RerankServer
) -> None:
    reranker.likes = {"whippets": 100.0}
    async with asking(database_url, reranker) as client:
        await noted(client, [*NOTES, "My sister breeds whippets."])
        answer = await recalled(client, QUERY)
        assert len(reranker.asked) == 1
        nothing = await recalled(client, "purple elephants in quantum lasagna")
        one = await recalled(client, "whippets")
    assert sorted(contents(answer)) == NOTES
    assert (nothing["hits"], nothing["abstained"], nothing["reranked"]) == ([], True, "off")
    assert (len(one["hits"]), one["reranked"]) == (1, "off")
    assert len(reranker.asked) == 1


async def test_rankings_for_measurement_are_not_reranked(database_url: str, reranker: RerankServer) -> None:
    async with asking(database_url, reranker) as client:
        await noted(client, NOTES)
        for ranking in ("keyword", "vector", "fused"):
            assert (await recalled(client, QUERY, ranking=ranking))["reranked"] == "off"
    assert reranker.asked == []


async def test_a_late_reranker_changes_nothing_and_the_answer_says_so(
    database_url: str, reranker: RerankServer
) -> None:
    async with asking(database_url, None) as client:
        await noted(client, NOTES)
        before = await recalled(client, QUERY, explain=True)
    reranker.likes = {"crane E": 1.0}
    reranker.holds = asyncio.Event()
    try:
        async with asking(database_url, reranker, rerank_seconds="0.01") as client:
            answers = await asyncio.gather(*(recalled(client, QUERY, explain=True) for _ in range(12)))
            assert {answer["reranked"] for answer in answers} == {"late"}
            # Most of them found it at rest.
            assert "is paused" in (await client.get("/readyz")).json()["reranker"]
            for answer in answers:
                assert without_ages(answer) == without_ages(before)
    finally:
        reranker.holds.set()


async def test_a_reranker_is_paused_after_several_late_answers(database_url: str, reranker: RerankServer) -> None:
    reranker.holds = asyncio.Event()
    try:
        async with asking(database_url, reranker, rerank_seconds="0.05") as client:
            await noted(client, NOTES)
            says: list[str] = []
            for _ in range(5):
                assert (await recalled(client, QUERY))["reranked"] == "late"
                says.append((await client.get("/readyz")).json()["reranker"])
            # A call that was cancelled early may never have arrived.
            assert len(reranker.asked) <= 3
            assert ["within 0.05 seconds" in why for why in says] == [True, True, False, False, False]
            assert ["is paused" in why for why in says] == [False, False, True, True, True]
    finally:
        reranker.holds.set()


class CountedReranker(RemoteReranker):
    """Counts its calls."""

    calls = 0

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.calls += 1
        return await super().scores(query, texts)


async def test_after_its_pause_a_reranker_is_called_again(reranker: RerankServer) -> None:
    counted = CountedReranker(reranker.url, "judge-1", None)
    reranking = Reranking(counted, 0.05, rest_seconds=0)
    reranking.start()
    await asyncio.sleep(0)  # it has nothing to load
    reranker.holds = asyncio.Event()
    try:
        for _ in range(4):
            with pytest.raises(RerankerLate):
                await reranking.scores(QUERY, NOTES)
        assert counted.calls == 4
        assert "did not answer within" in reranking.state
    finally:
        reranker.holds.set()
        await reranking.close()


@pytest.mark.parametrize(
    ("status", "says", "why"),
    [
        (503, "{}", "answered 503"),
        (200, "no json", "cannot be read"),
        (200, "[]", "cannot be read"),
        (200, '{"results": []}', "cannot be read"),
        (200, '{"results": [{"index": 0, "relevance_score": "high"}]}', "cannot be read"),
        (200, json.dumps({"results": [{"index": n, "relevance_score": "NaN"} for n in range(5)]}), "not a number"),
        (200, json.dumps({"results": [{"index": 7, "relevance_score": 1}] * 5}), "cannot be read"),
        (200, json.dumps({"results": SCORED}) + " " * 2**20, "more than 1,048,576 bytes"),
    ],
)
async def test_a_failing_reranker_changes_nothing_and_the_status_says_why(
    database_url: str, reranker: RerankServer, status: int, says: str, why: str
) -> None:
    async with asking(database_url, reranker) as client:
        await noted(client, NOTES)
        reranker.likes = {"crane E": 1.0}
        assert contents(await recalled(client, QUERY))[0] == NOTES[4]
        reranker.status, reranker.says = status, says
        answer = await recalled(client, QUERY)
        assert answer["reranked"] == "failed"
        assert sorted(contents(answer)) == NOTES
        assert (
            contents(answer)[0] != NOTES[4] or NOTES[4] == contents(await recalled(client, QUERY, ranking="fused"))[0]
        )
        assert why in (await client.get("/readyz")).json()["reranker"]
        reranker.status, reranker.says = 200, None
        assert (await recalled(client, QUERY))["reranked"] == "ok"
        assert (await client.get("/readyz")).json()["reranker"] == "judge-1"


async def test_a_question_about_a_time_is_not_reranked(database_url: str, reranker: RerankServer) -> None:
    async with asking(database_url, reranker) as client:
        await noted(client, NOTES)
        answer = await recalled(client, "Which harbour crane was checked last week?")
    assert (answer["window"] is not None, answer["reranked"]) == (True, "off")
    assert reranker.asked == []


async def test_a_query_is_redacted_before_the_reranker_sees_it(database_url: str, reranker: RerankServer) -> None:
    secret = "ghp_" + "a1B2" * 9
    async with asking(database_url, reranker) as client:
        await noted(client, NOTES)
        await recalled(client, f"{QUERY} {secret}")
    assert len(reranker.asked) == 1
    assert secret not in json.dumps(reranker.asked)


async def test_a_hit_that_moves_up_does_not_repeat_another_one(database_url: str, reranker: RerankServer) -> None:
    twice = ["Crane C is checked on Fridays by the pier staff.", "The crane C is checked on Fridays by the pier staff."]
    async with asking(database_url, reranker) as client:
        await noted(client, ["When a harbour crane is checked is posted.", QUERY, *twice])
        reranker.likes = {"pier staff": 1.0}
        answer = await recalled(client, QUERY, limit=2, explain=True)
    assert len({*contents(answer)} & {*twice}) == 1, contents(answer)
    assert len(answer["hits"]) == 2
