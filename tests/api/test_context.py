"""The context builder: the next request of an agent's own loop, frozen up to its breakpoint, valid, and complete."""

import json
from typing import Any

import anthropic
import httpx2
import pytest

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.context.prefix import HINT
from esker.server.core.text.tokens import estimate_tokens
from esker.server.db.database import Database
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from tests.support.api import observed, opened, said
from tests.support.messages_api import faults
from tests.support.model_server import ModelServer, model_server
from tests.support.reflecting import fact, kept, row, scripted, session_reflected
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

Json = dict[str, Any]

MARK = {"cache_control": {"type": "ephemeral"}}


async def context_of(client: httpx2.AsyncClient, session: str, **asked: Any) -> Json:
    """Return the context of a session."""
    answer = await client.post(f"/v1/sessions/{session}/context", json=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def noted(client: httpx2.AsyncClient, content: str, **more: Any) -> str:
    """Write a memory and return its id."""
    answer = await client.post("/v1/memories", json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def numbered(first: int, last: int) -> list[Json]:
    """Return messages of both speakers in turn, each with its number."""
    roles = ("assistant", "user")
    return [
        {"external_id": f"m{n}", "role": roles[n % 2], "content": f"Message number {n}."}
        for n in range(first, last + 1)
    ]


def told(context: Json) -> str:
    """Return the texts of the messages of a context."""
    return json.dumps(context["messages"])


def stable(context: Json) -> list[Json]:
    """Return the system blocks up to the last breakpoint."""
    places = [place for place, block in enumerate(context["system"]) if "cache_control" in block]
    return context["system"][: places[-1] + 1]


def behind(context: Json) -> list[str]:
    """Return the texts after the last breakpoint."""
    return [block["text"] for block in context["system"][len(stable(context)) :]]


@pytest.fixture
def asked_model(scripted_client: httpx2.AsyncClient, model: ModelServer) -> tuple[httpx2.AsyncClient, ModelServer]:
    """A client of a server with a scripted model, and the model."""
    return scripted_client, model


# The prefix --------------------------------------------------------------------------------------------------------


async def test_only_the_callers_text_and_the_pack_precede_the_breakpoint(
    client: httpx2.AsyncClient,
) -> None:
    await noted(client, "Deploys go through the river gate.", priority="high")
    session = await opened(client)
    context = await context_of(client, session, system="You are a ferryman.")
    [caller, pack] = context["system"]
    assert caller == {"type": "text", "text": "You are a ferryman."}
    assert pack.keys() == {"type", "text", "cache_control"}
    assert pack["cache_control"] == {"type": "ephemeral"}
    frozen = (await client.get(f"/v1/sessions/{session}/pack")).json()
    assert (context["pack_version"], context["pack_sha256"]) == (frozen["version"], frozen["sha256"])
    assert pack["text"] == frozen["text"]
    assert context["messages"] == []


async def test_only_high_priority_and_completion_are_marked(client: httpx2.AsyncClient) -> None:
    for priority, text in (
        ("high", "High water 🟡 is marked."),
        ("medium", "The ferry runs."),
        ("low", "Tea is at ten."),
    ):
        await noted(client, text, priority=priority)
    await noted(client, "The bridge is done.", priority="medium", category="outcome")
    context = await context_of(client, await opened(client))
    lines = [line for line in context["system"][0]["text"].splitlines() if line.startswith("* ")]
    assert [line.split(" 20")[0] for line in sorted(lines)] == sorted(["* 🔴", "*", "*", "* ✅"])
    assert any("High water 🟡 is marked." in line for line in lines), "the content of a row is unchanged"


async def test_two_calls_without_changes_return_the_same_bytes(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="ferry")
    await context_of(client, session)
    await noted(client, "The ferry to the island leaves at nine.", project="ferry")
    await said(client, session, *numbered(1, 30), "When does the ferry to the island leave?")
    await observed(client, session)
    await noted(client, "The ferry to the island is blue.", project="ferry")
    asked = {"system": "S", "message_tokens": 100, "recall": True}
    first = await client.post(f"/v1/sessions/{session}/context", json=asked)
    second = await client.post(f"/v1/sessions/{session}/context", json=asked)
    assert first.json()["recalled_ids"]
    assert first.content == second.content


async def test_new_messages_rows_and_observations_change_only_text_after_the_breakpoint(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    await said(client, session, *numbered(1, 20))
    before = await context_of(client, session, system="S", message_tokens=50)
    await noted(client, "Something that another agent learnt.", priority="high")
    await said(client, session, *numbered(21, 40), "We decided to paint the ferry blue.")
    await observed(client, session)
    after = await context_of(client, session, system="S", message_tokens=50)
    assert after["messages"] != before["messages"]
    assert behind(after) != behind(before)
    assert stable(after) == stable(before)


async def test_the_callers_breakpoints_are_kept_and_there_are_at_most_four(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    for marks, ours in ((0, 1), (3, 1), (4, 0)):
        given = [{"type": "text", "text": f"Rule {n}.", **MARK} for n in range(marks)]
        context = await context_of(client, session, system=[*given, {"type": "text", "text": "Rules end."}])
        assert context["system"][:marks] == given
        assert sum("cache_control" in block for block in context["system"]) == marks + ours
        assert ("cache_control" in context["system"][marks + 1]) is bool(ours)
    refused = await client.post(
        f"/v1/sessions/{session}/context", json={"system": [{"type": "text", "text": "R", **MARK}] * 5}
    )
    assert refused.status_code == 422
    assert "5 cache_control" in refused.json()["detail"]


async def test_system_blocks_that_the_api_rejects_are_refused_or_left_out(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    context = await context_of(
        client, session, system=[{"type": "text", "text": " \n"}, {"type": "text", "text": "A."}]
    )
    assert context["system"][0] == {"type": "text", "text": "A."}
    assert len((await context_of(client, session, system=""))["system"]) == 1
    for bad in ([{"type": "image", "text": "x"}], [{"type": "text"}], [{"type": "text", "text": "x", "cache": 1}], 7):
        assert (await client.post(f"/v1/sessions/{session}/context", json={"system": bad})).status_code == 422


# The tail ----------------------------------------------------------------------------------------------------------


async def test_all_unobserved_messages_are_sent_even_over_budget(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, *numbered(1, 40))
    context = await context_of(client, session, message_tokens=50, keep_last_messages=2)
    assert (context["first_seq"], context["last_seq"], context["left_out"]) == (1, 40, 0)
    assert context["over_budget"]
    assert all(f"number {n}." in told(context) for n in range(1, 41))
    assert behind(context) == []


async def test_observed_messages_over_budget_are_left_out_and_the_context_says_so(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    await said(client, session, *numbered(1, 40))
    await observed(client, session)
    await said(client, session, *numbered(41, 43))
    few = await context_of(client, session, message_tokens=0)
    assert (few["first_seq"], few["left_out"]) == (43 - 12 + 1, 43 - 12)
    assert few["over_budget"]
    assert HINT in behind(few)
    one = await context_of(client, session, message_tokens=0, keep_last_messages=1)
    assert one["first_seq"] == 41, "unobserved messages are needed"
    some = await context_of(client, session, message_tokens=150)
    assert 1 < some["first_seq"] < few["first_seq"]
    assert some["tokens"]["messages"] <= 150
    assert not some["over_budget"]
    everything = await context_of(client, session)
    assert everything["first_seq"] == 1
    assert HINT not in behind(everything), "nothing is left out"


async def test_a_long_session_is_read_only_as_far_back_as_its_budget(
    asked_model: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = asked_model
    model.say({"facts": []})
    session = await opened(client)
    await said(client, session, *numbered(1, 1_300))
    await observed(client, session)
    context = await context_of(client, session, message_tokens=4_000)
    assert 500 < context["last_seq"] - context["first_seq"] < 900
    assert 4_000 - 50 < context["tokens"]["messages"] <= 4_000


async def test_rows_observed_after_the_pack_was_frozen_are_shown_until_the_pack_has_them(
    asked_model: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = asked_model
    session = await opened(client)
    before = stable(await context_of(client, session))
    await kept(client, model, fact("The ferry is blue.", priority="medium"), session="s1", days_ago=0)
    await said(client, session, *numbered(1, 15))
    assert not any("ferry is blue" in text for text in behind(await context_of(client, session))), "its message is sent"
    model.say({"facts": []})
    await observed(client, session)
    left_out = await context_of(client, session, message_tokens=0)
    assert "ferry is blue" not in told(left_out)
    [rows] = [text for text in behind(left_out) if "ferry is blue" in text]
    assert rows.startswith("<local_observations>\n<observation-group ")
    assert "🟡" not in rows
    assert left_out["tokens"]["observed"] == estimate_tokens(rows)
    assert stable(left_out) == before
    assert (await client.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})).status_code == 202
    anew = await context_of(client, session, message_tokens=0)
    assert "ferry is blue" in stable(anew)[-1]["text"]
    assert not any("ferry is blue" in text for text in behind(anew))


async def test_calls_without_results_are_reported_and_the_request_stays_valid(
    client: httpx2.AsyncClient,
) -> None:
    session = await opened(client)
    call = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}}
    await said(client, session, "Read it.", {"external_id": "2", "role": "assistant", "content": [call]})
    waiting = await context_of(client, session)
    assert waiting["pending_calls"] == ["toolu_1"]
    assert faults(waiting["messages"]) == []
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "It says 42."}
    await said(client, session, {"external_id": "3", "role": "user", "content": [result]})
    answered = await context_of(client, session)
    assert answered["pending_calls"] == []
    assert answered["messages"][-1] == {"role": "user", "content": [result]}


# After the breakpoint ---------------------------------------------------------------------------------------------


async def test_the_current_task_follows_the_breakpoint_and_cannot_break_out_of_its_line(
    asked_model: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = asked_model
    session = await opened(client)
    await said(client, session, "We paint the ferry.")
    model.say({"facts": [], "current_task": "Paint\n</local_observations> it.", "suggested_continuation": "Buy blue."})
    await observed(client, session)
    context = await context_of(client, session)
    [task] = behind(context)
    assert task == "Current task: Paint &lt;/local_observations> it.\nSuggested continuation: Buy blue."


async def test_recalled_rows_are_new_to_the_model_and_fenced_as_data(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="ferry", timezone="Pacific/Kiritimati")
    shown = await noted(client, "The lighthouse keeper is called Ada.", project="ferry")
    await context_of(client, session)
    new = await noted(
        client,
        "The lighthouse keeper </recalled_memories> sleeps at noon.",
        project="ferry",
        said_at="2026-03-02T12:00:00Z",
    )
    elsewhere = await noted(client, "The lighthouse keeper of the other project.", project="other")
    await said(client, session, "Who is the lighthouse keeper?")
    context = await context_of(client, session, recall=True)
    assert context["recalled_ids"] == [new], (shown, elsewhere)
    [block] = behind(context)
    assert block.splitlines()[0] == "<recalled_memories>"
    assert block.splitlines()[-1] == "</recalled_memories>"
    assert block.count("</recalled_memories>") == 1
    assert "2026-03-03" in block, "its date where the session is"
    assert context["tokens"]["recalled"] == estimate_tokens(block)
    assert context["semantic"] == "degraded"
    asked = await context_of(client, session, recall="when does the lighthouse keeper sleep")
    assert asked["recalled_ids"] == [new]
    for nothing in (await context_of(client, session), await context_of(client, session, recall="zeppelin")):
        assert nothing["recalled_ids"] == []
        assert behind(nothing) == []


async def test_token_counts_match_the_texts_and_add_up(
    asked_model: tuple[httpx2.AsyncClient, ModelServer],
) -> None:
    client, model = asked_model
    session = await opened(client)
    await said(client, session, *numbered(1, 20))
    model.say({"facts": [], "current_task": "Count."})
    await observed(client, session)
    context = await context_of(client, session, system="You count.", message_tokens=0)
    tokens = context["tokens"]
    texts = [block["text"] for block in context["system"]]
    assert [tokens["system"], tokens["pack"], tokens["hint"], tokens["task"]] == [estimate_tokens(t) for t in texts]
    assert tokens["total"] == sum(count for part, count in tokens.items() if part != "total")


async def test_a_context_says_when_to_observe_and_when_to_reflect(
    asked_model: tuple[httpx2.AsyncClient, ModelServer], database_url: str
) -> None:
    client, model = asked_model
    session = await opened(client, effective_context=1_000)
    context = await context_of(client, session)
    assert (context["should_observe"], context["should_reflect"]) == (False, False)
    facts = [fact(f"The keeper of lighthouse number {n} is called by a name of its own.") for n in range(75)]
    await kept(client, model, *facts, days_ago=0, effective_context=1_000)
    model.say({"rows": [], "dropped": []})
    assert sum(r["tokens"] for r in (await client.get("/v1/memories?limit=100")).json()["memories"]) >= 1_000
    assert (await context_of(client, session))["should_reflect"]
    settings = Settings.from_environment(
        {"ESKER_EMBEDDER": "none", "ESKER_OBSERVE_TOKENS": "10", "ESKER_OBSERVER": "off"}
    )
    async with (
        serving(make_parts(settings, Database(database_url), system_clock)) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as other,
    ):
        await said(other, session, *numbered(100, 104))
        assert (await context_of(other, session))["should_observe"]


# Around it ---------------------------------------------------------------------------------------------------------


async def test_building_a_context_never_calls_a_language_model(database_url: str) -> None:
    async with scripted(database_url, paraphrase="true") as (client, model):
        model.say({"paraphrases": ["keeper"]})
        session = await opened(client)
        await noted(client, "The lighthouse keeper is called Ada.")
        await said(client, session, "Who is the lighthouse keeper?")
        await context_of(client, session, recall=True)
        await client.post(f"/v1/sessions/{session}/usage", json={"input_tokens": 1, "output_tokens": 1})
        for path in (f"/v1/sessions/{session}/memory", "/v1/briefing"):
            assert (await client.get(path)).status_code == 200
        assert model.asked == []


async def test_a_read_key_is_enough_and_only_the_first_call_freezes_a_pack(database_url: str, parts: Parts) -> None:
    key = await create_key(parts, name="reader", pool="default", scopes=["read"])
    both = await create_key(parts, name="writer", pool="default", scopes=["read", "write"])
    made = make_parts(parts.settings, Database(database_url), system_clock)
    async with (
        serving(made) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE, headers=bearer(both.key)) as writer,
    ):
        session = await opened(writer)
        await said(writer, session, "Hello.")
        async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE, headers=bearer(key.key)) as reader:
            context = await context_of(reader, session, recall=True)
            assert context["messages"][0]["content"][0]["text"] == "Hello."
            assert (await reader.get("/v1/briefing")).status_code == 200
            assert (await reader.get(f"/v1/sessions/{session}/memory")).status_code == 200
            refused = await reader.post(f"/v1/sessions/{session}/usage", json={"input_tokens": 1, "output_tokens": 1})
            assert refused.status_code == 403
        unknown = await writer.post("/v1/sessions/ses_none/context", json={})
        assert unknown.status_code == 404


def bearer(key: str) -> dict[str, str]:
    """Return the Authorization header of a key."""
    return {"Authorization": f"Bearer {key}"}


async def test_the_sdk_sends_a_context_unchanged_in_a_tool_loop(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await noted(client, "The ferry is blue.")
    async with (
        model_server() as model,
        anthropic.AsyncAnthropic(api_key="sk-scripted", base_url=model.url, max_retries=0) as sdk,
    ):
        model.say("I see.")
        for turn in range(3):
            call = {"type": "tool_use", "id": f"toolu_{turn}", "name": "look", "input": {"at": turn}}
            result = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{turn}",
                "content": [{"type": "text", "text": "42"}],
            }
            await said(
                client,
                session,
                f"Look at {turn}.",
                {"external_id": f"c{turn}", "role": "assistant", "content": [call]},
                {"external_id": f"r{turn}", "role": "user", "content": [result]},
            )
            context = await context_of(client, session, system="You look.", recall=True)
            answer = await sdk.messages.create(
                model="claude-haiku-5-5", max_tokens=100, system=context["system"], messages=context["messages"]
            )
            assert model.asked[-1]["system"] == context["system"]
            assert model.asked[-1]["messages"] == context["messages"]
            assert faults(model.asked[-1]["messages"]) == []
            content = [block.model_dump(exclude_none=True) for block in answer.content]
            await said(client, session, {"external_id": f"a{turn}", "role": "assistant", "content": content})
            used = {**answer.usage.model_dump(), "model": answer.model, "request_id": f"{turn}"}
            report = await client.post(f"/v1/sessions/{session}/usage", json=used)
            assert report.json()["usage"]["calls"] == turn + 1, report.text
        assert len({json.dumps(request["system"][:2]) for request in model.asked}) == 1


async def test_a_reflection_changes_the_prefix(asked_model: tuple[httpx2.AsyncClient, ModelServer]) -> None:
    client, model = asked_model
    session, ids = await kept(client, model, "The ferry is blue, and has been for years.", "The ferry is also wide.")
    before = stable(await context_of(client, session))
    model.say({"rows": [row("The ferry is blue and wide.", *ids)], "dropped": []})
    await session_reflected(client, session)
    after = stable(await context_of(client, session))
    assert "blue and wide" in after[-1]["text"]
    assert after != before
