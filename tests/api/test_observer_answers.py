"""How the observer treats any answer of a model, and its requests: over a real socket, with scripted answers.

Fences, JSON in prose, errors of an endpoint, hanging models and images are in test_models.py.
"""

import asyncio
import json
import re
import threading
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.budgets import (
    KNOWN_MEMORY_TOKENS,
    MAX_OBSERVATION_TOKENS,
    MAX_TRANSCRIPT_TOKENS,
    PREVIOUS_OBSERVATION_TOKENS,
)
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.records import Principal
from esker.server.core.text.tokens import estimate_tokens
from esker.server.db.database import Database
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_model import ModelReply
from esker.server.providers.language_models import model_at
from esker.server.providers.model_observer import ObserverAnswer
from esker.server.usecases.authenticate import SCOPES, create_pool
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, get_memory, remember
from tests.support.api import observed, opened, said
from tests.support.model_server import ModelServer, ScriptedAnswer, Unmetered
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

REDIS: dict[str, Any] = {
    "text": "User decided to keep sessions in Redis.",
    "priority": "high",
    "category": "decision",
    "sources": [1],
}
CONFIG: dict[str, Any] = {
    "text": "Agent changed config.yaml.",
    "priority": "medium",
    "category": "outcome",
    "sources": [2],
}
BOTH = [REDIS, CONFIG]
MESSAGES: list[dict[str, Any]] = [
    {"external_id": "m1", "role": "user", "content": "Keep sessions in Redis.", "sent_at": "2026-03-02T10:00:00Z"},
    {"external_id": "m2", "role": "assistant", "content": "I changed config.yaml.", "sent_at": "2026-03-02T10:05:00Z"},
]


@asynccontextmanager
async def asking(database_url: str, model: ModelServer, **settings: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server with the scripted model."""
    environment = {"ESKER_EMBEDDER": "none", "ESKER_LLM_BASE_URL": model.url, **settings}
    parts = make_parts(Settings.from_environment(environment), Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected:
        yield connected


@pytest.fixture
def client(scripted_client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """A client of such a server with the usual settings."""
    return scripted_client


async def talked(client: httpx2.AsyncClient, **more: Any) -> str:
    """Return a session with the two messages that the facts are about."""
    session = await opened(client, **more)
    await said(client, session, *MESSAGES)
    return session


async def rows(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """Return all live memories, in the order of what they cite."""
    live = (await client.get("/v1/memories?limit=1000")).json()["memories"]
    return sorted(live, key=lambda row: row["source_seqs"])


async def texts(client: httpx2.AsyncClient) -> list[str]:
    """Return the contents of all live memories."""
    return [row["content"] for row in await rows(client)]


async def assert_lost_nothing(client: httpx2.AsyncClient, session: str, error: str) -> None:
    """See that all messages of a session still wait, and why."""
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["observed_messages"], shown["groups"], shown["lost"]) == (0, 0, 0)
    assert shown["unobserved_tokens"] > 0
    [job] = shown["jobs"]
    assert (job["state"], error in job["last_error"]) == ("ready", True)
    assert await rows(client) == []


# Shapes ------------------------------------------------------------------------------------------------------------

TAGGED = """<observations>
Date: Mar 2, 2026
* 🔴 (10:00) User decided to keep sessions in Redis. [1]
* 🟡 (10:05) Agent changed config.yaml. [2]
* 🟢 User mentioned sessions. [1]
</observations>
<current-task>Move the sessions.</current-task>
<suggested-response>Run the tests.</suggested-response>
<thread-title>Sessions</thread-title>"""
IN_WORDS = """<observations>
CRITICAL: User decided to keep sessions in Redis. (sources: 1)
IMPORTANT: Agent changed config.yaml. (sources: 2)
NOTE: User mentioned sessions. (sources: 1)
</observations>"""
LISTED = """Here is what I found:

- [high] User decided to keep sessions in Redis. [1]
- [medium] Agent changed config.yaml. [2]
- [low] User mentioned sessions. [1]"""


@pytest.mark.parametrize("answer", [TAGGED, IN_WORDS, LISTED], ids=["marks", "words", "list"])
async def test_facts_in_text_form_are_accepted_at_the_first_call(
    client: httpx2.AsyncClient, model: ModelServer, answer: str
) -> None:
    model.say(answer)
    session = await talked(client)
    report = await observed(client, session)
    assert (report["memories"], report["refused"], len(model.asked)) == (3, {}, 1)
    found = {row["content"]: (row["priority"], row["source_seqs"], row["said_at"][11:16]) for row in await rows(client)}
    assert found == {
        "User decided to keep sessions in Redis.": ("high", [1], "10:00"),
        "Agent changed config.yaml.": ("medium", [2], "10:05"),
        "User mentioned sessions.": ("low", [1], "10:00"),
    }


async def test_tagged_text_also_sets_task_continuation_and_title(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say(TAGGED)
    session = await talked(client)
    await observed(client, session)
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    names = ("current_task", "suggested_continuation", "thread_title")
    assert [shown[name] for name in names] == ["Move the sessions.", "Run the tests.", "Sessions"]


async def test_a_line_without_sources_is_attributed_by_its_words_or_refused(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say("- Agent changed config.yaml.\n- Elephants dislike quantum lasagna.")
    session = await talked(client)
    report = await observed(client, session)
    assert (report["memories"], report["refused"]) == (1, {"no_source": 1})
    assert [row["source_seqs"] for row in await rows(client)] == [[2]]


async def test_prose_is_sent_back_once_and_then_fails_visibly(client: httpx2.AsyncClient, model: ModelServer) -> None:
    prose = "The user would like sessions to be in Redis, and the agent agreed to that."
    model.say(prose)
    session = await talked(client)
    answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
    assert (answer.status_code, "twice" in answer.json()["detail"]) == (502, True)
    assert [[m["role"] for m in asked["messages"]] for asked in model.asked] == [
        ["user"],
        ["user", "assistant", "user"],
    ]
    assert model.asked[1]["messages"][1]["content"] == prose
    await assert_lost_nothing(client, session, "cannot be used")


@pytest.mark.parametrize(
    "shaped",
    [
        lambda facts: json.dumps(facts),
        lambda facts: "```json\n" + json.dumps(facts, indent=2) + "\n```",
        lambda facts: "\n".join(json.dumps({"facts": [fact]}) for fact in facts),
        lambda facts: json.dumps([{"facts": [fact]} for fact in facts]),
    ],
    ids=["list", "list in a fence", "an object a fact", "list of objects"],
)
async def test_facts_in_another_shape_than_asked_for_are_all_kept(
    client: httpx2.AsyncClient, model: ModelServer, shaped: Any
) -> None:
    model.say(shaped(BOTH))
    session = await talked(client)
    report = await observed(client, session)
    assert (await texts(client), report["refused"]) == ([REDIS["text"], CONFIG["text"]], {})


@pytest.mark.parametrize(
    "bad",
    ['{"text": "No priority.", "sources": [1]}', '"just words"', "7", '{"text": "say "hi" to", "priority": "low"}'],
    ids=["a field is missing", "words", "a number", "no JSON"],
)
async def test_a_malformed_fact_among_good_ones_is_counted_and_not_sent_back(
    client: httpx2.AsyncClient, model: ModelServer, bad: str
) -> None:
    first, last = json.dumps(REDIS), json.dumps(CONFIG)
    slots = '"used_memories": [], "current_task": "Move them.", "thread_title": "Sessions"'
    model.say(f'{{"facts": [{first}, {bad}, {last}], {slots}}}')
    session = await talked(client)
    report = await observed(client, session)
    assert (report["memories"], report["refused"], len(model.asked)) == (2, {"malformed": 1}, 1)
    assert await texts(client) == [REDIS["text"], CONFIG["text"]]


async def test_a_malformed_fact_does_not_affect_the_task_or_the_used_memories(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    note = (await client.post("/v1/memories", json={"content": "Sessions are in files."})).json()
    session = await opened(client)
    await client.get(f"/v1/sessions/{session}/pack")
    await said(client, session, "Keep sessions in Redis.")
    slots = {"used_memories": [note["id"]], "current_task": "Move them.", "thread_title": 7}
    model.say({"facts": [REDIS, {"text": "x"}], **slots})
    await observed(client, session)
    shown = (await client.get(f"/v1/sessions/{session}")).json()
    assert (shown["current_task"], shown["thread_title"]) == ("Move them.", None)
    used = (await client.get(f"/v1/memories/{note['id']}")).json()
    assert used["last_used_at"] != note["last_used_at"]


# Too much, and cut off ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cut_off",
    [
        json.dumps({"facts": BOTH})[:-60] + '{"text": "Half a fa',
        json.dumps({"facts": [*BOTH, CONFIG | {"text": "Half a fact."}]})[:-70],
        "<observations>\n- 🔴 User decided to keep sessions in Redis. [1]\n- Agent changed config.yaml. [2]\n- Us",
    ],
    ids=["in a text", "in a fact", "tagged"],
)
async def test_an_answer_that_was_cut_off_is_sent_back_with_its_length_and_then_whole_facts_are_kept(
    client: httpx2.AsyncClient, model: ModelServer, cut_off: str
) -> None:
    begun = ScriptedAnswer(cut_off, stop_reason="max_tokens")
    model.say(begun, begun, {"facts": [CONFIG]})
    session = await talked(client)
    await observed(client, session)
    assert "cut off after 20 tokens" in model.prompt(1)  # 20 is what the scripted model says it wrote
    assert await texts(client) == [REDIS["text"], CONFIG["text"]]


async def test_facts_of_the_end_are_kept_when_an_answer_was_cut_off_before_it(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    facts = [fact | {"text": fact["text"].strip() + "."} for fact in many(30)]
    room = 4

    def answer(asked: dict[str, Any]) -> ScriptedAnswer:
        shown = "\n".join(block["text"] for block in asked["messages"][0]["content"])
        seqs = [int(seq) for seq in re.findall(r"^\[(\d+)\]", shown, re.MULTILINE)]
        told = json.dumps({"facts": [facts[seq - 1] | {"sources": [seq]} for seq in seqs[:room]]})
        return (
            ScriptedAnswer(told)
            if len(seqs) <= room
            else ScriptedAnswer(told[:-2] + ', {"text": "Us', stop_reason="max_tokens")
        )

    model.say(answer)
    session = await opened(client)
    await said(
        client,
        session,
        *(
            {"external_id": f"m{n}", "role": "assistant" if n % 9 else "user", "content": fact["text"]}
            for n, fact in enumerate(facts)
        ),
    )
    report = await observed(client, session)
    assert await texts(client) == [fact["text"] for fact in facts]
    assert report["refused"]["cut_off"] > 0
    state = (await client.get(f"/v1/sessions/{session}")).json()
    assert (state["coverage"], state["lost"], state["unobserved_tokens"], state["jobs"]) == (1, 0, 0, [])


async def test_an_answer_that_was_cut_off_is_not_used_when_a_whole_one_follows(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say(ScriptedAnswer(json.dumps({"facts": BOTH}), stop_reason="max_tokens"), {"facts": [CONFIG]})
    session = await talked(client)
    assert (await observed(client, session))["memories"] == 1


def many(count: int) -> list[dict[str, Any]]:
    """Return `count` facts of equal length that share no word but the first."""
    letters = "bcdfghjklmnpqrst"
    names = [f"{letters[n // 256]}{letters[n // 16 % 16]}{letters[n % 16]}o" for n in range(count)]
    return [REDIS | {"text": f"User {name} " * 4} for name in names]


async def test_over_budget_the_answer_is_sent_back_with_its_count_and_then_whole_facts_are_kept(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    facts = [fact | {"text": fact["text"].strip() + "."} for fact in many(1_200)]
    each = {estimate_tokens(fact["text"]) for fact in facts}
    assert len(each) == 1
    fitting = MAX_OBSERVATION_TOKENS // each.pop()
    model.say({"facts": facts})
    session = await talked(client)
    report = await observed(client, session)
    assert len(model.asked) == 2
    assert f"{sum(estimate_tokens(fact['text']) for fact in facts):,} tokens" in model.prompt()
    assert (report["memories"], report["refused"]) == (fitting, {"over_budget": len(facts) - fitting})
    assert sorted(await texts(client)) == sorted(fact["text"] for fact in facts[:fitting])


@pytest.mark.parametrize("times", [1_000, 3_000])
async def test_a_looping_model_leaves_one_row_beside_its_other_facts(
    client: httpx2.AsyncClient, model: ModelServer, times: int
) -> None:
    model.say({"facts": [CONFIG, *[REDIS] * times]})
    session = await talked(client)
    assert (await observed(client, session))["memories"] == 2
    assert await texts(client) == [REDIS["text"], CONFIG["text"]]
    assert len(model.asked) <= 2


# Untrue facts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "named"),
    [
        ("User decided to keep sessions in redis-cluster.conf.", "redis-cluster.conf"),
        ("User decided to keep sessions for 48 hours.", "48"),
        ("User said “never use Postgres” about sessions.", "never use Postgres"),
    ],
    ids=["identifier", "number", "quotation"],
)
async def test_an_ungrounded_fact_is_sent_back_once_then_refused_and_counted(
    client: httpx2.AsyncClient, model: ModelServer, lie: str, named: str
) -> None:
    model.say({"facts": [REDIS | {"text": lie}, CONFIG]})
    session = await talked(client)
    report = await observed(client, session)
    assert len(model.asked) == 2
    assert named in model.prompt().split("cannot be used:")[1]
    assert (report["memories"], report["refused"]) == (1, {"ungrounded": 1})
    assert await texts(client) == [CONFIG["text"]]


async def test_a_corrected_fact_is_kept_and_nothing_is_refused(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say({"facts": [REDIS | {"text": "User decided on 48 sessions."}]}, {"facts": [REDIS]})
    session = await talked(client)
    report = await observed(client, session)
    assert (report["memories"], report["refused"]) == (1, {})


async def test_the_examples_of_the_prompt_are_refused_as_facts(client: httpx2.AsyncClient, model: ModelServer) -> None:
    prompt = files("esker.server.providers").joinpath("prompts/observer.md").read_text()
    example = json.loads(prompt[prompt.index('{"facts"') : prompt.rindex("}") + 1])
    echoes = [fact | {"sources": [1]} for fact in example["facts"]]
    assert echoes
    model.say({"facts": [*echoes, CONFIG]})
    session = await talked(client)
    report = await observed(client, session)
    assert len(model.asked) == 2
    assert (report["memories"], report["refused"]) == (1, {"echo": len(echoes)})


@pytest.mark.parametrize("sources", [[3], [1, 3], [0], [-1]])
async def test_messages_that_were_not_shown_are_refused_as_sources(
    client: httpx2.AsyncClient, model: ModelServer, sources: list[int]
) -> None:
    model.say({"facts": [REDIS | {"sources": sources}, CONFIG]})
    session = await talked(client)
    report = await observed(client, session)
    assert (report["memories"], report["refused"]) == (1, {"unknown_source": 1})


async def test_a_model_cannot_use_or_replace_rows_that_it_was_not_shown(
    client: httpx2.AsyncClient, model: ModelServer, parts: Parts
) -> None:
    pool = await create_pool(parts, "strangers")
    stranger = Principal(pool.id, pool.name, "test", frozenset(SCOPES))
    old = "User decided to keep sessions in files."
    [foreign] = await remember(parts, stranger, [Note(old)])
    unseen = (await client.post("/v1/memories", json={"content": old, "project": "another"})).json()
    lies = [foreign, unseen["id"], "mem_0", "Robert'); DROP TABLE memories"]
    model.say(*({"facts": [REDIS | {"replaces": lie}], "used_memories": lies} for lie in lies))
    for number in range(len(lies)):
        session = await opened(client, f"s{number}", project=f"shop{number}")
        await said(client, session, *MESSAGES)
        report = await observed(client, session)
        assert (report["memories"], report["replaced"]) == (1, 0)
        assert "What the agent knew:" not in model.prompt()
    assert (await client.get(f"/v1/memories/{unseen['id']}")).json() == unseen
    theirs = await get_memory(parts, pool.id, foreign)
    assert (theirs.superseded_at, theirs.last_used_at) == (None, theirs.created_at)


# A provider that fails ---------------------------------------------------------------------------------------------


async def test_a_refusal_is_reported_and_not_retried(client: httpx2.AsyncClient, model: ModelServer) -> None:
    model.say(ScriptedAnswer("I will not.", stop_reason="refusal"))
    session = await talked(client)
    answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
    assert (answer.status_code, len(model.asked)) == (502, 1)
    await assert_lost_nothing(client, session, "refused")


async def test_a_retry_waits_as_long_as_the_provider_says(client: httpx2.AsyncClient, model: ModelServer) -> None:
    clock = asyncio.get_running_loop().time
    times: list[float] = []

    def at(answer: ScriptedAnswer) -> Any:
        return lambda _: (times.append(clock()), answer)[1]

    busy = ScriptedAnswer("slow down", status=429, headers={"retry-after": "1"})
    model.say(at(busy), at(ScriptedAnswer(json.dumps({"facts": BOTH}))))
    session = await talked(client)
    assert (await observed(client, session))["memories"] == 2
    first, second = times
    assert second - first >= 1


@pytest.mark.parametrize("status", [429, 500, 529])
async def test_retries_of_a_busy_provider_end_and_lose_nothing(
    database_url: str, model: ModelServer, status: int
) -> None:
    # A server of its own: the breaker of the provider stays open.
    async with asking(database_url, model) as client:
        model.say(ScriptedAnswer("busy", status=status, headers={"retry-after": "0.01"}))
        session = await talked(client)
        answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
        assert (answer.status_code, str(status) in answer.json()["detail"]) == (502, True)
        assert len(model.asked) == 3
        await assert_lost_nothing(client, session, str(status))


async def test_a_hanging_call_times_out_retries_included_and_is_counted_as_an_attempt(
    database_url: str, model: ModelServer
) -> None:
    release = asyncio.Event()
    busy, hangs = (
        ScriptedAnswer("busy", status=529, headers={"retry-after": "0.01"}),
        ScriptedAnswer("{}", wait_for=release),
    )
    async with asking(database_url, model, ESKER_LLM_TIMEOUT_SECONDS="1") as client:
        model.say(busy, hangs)
        session = await talked(client)
        answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
        assert (answer.status_code, "ESKER_LLM_TIMEOUT_SECONDS" in answer.json()["hint"]) == (502, True)
        await assert_lost_nothing(client, session, "did not answer within 1 seconds")
        assert len(model.asked) == 2
        [job] = (await client.get(f"/v1/sessions/{session}")).json()["jobs"]
        assert job["attempts"] == 1
        model.say({"facts": BOTH})
        report = await observed(client, session)
        assert (report["groups"], report["memories"], len(model.asked)) == (1, 2, 3)
        release.set()  # a late answer has no effect
        assert await texts(client) == [REDIS["text"], CONFIG["text"]]


async def test_reading_an_answer_does_not_block_the_event_loop(model: ModelServer) -> None:
    loop = asyncio.get_running_loop()

    def read(reply: ModelReply) -> str:
        went_on = threading.Event()
        loop.call_soon_threadsafe(went_on.set)
        assert went_on.wait(5), "nothing else could run meanwhile"
        if not reply.last:
            raise ValueError("not good enough")
        return reply.text

    asked = model_at("m", Endpoint(model.url))
    model.say("first", "second")
    answered = await asked.ask(
        "", [{"type": "text", "text": "?"}], ObserverAnswer, read, max_tokens=9, meter=Unmetered()
    )
    await asked.close()
    assert answered.value == "second"


# Requests ----------------------------------------------------------------------------------------------------------


def section(prompt: str, heading: str) -> list[str]:
    """Return the rows below a heading of a prompt."""
    lines = prompt.splitlines()
    if heading not in lines:
        return []
    below = lines[lines.index(heading) + 1 :]
    return below[: next(n for n, line in enumerate(below) if not line.startswith("- mem_"))]


def tokens(lines: Sequence[str]) -> int:
    """Return the estimated tokens of lines."""
    return estimate_tokens("\n".join(lines))


async def test_rows_are_shown_with_ids_below_a_heading_and_within_a_budget(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    notes = [{"content": fact["text"].replace("User", "Note")} for fact in many(400)]
    ids = (await client.post("/v1/memories/batch", json={"memories": notes})).json()["ids"]
    session = await talked(client)
    await client.get(f"/v1/sessions/{session}/pack")
    model.say({"facts": [fact | {"text": fact["text"][:13]} for fact in many(1_000)]}, {"facts": []})
    own = (await observed(client, session))["memory_ids"]
    await said(client, session, "And now?")
    await observed(client, session)
    known, earlier = section(model.prompt(), "What the agent knew:"), section(model.prompt(), "Earlier observations:")
    assert {line.split()[1] for line in known} <= set(ids)
    assert {line.split()[1] for line in earlier} <= set(own)
    assert KNOWN_MEMORY_TOKENS * 0.9 < tokens(known) <= KNOWN_MEMORY_TOKENS
    assert PREVIOUS_OBSERVATION_TOKENS * 0.9 < tokens(earlier) <= PREVIOUS_OBSERVATION_TOKENS


async def test_a_gap_of_ten_minutes_is_marked_and_times_are_local(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    model.say({"facts": []})
    session = await opened(client, timezone="America/St_Johns")
    sent = ["2026-03-02T23:00:00Z", "2026-03-02T23:09:59Z", "2026-03-02T23:19:59Z", "2026-03-05T02:00:00Z"]
    await said(
        client,
        session,
        *({"external_id": f"m{n}", "role": "user", "content": f"Text {n}.", "sent_at": t} for n, t in enumerate(sent)),
    )
    await observed(client, session)
    assert model.prompt().split("Transcript:\n")[1].splitlines() == [
        *["[1] user, Monday 2026-03-02 19:30", "Text 0."],
        *["[2] user, Monday 2026-03-02 19:39", "Text 1."],
        *["[10 minutes later]", "[3] user, Monday 2026-03-02 19:49", "Text 2."],
        *["[2 days later]", "[4] user, Wednesday 2026-03-04 22:30", "Text 3."],
    ]


def called(name: str, call_id: str, arguments: dict[str, Any], result: str) -> list[dict[str, Any]]:
    """Return the two messages of a tool call."""
    use = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
    return [
        {"external_id": f"{call_id}-call", "role": "assistant", "content": [use]},
        {"external_id": f"{call_id}-result", "role": "user", "content": [answer]},
    ]


async def test_memory_and_rules_files_are_not_shown_but_recalled_rows_may_be_named_as_used(
    client: httpx2.AsyncClient, model: ModelServer
) -> None:
    note = (await client.post("/v1/memories", json={"content": "Our river is the Rhine.", "project": "other"})).json()
    session = await opened(client, project="shop")
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()["text"]
    recalled = f"<recalled_memories>\n- {note['id']} SECONDHAND river\n</recalled_memories>"
    await said(
        client,
        session,
        {"external_id": "u1", "role": "user", "content": f"{pack}\nWhich river?"},
        *called("mcp__esker__recall_memory", "t1", {"query": "river"}, recalled),
        *called("Read", "t2", {"file_path": "/repo/CLAUDE.md"}, "RULES of the house"),
        *called("Bash", "t3", {"command": "ls"}, "rhine.txt"),
        {"external_id": "u2", "role": "user", "content": "<system-reminder>REMINDED</system-reminder>Thanks."},
    )
    model.say({"facts": [], "used_memories": [note["id"]]})
    await observed(client, session)
    transcript = model.prompt().split("Transcript:\n")[1]
    for injected in ("SECONDHAND", "RULES", "REMINDED", "observations>"):
        assert injected not in transcript
    for there in ("Which river?", "[toolCall mcp__esker__recall_memory(", "[toolResult Bash: rhine.txt]", "Thanks."):
        assert there in transcript
    assert section(model.prompt(), "What the agent knew:") == [
        f"- {note['id']} {note['said_at'][:10]} {note['priority']} Our river is the Rhine."
    ]
    used = (await client.get(f"/v1/memories/{note['id']}")).json()
    assert used["last_used_at"] > note["last_used_at"]


LONG, LONGER = "output " * 5_000, "output " * 75_000


@pytest.mark.parametrize(
    ("message", "cap"),
    [
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Do", "input": {"text": LONG}}]},
            1_500,
        ),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": LONGER}]}, 200),
        (
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": LONG, "is_error": True}],
            },
            1_500,
        ),
        ({"role": "tool", "content": LONG}, 200),
    ],
    ids=["arguments", "result", "failure", "tool message"],
)
async def test_a_long_text_from_a_tool_costs_no_more_than_the_cap(
    client: httpx2.AsyncClient, model: ModelServer, message: dict[str, Any], cap: int
) -> None:
    model.say({"facts": []})
    session = await opened(client)
    await said(client, session, {"external_id": "m1", **message})
    await observed(client, session)
    shown = model.prompt().split("Transcript:\n")[1].splitlines()[1]
    assert cap * 2 / 3 < len(shown) <= cap + len("[toolResult Write (error): ]")


OVERHEAD_TOKENS = 100
"""Tokens of the prompt besides the rows."""


@pytest.mark.parametrize("texts", [25, pytest.param(100, marks=pytest.mark.slow)])
async def test_a_backlog_drains_in_order_with_prompts_of_constant_size(
    client: httpx2.AsyncClient, model: ModelServer, texts: int
) -> None:
    short = [fact | {"text": fact["text"][:9] + "."} for fact in many(3_000)]

    def answer(_: dict[str, Any]) -> ScriptedAnswer:
        first = int(re.findall(r"^\[(\d+)\]", model.prompt(), re.MULTILINE)[0])
        shown = len(model.asked)
        facts = [fact | {"sources": [first]} for fact in short[150 * shown : 150 * (shown + 1)]]
        return ScriptedAnswer(json.dumps({"facts": facts}))

    model.say(answer)
    session = await opened(client)
    start = datetime(2026, 3, 2, tzinfo=UTC)
    words = [*(f"User {n + 1}. " + "word " * 2_950 for n in range(texts)), *["Yes."] * 5 * texts]
    sent = [start + timedelta(minutes=11 * n) for n in range(len(words))]
    batch = [
        {"external_id": f"m{n}", "role": "user", "content": text, "sent_at": time.isoformat()}
        for n, (text, time) in enumerate(zip(words, sent, strict=True))
    ]
    assert (await said(client, session, *batch))["unobserved_tokens"] >= 2_950 * texts
    # The first slices may have been observed before the request.
    await observed(client, session)
    groups = (await client.get(f"/v1/sessions/{session}")).json()["groups"]
    assert groups == len(model.asked) > 2_950 * texts // MAX_TRANSCRIPT_TOKENS
    prompts = [model.prompt(number) for number in range(len(model.asked))]
    shown = [int(number) for prompt in prompts for number in re.findall(r"^\[(\d+)\] user", prompt, re.MULTILINE)]
    assert shown == list(range(1, len(words) + 1))
    for prompt in prompts:
        before, transcript = prompt.split("Transcript:\n")
        assert estimate_tokens(transcript) <= MAX_TRANSCRIPT_TOKENS
        assert estimate_tokens(before) <= PREVIOUS_OBSERVATION_TOKENS + KNOWN_MEMORY_TOKENS + OVERHEAD_TOKENS
    state = (await client.get(f"/v1/sessions/{session}")).json()
    assert (state["coverage"], state["lost"], state["unobserved_tokens"], state["jobs"]) == (1, 0, 0, [])
