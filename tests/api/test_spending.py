"""Spending: every model call is counted; a pool at its daily cap waits, loses nothing and resumes the next day."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import Clock, system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError, InvalidInput, Misconfigured
from esker.server.core.records import Filter, JobKind, Principal
from esker.server.core.text.tokens import estimate_tokens
from esker.server.db.database import Database
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionReport, SessionRequest, get_session, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.receive_event import receive_event
from esker.server.usecases.reflect import reflect, reflect_leased
from esker.server.usecases.remember import list_memories
from esker.server.usecases.run_job import Work, claim_job, run_job
from esker.server.usecases.spending import report_spending, resume_paused_jobs, set_daily_cap
from tests.support.api import observed, opened, recalled, said, until
from tests.support.clock import START, FakeClock
from tests.support.model_server import ModelServer, ScriptedAnswer, model_server
from tests.support.processes import esker
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

FACT: dict[str, Any] = {
    "text": "User decided to use Redis.",
    "priority": "high",
    "category": "decision",
    "sources": [1],
}
NOTHING: dict[str, Any] = {"facts": []}
# A scripted call reads 100 tokens and 7 from the cache, and writes 20; with these prices for a million tokens it costs
# (100 + 0.1 * 7) / 100 + 20 / 20 dollars.
PRICES = "claude-haiku-5-5=10000/50000,claude-sonnet-5-5=10000/50000"
A_CALL = 2.007
WORK: dict[JobKind, Work] = {"observe": observe_leased, "reflect": reflect_leased}


@pytest.fixture
async def model() -> AsyncGenerator[ModelServer]:
    """A scripted model."""
    async with model_server() as server:
        server.say(NOTHING)
        yield server


def asking(model: ModelServer, database: Database, clock: Clock = system_clock, /, **settings: str) -> Parts:
    """Return the parts of a server with the scripted model."""
    given = {"ESKER_EMBEDDER": "none", "ESKER_LLM_BASE_URL": model.url, "ESKER_LLM_PRICES": PRICES}
    given |= {f"ESKER_{name.upper()}": value for name, value in settings.items()}
    return make_parts(Settings.from_environment(given), database, clock)


@asynccontextmanager
async def without_a_server(parts: Parts) -> AsyncGenerator[Parts]:
    """Yield the parts, and close them as a server would."""
    assert parts.observer
    assert parts.reflector
    yield parts
    await parts.observer.close()
    await parts.reflector.close()


@asynccontextmanager
async def served(model: ModelServer, database_url: str, **settings: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """Run a server with the scripted model, and yield its client."""
    parts = asking(model, Database(database_url), **settings)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        yield connected


async def spending(client: httpx2.AsyncClient) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the answer of `GET /v1/spend`: today, and the spending by purpose."""
    answer = (await client.get("/v1/spend")).json()
    return answer["today"], {spent["purpose"]: spent for spent in answer["days"]}


async def wait_for(client: httpx2.AsyncClient, session: str, what: str) -> httpx2.Response:
    """Observe or reflect a session, and wait."""
    return await client.post(f"/v1/sessions/{session}/{what}?wait=true")


# Counting ------------------------------------------------------------------------------------------------------------


async def test_every_call_is_counted_also_failed_ones(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url) as client:
        model.say("I cannot answer in JSON.", {"facts": [FACT]})  # not usable, so it is sent back
        session = await opened(client)
        await said(client, session, "Let's use Redis.")
        await observed(client, session)
        model.say(ScriptedAnswer("", stop_reason="refusal"))
        refused = await opened(client, "s2")
        await said(client, refused, "Let's not.")
        assert (await wait_for(client, refused, "observe")).status_code == 502
        model.say({"facts": [{**FACT, "text": "The harbour is closed on Sundays.", "sources": [2]}]})
        await said(client, session, "The harbour is closed on Sundays.")
        await observed(client, session)
        calls = len(model.asked)
        assert calls == 4

        today, spent = await spending(client)
        assert spent.keys() == {"observe"}
        assert spent["observe"] == {
            "day": f"{datetime.now(UTC):%Y-%m-%d}",
            "model": "claude-haiku-5-5",
            "purpose": "observe",
            "calls": calls,
            "input_tokens": 400,
            "cache_write_tokens": 0,
            "cache_read_tokens": 28,
            "output_tokens": 80,
            "cost_usd": pytest.approx(4 * A_CALL),
        }
        assert (today["spent_usd"], today["cap_usd"], today["paused"]) == (pytest.approx(4 * A_CALL), None, False)

        model.say({"rows": []})  # no level of guidance helps
        assert (await wait_for(client, session, "reflect")).json()["rejected"]
        _, spent = await spending(client)
        levels = len(model.asked) - calls
        assert levels >= 4
        assert spent["reflect"]["model"] == "claude-sonnet-5-5"
        assert (spent["reflect"]["calls"], spent["reflect"]["output_tokens"]) == (levels, 20 * levels)
        assert spent["observe"]["calls"] == calls


async def test_cached_tokens_are_counted_at_their_own_price(model: ModelServer, database_url: str) -> None:
    used = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 2000,
    }
    model.say(ScriptedAnswer(raw=message(json.dumps(NOTHING), usage=used)))
    async with served(model, database_url) as client:
        session = await opened(client)
        await said(client, session, "Let's use Redis.")
        await observed(client, session)
        spent = (await spending(client))[1]["observe"]
    assert (spent["input_tokens"], spent["cache_write_tokens"], spent["cache_read_tokens"]) == (10, 1000, 2000)
    # A token written into the cache costs 1.25 input tokens, one read from it 0.1.
    assert spent["cost_usd"] == pytest.approx((10 + 1250 + 200) / 100 + 5 / 20)


async def with_two_rows(client: httpx2.AsyncClient, model: ModelServer) -> str:
    """Return a session with two observed rows."""
    texts = ("The old harbour is closed on Sundays.", "The new harbour is open on Sundays.")
    model.say({"facts": [{**FACT, "text": text, "priority": "low", "category": "fact"} for text in texts]})
    session = await opened(client)
    await said(client, session, " ".join(texts))
    assert (await observed(client, session))["memories"] == 2
    return session


async def test_a_late_call_is_counted_with_its_highest_possible_cost(model: ModelServer, database_url: str) -> None:
    release = asyncio.Event()
    async with served(model, database_url, llm_timeout_seconds="1") as client:
        session = await with_two_rows(client, model)
        _, before = await spending(client)
        model.say(ScriptedAnswer(json.dumps(NOTHING), wait_for=release))
        await said(client, session, "Let's use Redis.")
        for what in ("observe", "reflect"):
            answer = await wait_for(client, session, what)
            assert (answer.status_code, "did not answer within" in answer.json()["detail"]) == (502, True)
        today, spent = await spending(client)
        release.set()
    _, *late = model.asked
    for asked, purpose in zip(
        late, ("observe", "reflect"), strict=True
    ):  # a late call is not retried with more guidance
        names = ("calls", "input_tokens", "output_tokens")
        calls, sent, written = [spent[purpose][name] - before.get(purpose, {}).get(name, 0) for name in names]
        assert (calls, written) == (1, asked["max_tokens"])
        texts = [asked["system"][0]["text"], *(block["text"] for block in asked["messages"][0]["content"])]
        # The schema of the answer is included; it is no longer than the prompt.
        assert 1 < sent / sum(map(estimate_tokens, texts)) < 2
    assert today["spent_usd"] == pytest.approx(sum(counted["cost_usd"] for counted in spent.values()))


async def test_a_reflection_reports_all_tokens_its_model_was_sent(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url) as client:
        session = await with_two_rows(client, model)
        model.say(lambda asked: ScriptedAnswer(json.dumps(harbours(asked))))
        assert (await wait_for(client, session, "reflect")).json()["rejected"] is None
        [done] = (await client.get("/v1/reflections")).json()["reflections"]
    assert (done["input_tokens"], done["output_tokens"]) == (100 + 7, 20)


def harbours(asked: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with one row for all shown rows."""
    shown = re.findall(r"^mem_\S+", asked["messages"][0]["content"][0]["text"], re.MULTILINE)
    text = "The old harbour is closed and the new one open on Sundays."
    return {"rows": [{"text": text, "priority": "low", "category": "fact", "source_ids": shown}]}


def message(text: str, **more: Any) -> str:
    """Return a message in the format of the API."""
    content = [{"type": "text", "text": text}]
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content}
    return json.dumps({**start, "stop_reason": "end_turn", "stop_sequence": None, **more})


async def test_tokens_of_a_model_without_a_price_are_counted_and_the_cost_is_null(
    model: ModelServer, database_url: str
) -> None:
    async with served(model, database_url, observer_model="qwen3:8b") as client:
        session = await opened(client)
        await said(client, session, "Let's use Redis.")
        await observed(client, session)
        today, spent = await spending(client)
        shown = (await asyncio.to_thread(esker, "spend", ESKER_URL=str(client.base_url))).stdout
    assert (spent["observe"]["calls"], spent["observe"]["input_tokens"]) == (1, 100)
    assert (spent["observe"]["cost_usd"], today["spent_usd"]) == (None, 0)
    assert "no cap" in shown
    assert re.search(r"qwen3:8b +observe +1 +100 +7 +20 +unknown", shown)


async def test_recall_calls_no_model(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url) as client:
        await client.post("/v1/memories", json={"content": "Sessions live in Redis."})
        first, second = [await recalled(client, "Where do sessions live?") for _ in range(2)]
        assert (first, len(first["hits"])) == (second, 1)
        assert (await spending(client))[1] == {}
    assert model.asked == []


async def test_a_message_of_200_kb_never_exceeds_the_prompt_limit(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url) as client:
        session = await opened(client)
        await said(client, session, {"external_id": "m", "role": "user", "content": "some output, " * 16_000})
        await observed(client, session)
    assert len(model.asked) == 1
    # 35,000 tokens of transcript, at about four characters each, and the rest of the prompt.
    assert len(model.prompt()) < 5 * 35_000


# The cap -------------------------------------------------------------------------------------------------------------


async def run_due_jobs(parts: Parts, pool_id: str) -> int:
    """Run the jobs of a pool that are due, as the job runner does; return how many were run."""
    ran = 0
    while lease := await claim_job(parts, pool_id, list(WORK)):
        ran += 1
        with suppress(EskerError):
            await run_job(parts, lease, WORK[lease.kind])
    return ran


async def session_of(parts: Parts, pool_id: str, name: str, *texts: str) -> str:
    """Return a session with messages whose observation is requested."""
    session = await open_session(parts, pool_id, SessionRequest("api", name))
    await add(parts, pool_id, session.id, texts)
    await observe(parts, pool_id, session.id, wait=False)
    return session.id


async def add(parts: Parts, pool_id: str, session_id: str, texts: Sequence[str]) -> None:
    """Add a message of the user."""
    await ingest(parts, pool_id, session_id, [IncomingMessage(text, "user", text) for text in texts])


def paused(report: SessionReport) -> bool:
    """Whether a session's job waits for the daily cap, with no attempt counted."""
    return [(job.error_kind, job.state, job.attempts) for job in report.jobs] == [("SpendCapReached", "ready", 0)]


@pytest.fixture
async def capped(model: ModelServer, database: Database, clock: FakeClock) -> AsyncGenerator[Parts]:
    """Parts of a server with a cap of three dollars a day: two calls, since the second starts below the cap."""
    async with without_a_server(asking(model, database, clock, daily_cap_usd="3")) as parts:
        yield parts


async def test_a_pool_at_its_cap_keeps_everything_and_resumes_the_next_day(
    capped: Parts, who: Principal, model: ModelServer, clock: FakeClock
) -> None:
    # A job that was due earlier runs earlier; jobs that are due at the same time run in any order.
    for name in ("s1", "s2"):
        await session_of(capped, who.pool_id, name, "Let's use Redis.")
        clock.advance(seconds=1)
    waiting = await session_of(capped, who.pool_id, "s3", "And Postgres.")
    assert await run_due_jobs(capped, who.pool_id) == 3
    assert len(model.asked) == 2

    shown = await get_session(capped, who.pool_id, waiting)
    assert paused(shown)
    [job] = shown.jobs
    assert job.run_after == datetime(2026, 3, 3, tzinfo=UTC)
    assert job.last_error == (
        "The models of this pool have cost $4.0140 today (UTC); the cap is $3.00. Jobs wait until 2026-03-03 00:00 UTC."
    )
    today = (await report_spending(capped, who.pool_id, 1)).today
    assert (today.paused, today.ends_at) == (True, job.run_after)

    # Messages and events are stored; no model is called.
    await add(capped, who.pool_id, waiting, ["We never use Mongo."])
    clock.advance(hours=14)
    report = await receive_event(capped, who.pool_id, waiting, "session_end", "end")
    assert (report.observing, report.repeated) == (True, False)
    await run_due_jobs(capped, who.pool_id)
    shown = await get_session(capped, who.pool_id, waiting)
    assert paused(shown)
    assert (shown.session.last_seq, shown.session.observed_seq, len(model.asked)) == (2, 0, 2)

    clock.now = datetime(2026, 3, 3, tzinfo=UTC)
    assert await run_due_jobs(capped, who.pool_id) == 1
    shown = await get_session(capped, who.pool_id, waiting)
    assert (shown.session.observed_seq, shown.jobs, len(model.asked)) == (2, [], 3)
    assert "And Postgres." in model.prompt()
    assert "We never use Mongo." in model.prompt()


async def test_an_unusable_answer_that_reaches_the_cap_is_not_retried(
    capped: Parts, who: Principal, model: ModelServer
) -> None:
    await set_daily_cap(capped, "default", cap_usd=1, without_own=False, when_spent=None)
    model.say("I cannot answer in JSON.")
    session = await session_of(capped, who.pool_id, "s1", "Let's use Redis.")
    await run_due_jobs(capped, who.pool_id)
    assert len(model.asked) == 1
    assert paused(await get_session(capped, who.pool_id, session))


async def test_another_pool_has_its_own_cap(capped: Parts, who: Principal, model: ModelServer) -> None:
    team = await create_pool(capped, "team")
    await set_daily_cap(capped, "default", cap_usd=0, without_own=False, when_spent=None)
    ours = await session_of(capped, who.pool_id, "s1", "Let's use Redis.")
    theirs = await session_of(capped, team.id, "s1", "Let's use Redis.")
    for pool_id in (who.pool_id, team.id):
        await run_due_jobs(capped, pool_id)
    assert paused(await get_session(capped, who.pool_id, ours))
    assert (await get_session(capped, team.id, theirs)).session.observed_seq == 1
    assert len(model.asked) == 1
    assert (await report_spending(capped, who.pool_id, 1)).days == []


async def test_a_pool_set_to_extractive_goes_on_without_a_model_and_its_rows_say_so(
    capped: Parts, who: Principal, model: ModelServer
) -> None:
    await set_daily_cap(capped, "default", cap_usd=0, without_own=False, when_spent="extractive")
    texts = ["We decided to use Redis.", "Never use floats for money.", "We decided to use Redis for the sessions."]
    session = await session_of(capped, who.pool_id, "s1", *texts)
    assert await run_due_jobs(capped, who.pool_id) == 1
    rows = await list_memories(capped, who.pool_id, Filter(START), before=None, limit=10)
    assert len(rows) >= 2
    assert {row.author for row in rows} == {"extractive"}
    await reflect(capped, who.pool_id, session, wait=False)
    await run_due_jobs(capped, who.pool_id)
    shown = await get_session(capped, who.pool_id, session)
    assert (shown.session.observed_seq, shown.jobs) == (3, [])
    assert model.asked == []


async def test_waiting_for_a_paused_job_gives_a_hint_and_a_higher_cap_resumes_it(
    model: ModelServer, database_url: str
) -> None:
    async with served(model, database_url, daily_cap_usd="1") as client:
        here = {"ESKER_DATABASE_URL": database_url, "ESKER_URL": str(client.base_url)}
        model.say({"facts": [FACT]})
        first = await opened(client)
        await said(client, first, "Let's use Redis.")
        assert (await observed(client, first))["memories"] == 1
        for text in ("The river is wide.", "The harbour is closed on Sundays."):
            await client.post("/v1/memories", json={"content": text, "said_at": "2025-01-01"})
        session = await opened(client, "s2")
        await said(client, session, "Let's use Redis.")
        for answer in (
            await wait_for(client, session, "observe"),
            await client.post("/v1/reflect?wait=true", json={}),
        ):
            assert answer.status_code == 409
            assert "cost $2.0070 today (UTC); the cap is $1.00" in answer.json()["detail"]
            assert "esker pool set" in answer.json()["hint"]
        [job] = (await client.get(f"/v1/sessions/{session}")).json()["jobs"]
        assert "esker pool set" in job["hint"]
        assert (await spending(client))[0]["paused"] is True
        assert len(model.asked) == 1
        found = await asyncio.to_thread(esker, "doctor", "--quick", **here)
        assert "2 jobs wait for a higher cap or the next day. The models of this pool have cost $2.0070" in found.stdout
        spent = (await asyncio.to_thread(esker, "spend", **here)).stdout
        assert "The cap is reached: observing and reflecting wait until" in spent

        set_to = await asyncio.to_thread(esker, "pool", "set", "default", "--daily-cap", "100", **here)
        assert "may cost $100.00 a day, and then jobs wait" in set_to.stdout
        await until(client, f"/v1/sessions/{session}", lambda s: s["observed_messages"] == 1 and not s["jobs"])


async def test_a_pool_at_its_cap_is_not_reflected(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url, daily_cap_usd="0") as client:
        for text in ("The river is wide.", "The harbour is closed on Sundays."):
            session = await opened(client, text)
            await client.post("/v1/memories", json={"content": text, "session_id": session, "said_at": "2025-01-01"})
        answer = await client.post("/v1/reflect?wait=true", json={})
        assert (answer.status_code, "the cap is $0.00" in answer.json()["detail"]) == (409, True)
        assert (await client.get("/v1/reflections")).json()["reflections"] == []
    assert model.asked == []


async def test_concurrent_jobs_exceed_the_cap_by_one_call_at_most(model: ModelServer, database_url: str) -> None:
    release = asyncio.Event()
    model.say(ScriptedAnswer(json.dumps(NOTHING), wait_for=release))
    async with served(model, database_url, daily_cap_usd="1", job_concurrency="3") as client:
        sessions = [await opened(client, f"s{n}") for n in range(8)]
        for session in sessions:
            await said(client, session, "Let's use Redis.")
            await client.post(f"/v1/sessions/{session}/observe")
        await model.arrived.wait()
        release.set()
        ends = [await until(client, f"/v1/sessions/{session}", _ended) for session in sessions]
        today, spent = await spending(client)
    assert sum(end["observed_messages"] for end in ends) == 1 == len(model.asked)
    assert spent["observe"]["calls"] == 1
    assert today["spent_usd"] == pytest.approx(A_CALL)


def _ended(session: dict[str, Any]) -> bool:
    # Between two reads, a job may have ended while its result is not visible yet.
    waits = [job for job in session["jobs"] if job["error_kind"] == "SpendCapReached"]
    return session["observed_messages"] == 1 or bool(waits)


# Caps without a price ------------------------------------------------------------------------------------------------


def test_a_server_with_a_cap_and_a_model_without_a_price_does_not_start() -> None:
    for name in ("OBSERVER_MODEL", "REFLECTOR_MODEL"):
        environment = {"ESKER_DAILY_CAP_USD": "5", "ESKER_LLM_API_KEY": "sk-x", f"ESKER_{name}": "qwen3:8b"}
        with pytest.raises(Misconfigured, match="the price of qwen3:8b is not known") as refused:
            make_parts(Settings.from_environment(environment), Database("postgresql://nowhere"))
        assert "ESKER_LLM_PRICES" in (refused.value.hint or "")
        priced = Settings.from_environment({**environment, "ESKER_LLM_PRICES": "qwen3:8b=0/0"})
        assert make_parts(priced, Database("postgresql://nowhere")).observer


async def test_a_pools_own_cap_with_a_model_without_a_price_pauses_it_with_a_hint(
    model: ModelServer, database: Database, who: Principal, clock: FakeClock
) -> None:
    async with without_a_server(asking(model, database, clock, observer_model="qwen3:8b")) as unpriced:
        await set_daily_cap(unpriced, "default", cap_usd=5, without_own=False, when_spent=None)
        session = await session_of(unpriced, who.pool_id, "s1", "Let's use Redis.")
        await run_due_jobs(unpriced, who.pool_id)
        [job] = (await get_session(unpriced, who.pool_id, session)).jobs
    assert (job.error_kind, job.attempts, model.asked) == ("PriceUnknown", 0, [])
    assert "the price of qwen3:8b is unknown" in (job.last_error or "")

    # The server is restarted with a price.
    again = asking(model, database, clock, observer_model="qwen3:8b", llm_prices="qwen3:8b=0/0")
    async with without_a_server(again) as priced:
        assert await run_due_jobs(priced, who.pool_id) == 0
        await resume_paused_jobs(priced)
        assert await run_due_jobs(priced, who.pool_id) == 1
        assert (await get_session(priced, who.pool_id, session)).session.observed_seq == 1


async def test_a_restart_with_a_higher_cap_resumes_jobs_at_once(model: ModelServer, database_url: str) -> None:
    async with served(model, database_url, daily_cap_usd="0") as client:
        session = await opened(client)
        await said(client, session, "Let's use Redis.")
        assert (await wait_for(client, session, "observe")).status_code == 409
    async with served(model, database_url, daily_cap_usd="5") as client:
        await until(client, f"/v1/sessions/{session}", lambda s: s["observed_messages"] == 1)


@pytest.mark.parametrize("cap", [-0.01, 1e9, float("inf"), float("nan")])
async def test_an_invalid_cap_is_refused(parts: Parts, cap: float) -> None:
    with pytest.raises(InvalidInput, match="between 0 and"):
        await set_daily_cap(parts, "default", cap_usd=cap, without_own=False, when_spent=None)


async def test_a_pools_own_cap_can_be_removed(capped: Parts, who: Principal) -> None:
    own = await set_daily_cap(capped, "default", cap_usd=7, without_own=False, when_spent="extractive")
    assert (own.day, own.cap_usd, own.when_spent) == (START.date(), 7, "extractive")
    kept = await set_daily_cap(capped, "default", cap_usd=None, without_own=False, when_spent="wait")
    assert (kept.cap_usd, kept.when_spent) == (7, "wait")
    assert (await set_daily_cap(capped, "default", cap_usd=None, without_own=True, when_spent=None)).cap_usd == 3
    assert (await report_spending(capped, who.pool_id, 1)).today.cap_usd == 3
