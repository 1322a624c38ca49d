"""Passages: messages are found word for word, covered by the facts taken from them, and can be forgotten."""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.background import beside, keep_up, run_jobs
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.conversation.passages import passages_of
from esker.server.core.errors import TooLarge
from esker.server.core.json_input import Json
from esker.server.core.records import Filter, Principal
from esker.server.db.database import Database
from esker.server.providers.embedders import LocalEmbedder
from esker.server.providers.text_processes import TextProcesses
from esker.server.usecases import cut_passages as cutting
from esker.server.usecases import ingest as ingesting
from esker.server.usecases import switch_passages as switching
from esker.server.usecases.cut_passages import cut_all_behind
from esker.server.usecases.forget import forget_text
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import list_memories
from esker.server.usecases.switch_passages import switch_passages
from tests.support.api import contents, observed, opened, recalled, said
from tests.support.clock import FakeClock
from tests.support.databases import dump
from tests.support.model_server import ScriptedAnswer
from tests.support.reflecting import OVERTAKEN, fact, kept, pool_reflected, row, scripted
from tests.support.serving import serving, serving_meaning
from tests.support.waiting import PATIENCE, eventually

FERRY = "The ferry to Skye leaves at seven in the morning."
RIVER = "Our river is the Rhine."
LONG = "as everybody in the whole town has been telling everybody else for as long as anybody can remember."


def turn(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message of a session."""
    return {"external_id": f"m{number}", "role": role, "content": content, **more}


def tiers(answer: dict[str, Any]) -> list[str]:
    """Return the tiers of the hits of a recall, in order."""
    return [hit["tier"] for hit in answer["hits"]]


def stored(owner_url: str) -> list[tuple[int, int, str]]:
    """Return the spans and texts of all passages, in order."""
    with psycopg.connect(owner_url) as connection:
        return connection.execute(
            "SELECT first_seq, last_seq, text FROM passages ORDER BY session_id, first_seq"
        ).fetchall()


# Found ----------------------------------------------------------------------------------------------------------------


async def test_a_message_is_found_by_its_words_right_after_it_was_posted(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="trip")
    await said(client, session, turn(1, "user", FERRY), turn(2, "assistant", "I shall set an alarm."))
    [hit] = (await recalled(client, "When does the ferry to Skye leave?"))["hits"]
    assert (hit["tier"], hit["project"], hit["session_id"], hit["trust"]) == ("passage", "trip", session, "assistant")
    assert hit["content"] == f"user: {FERRY}\nassistant: I shall set an alarm."
    assert hit["sources"] == [{"session_id": session, "seqs": [1, 2], "memory_ids": []}]
    assert {hit[name] for name in ("kind", "priority", "category", "superseded_by")} == {None}
    assert (hit["tags"], hit["same"], hit["passages"], hit["tentative"], hit["truncated"]) == ([], [], [], False, False)


async def test_a_message_is_found_by_its_meaning_after_the_worker_embedded_it(
    database_url: str, minilm: LocalEmbedder
) -> None:
    async with (
        serving_meaning(database_url, minilm) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client,
    ):
        session = await opened(client)
        await said(client, session, "My sister lives in Rotterdam and breeds whippets.")
        question = "Does anybody in the family keep dogs?"

        def is_embedded(answer: dict[str, Any]) -> bool:
            assert answer["pending"] in (0, 1), "texts without a vector are counted"
            return not answer["pending"] and answer["semantic"] != "degraded"

        [hit] = (await eventually(lambda: recalled(client, question, explain=True), is_embedded))["hits"]
    assert (hit["tier"], hit["parts"]["vector_rank"], hit["parts"]["keyword_rank"]) == ("passage", 1, None)


async def test_a_long_message_is_found_by_its_end_and_excerpted_there(client: httpx2.AsyncClient) -> None:
    filler = "\n".join(f"Line {n} is about nothing in particular, as far as anybody can tell." for n in range(200))
    session = await opened(client)
    await said(client, session, turn(1, "user", f"{filler}\nThe vault is in Xanadu.\n{filler}"))
    [hit] = (await recalled(client, "vault Xanadu"))["hits"]
    assert "The vault is in Xanadu." in hit["content"]
    assert hit["truncated"]
    assert len(hit["content"]) < 2_000
    whole = (await client.get(f"/v1/memories/{hit['id']}")).json()
    assert whole["text"] == f"user: {filler}\nThe vault is in Xanadu.\n{filler}"


async def test_the_tier_limits_where_recall_searches(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, RIVER)
    await observed(client, session)
    await said(client, session, "I swam in the river yesterday.")
    assert tiers(await recalled(client, "river", tier="memories")) == ["memory"]
    assert set(tiers(await recalled(client, "river", tier="passages"))) == {"passage"}
    await said(client, session, *(turn(n, "user", f"The weather is fine on day {n}.") for n in range(9)))
    assert tiers(await recalled(client, "swam", tier="both")) == ["passage"]
    assert tiers(await recalled(client, "swam", tier="memories")) == []


@pytest.mark.parametrize("asked", [{"kinds": ["observation"]}, {"tags": ["x"]}, {"min_priority": "medium"}])
async def test_filters_that_only_memories_have_exclude_passages(
    client: httpx2.AsyncClient, asked: dict[str, Any]
) -> None:
    session = await opened(client)
    await said(client, session, FERRY)
    assert tiers(await recalled(client, "ferry Skye")) == ["passage"]
    assert (await recalled(client, "ferry Skye", **asked))["hits"] == []
    refused = await client.post("/v1/recall", json={"query": "ferry", "tier": "passages", **asked})
    assert refused.status_code == 422
    assert "no kind, tag or priority" in refused.json()["detail"]


async def test_passages_respect_scope_and_time(client: httpx2.AsyncClient) -> None:
    one, two = await opened(client, "s1", project="p"), await opened(client, "s2", project="q")
    none = await opened(client, "s3")
    places = {one: ("Rhine", 1), two: ("Elbe", 2), none: ("Po", 3)}
    for session, (river, month) in places.items():
        text, sent_at = f"I swam in the {river} river.", f"2026-0{month}-10T00:00:00Z"
        await said(client, session, turn(1, "user", text, sent_at=sent_at))

    async def found(**more: Any) -> set[str]:
        texts = contents(await recalled(client, "swam river", tier="passages", **more))
        return {river for river, _ in places.values() for text in texts if river in text}

    assert await found() == {"Rhine", "Elbe", "Po"}
    assert await found(scope="session", session_id=two) == {"Elbe"}
    assert await found(project="p") == {"Rhine", "Po"}
    assert await found(scope="project", session_id=two) == {"Elbe", "Po"}
    assert await found(since="2026-02-01T00:00:00Z") == {"Elbe", "Po"}
    assert await found(until="2026-02-01T00:00:00Z") == {"Rhine"}
    assert await found(as_of="2026-02-15T00:00:00Z") == {"Rhine", "Elbe"}


# Covered by facts -----------------------------------------------------------------------------------------------------


async def test_a_fact_covers_the_passage_that_it_was_taken_from(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, RIVER)
    [passage] = (await recalled(client, "our river"))["hits"]
    await observed(client, session)
    answer = await recalled(client, "our river", explain=True)
    [hit] = answer["hits"]
    assert (hit["tier"], hit["passages"]) == ("memory", [passage["id"]])
    [left_out] = answer["left_out"]
    assert (left_out["id"], left_out["reason"], left_out["by"]) == (passage["id"], "covered", hit["id"])
    assert left_out["parts"]["keyword_rank"] == 1


async def test_a_reflection_covers_the_passages_of_its_sources(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, turn(1, "user", RIVER), *OVERTAKEN)
    await observed(client, session)
    [passage] = (await recalled(client, "our river", tier="passages"))["hits"]
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    [hit] = (await recalled(client, "our river"))["hits"]
    assert (hit["tier"], hit["kind"], hit["passages"]) == ("memory", "reflection", [passage["id"]])


async def test_a_reflection_of_the_pool_covers_the_passages_of_its_sources(database_url: str) -> None:
    async with scripted(database_url) as (client, model):
        one, [river] = await kept(client, model, f"Our river is the Rhine, {LONG}", session="s1")
        other, [bridge] = await kept(client, model, f"The bridge over our river is blue, {LONG}", session="s2")
        sources = (await recalled(client, "our river", tier="passages"))["hits"]
        assert {hit["session_id"] for hit in sources} == {one, other}
        model.say({"rows": [row("Our river is the Rhine, and its bridge is blue.", river, bridge)]})
        assert (await pool_reflected(client))["memories"] == 1
        [hit] = (await recalled(client, "our river"))["hits"]
    assert (hit["kind"], hit["session_id"]) == ("reflection", None)
    assert set(hit["passages"]) == {passage["id"] for passage in sources}


async def test_a_passage_with_only_superseded_facts_is_left_out_unless_requested(client: httpx2.AsyncClient) -> None:
    session = await opened(client, project="p")
    await said(client, session, turn(1, "user", "We use npm in this repository.", sent_at="2026-01-10T00:00:00Z"))
    await observed(client, session)
    await said(
        client,
        session,
        turn(2, "user", "We no longer use npm in this repository, we use pnpm now.", sent_at="2026-02-10T00:00:00Z"),
    )
    report = await observed(client, session)
    assert report["replaced"] == 1
    answer = await recalled(client, "npm repository", explain=True)
    said_now = " ".join(contents(answer))
    assert "pnpm" in said_now
    assert not [text for text in contents(answer) if "pnpm" not in text]
    assert "outdated" in [one["reason"] for one in answer["left_out"]]
    both = await recalled(client, "npm repository", include_superseded=True, tier="passages")
    assert len(both["hits"]) == 2
    then = await recalled(client, "npm repository", as_of="2026-01-20T00:00:00Z", tier="passages")
    assert contents(then) == ["user: We use npm in this repository."]
    since = await recalled(client, "npm repository", as_of="2026-02-20T00:00:00Z", explain=True)
    assert contents(since) == contents(answer)
    assert "outdated" in [one["reason"] for one in since["left_out"]]


async def test_a_passage_with_only_expired_facts_is_left_out_unless_requested(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await opened(client)
    await said(client, session, turn(1, "user", RIVER, sent_at="2026-01-10T00:00:00Z"))
    await observed(client, session)
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET valid_until = '2026-02-10'")
    answer = await recalled(client, "our river", explain=True)
    assert (answer["hits"], [one["reason"] for one in answer["left_out"]]) == ([], ["outdated"])
    assert len((await recalled(client, "our river", tier="passages", include_superseded=True))["hits"]) == 1
    assert len((await recalled(client, "our river", tier="passages", as_of="2026-01-20T00:00:00Z"))["hits"]) == 1
    assert (await recalled(client, "our river", as_of="2026-03-20T00:00:00Z"))["hits"] == []


async def test_a_passage_whose_reflection_was_superseded_is_outdated(database_url: str) -> None:
    async with scripted(database_url) as (client, model):
        _, ids = await kept(client, model, f"The river is called Elbe, {LONG}", f"Boats are blue, {LONG}", project="p")
        model.say({"rows": [row("The river is called Elbe, and boats are blue.", *ids)]})
        assert (await pool_reflected(client))["memories"] == 1
        assert (await recalled(client, "river Elbe", tier="passages"))["hits"]
        [condensed] = (await recalled(client, "river Elbe", tier="memories"))["hits"]
        again = fact("The river is called Oder.", replaces=condensed["id"])
        await kept(client, model, again, session="s2", days_ago=1, project="p")
        assert (await client.get(f"/v1/memories/{condensed['id']}")).json()["superseded_by"]
        assert contents(await recalled(client, "river Elbe", tier="passages")) == ["user: The river is called Oder."]


async def test_a_passage_that_only_repeats_superseded_facts_is_outdated(database_url: str) -> None:
    async with scripted(database_url) as (client, model):
        [elbe] = (await kept(client, model, "The river is called Elbe.", session="s1", project="p"))[1]
        assert not (await kept(client, model, "The river is called Elbe.", session="s2", project="p", days_ago=8))[1]
        assert len((await recalled(client, "river", tier="passages"))["hits"]) == 2
        oder = fact("The river is called Oder.", replaces=elbe)
        await kept(client, model, oder, session="s3", days_ago=1, project="p")
        assert (await client.get(f"/v1/memories/{elbe}")).json()["superseded_by"]
        assert contents(await recalled(client, "river", tier="passages")) == ["user: The river is called Oder."]


# Cut ------------------------------------------------------------------------------------------------------------------


async def test_a_passage_grows_with_its_session_and_keeps_its_id(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    await said(client, session, turn(1, "user", FERRY))
    [first] = (await recalled(client, "ferry Skye"))["hits"]
    await said(client, session, turn(2, "assistant", "I shall set an alarm for the ferry."))
    [then] = (await recalled(client, "ferry Skye"))["hits"]
    assert then["id"] == first["id"]
    assert "alarm" in then["content"]
    assert [(one, last) for one, last, _ in stored(owner_url)] == [(1, 2)]


async def test_messages_sent_singly_or_together_give_the_same_passages(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    turns = [turn(n, "user" if n % 2 else "assistant", f"Word {n}. " * (n * 7 % 40 + 1)) for n in range(1, 40)]
    slowly, at_once = await opened(client, "s1"), await opened(client, "s2")
    for one in turns:
        await said(client, slowly, one)
    await said(client, at_once, *turns)
    spans = {session: spans_of(owner_url, session) for session in (slowly, at_once)}
    assert spans[slowly] == spans[at_once]
    assert len(spans[slowly]) > 5
    assert {seq for first, last, _ in spans[slowly] for seq in range(first, last + 1)} == set(range(1, 40))


def spans_of(owner_url: str, session: str) -> list[tuple[int, int, str]]:
    """Return the spans and texts of the passages of a session, in order."""
    with psycopg.connect(owner_url) as connection:
        return connection.execute(
            "SELECT first_seq, last_seq, text FROM passages WHERE session_id = %s ORDER BY first_seq", (session,)
        ).fetchall()


async def test_any_number_of_messages_without_text_is_skipped(
    parts: Parts, pool_id: str, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "_MOST_MESSAGES", 3)
    session = await open_session(parts, pool_id, SessionRequest("api", "s1"))
    texts = [FERRY, *["…"] * 10, "I shall set an alarm.", *["…"] * 10]
    batch = [IncomingMessage(f"m{n}", "user", text) for n, text in enumerate(texts)]
    await ingest(parts, pool_id, session.id, batch)
    assert stored(owner_url) == [(1, 12, f"user: {FERRY}\nuser: I shall set an alarm.")]


async def test_a_passage_that_did_not_grow_is_not_written_again(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    long = f"{FERRY} " * 12
    await said(client, session, turn(1, "user", long), turn(2, "user", long))

    def written() -> list[tuple[Any, ...]]:
        with psycopg.connect(owner_url) as connection:
            return connection.execute("SELECT number, ctid, id FROM passages ORDER BY first_seq").fetchall()

    before = written()
    await said(client, session, turn(3, "user", long))
    assert written()[:-1] == before
    await said(client, session, turn(4, "user", "The tide is low."))
    before = written()
    await said(client, session, turn(5, "user", "The tide is high."))
    after = written()
    # This one had room: it is written again, under its id.
    assert (after[:-1], after[-1][-1]) == (before[:-1], before[-1][-1])
    assert after[-1] != before[-1]


async def test_a_transcript_that_is_sent_again_adds_no_passage(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    turns = [turn(n, "user", f"Ferry number {n} leaves at {n} o'clock.") for n in range(1, 30)]
    await said(client, session, *turns)
    before = stored(owner_url)
    await said(client, session, *turns)
    await said(client, session, *turns[:10])
    assert stored(owner_url) == before


async def test_two_processes_posting_to_one_session_leave_the_passages_of_one(
    database_url: str, owner_url: str
) -> None:
    made = [
        make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), Database(database_url), system_clock)
        for _ in range(2)
    ]
    async with (
        serving(made[0]) as one,
        serving(made[1]) as two,
        httpx2.AsyncClient(base_url=one, timeout=PATIENCE) as first,
        httpx2.AsyncClient(base_url=two, timeout=PATIENCE) as second,
    ):
        session = await opened(first)
        turns = [turn(n, "user", f"Ferry {n} goes to Skye. " * (n % 5 + 1)) for n in range(1, 21)]
        for part in range(0, len(turns), 5):  # more at a time would wait for a turn, which a busy server limits
            some = turns[part : part + 5]
            await asyncio.gather(*(said(client, session, one) for one in some for client in (first, second)))
        control = await opened(first, "control")
        kept_by_one = (await first.get(f"/v1/sessions/{session}/messages?limit=1000")).json()["messages"]
        in_order = [turn(m["seq"], m["role"], m["content"]) for m in kept_by_one]
        await said(first, control, *in_order)
    assert len(in_order) == 20
    assert spans_of(owner_url, session) == spans_of(owner_url, control)


# After a crash --------------------------------------------------------------------------------------------------------


async def lost(parts: Parts, pool_id: str, monkeypatch: pytest.MonkeyPatch, *texts: str) -> str:
    """Store messages in a process that dies before it writes their passages; return the session."""
    session = await open_session(parts, pool_id, SessionRequest("api", "s1"))
    with monkeypatch.context() as dying:
        dying.setattr(ingesting, "cut_if_possible", died)
        with pytest.raises(ConnectionAbortedError):
            await ingest(parts, pool_id, session.id, [IncomingMessage(t[:9], "user", t) for t in texts])
    return session.id


async def died(*_: Any) -> None:
    """Fail as a process would that dies here."""
    raise ConnectionAbortedError


async def found(parts: Parts, pool_id: str) -> list[str]:
    """Return the hits about the ferry."""
    return [hit.content for hit in (await recall(parts, pool_id, RecallRequest("ferry Skye"))).hits]


async def test_passages_missing_after_a_crash_are_cut_with_the_next_message(
    parts: Parts, pool_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await lost(parts, pool_id, monkeypatch, FERRY)
    assert await found(parts, pool_id) == []
    await ingest(parts, pool_id, session, [IncomingMessage("m2", "user", "Good night.")])
    assert await found(parts, pool_id) == [f"user: {FERRY}\nuser: Good night."]


async def test_passages_missing_after_a_crash_are_cut_when_the_client_sends_again(
    parts: Parts, pool_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await lost(parts, pool_id, monkeypatch, FERRY)
    report = await ingest(parts, pool_id, session, [IncomingMessage(FERRY[:9], "user", FERRY)])
    assert report.duplicates == 1
    assert await found(parts, pool_id) == [f"user: {FERRY}"]


async def test_passages_missing_after_a_crash_are_cut_by_the_upkeep(
    parts: Parts, pool_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lost(parts, pool_id, monkeypatch, FERRY)
    async with beside("the upkeep", lambda: keep_up(parts)):
        await eventually(lambda: found(parts, pool_id))
    assert await found(parts, pool_id) == [f"user: {FERRY}"]
    assert await cut_all_behind(parts) == 0


class Poisoned(TextProcesses):
    """Processes in which every text with the word poison fails; `tries` counts these."""

    tries = 0

    async def run(self, characters: int, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run work, or fail."""
        if work is passages_of and "poison" in repr(arguments):
            self.tries += 1
            raise RuntimeError("poisoned")
        return await super().run(characters, work, *arguments)


async def test_a_session_that_cannot_be_cut_keeps_its_messages_and_holds_up_no_other(
    parts: Parts, pool_id: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = await lost(parts, pool_id, monkeypatch, FERRY)
    processes = Poisoned()
    poisoned = replace(parts, processes=processes)
    sick = await open_session(poisoned, pool_id, SessionRequest("api", "a-sick-one"))
    report = await ingest(poisoned, pool_id, sick.id, [IncomingMessage("m1", "user", "This is poison.")])
    assert report.accepted == 1, "it is stored, so the client does not send it again"
    assert healthy != sick.id
    for _ in range(3):
        await cut_all_behind(poisoned)
    assert await found(parts, pool_id) == [f"user: {FERRY}"]
    assert processes.tries == 1, "it is left alone for a minute"
    clock.advance(minutes=1)
    await cut_all_behind(poisoned)
    assert processes.tries == 2


async def test_a_message_with_too_much_text_is_refused_in_words(parts: Parts, pool_id: str) -> None:
    small = replace(parts, settings=parts.settings.model_copy(update={"max_message_characters": 1_000}))
    session = await open_session(small, pool_id, SessionRequest("api", "s1"))
    image: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 2_000}}
    fits = IncomingMessage("m1", "user", [image, {"type": "text", "text": "x" * 900}])
    assert (await ingest(small, pool_id, session.id, [fits])).accepted == 1
    result: Json = [{"type": "tool_result", "tool_use_id": "t", "content": "x" * 1_001}]
    for content in ("x" * 1_001, result):
        with pytest.raises(TooLarge, match=r"^messages\[1\] has 1,\d+ characters of text; the most is 1,000\."):
            await ingest(small, pool_id, session.id, [fits, IncomingMessage("m2", "user", content)])


# Forgotten ------------------------------------------------------------------------------------------------------------

VAULT = "Our vault is called Xanadu and its door is green."
COINS = "We counted the coins on Friday."


async def told(client: httpx2.AsyncClient) -> str:
    """Return a session that mentions the vault among other things."""
    session = await opened(client)
    await said(client, session, turn(1, "user", FERRY), turn(2, "user", VAULT), turn(3, "user", COINS))
    await observed(client, session)
    return session


async def fact_of(client: httpx2.AsyncClient, query: str) -> str:
    """Return the id of the first memory among the hits."""
    return (await recalled(client, query, tier="memories"))["hits"][0]["id"]


@pytest.mark.parametrize("messages", ["true", "false"])
async def test_a_forgotten_fact_never_returns_in_a_passage_that_is_cut_later(
    client: httpx2.AsyncClient, owner_url: str, messages: str
) -> None:
    session = await told(client)
    assert len((await recalled(client, "vault Xanadu"))["hits"]) == 1
    receipt = (await client.delete(f"/v1/memories/{await fact_of(client, 'vault Xanadu')}?messages={messages}")).json()
    assert receipt["messages"] == (1 if messages == "true" else 0)
    assert [text for _, _, text in stored(owner_url)] == [f"user: {FERRY}\nuser: {COINS}"]
    await said(client, session, turn(4, "user", "Was the door closed?"))
    assert [text for _, _, text in stored(owner_url)] == [f"user: {FERRY}\nuser: {COINS}\nuser: Was the door closed?"]
    for hidden in ({}, {"include_superseded": True}, {"as_of": "2100-01-01T00:00:00Z"}):
        assert not [text for text in contents(await recalled(client, "vault Xanadu", **hidden)) if "Xanadu" in text]
    with psycopg.connect(owner_url) as connection:
        assert connection.execute("SELECT count(*) FROM postings WHERE term = 'xanadu'").fetchone() == (0,)
    assert ("Xanadu" in dump(owner_url)) == (messages == "false")


async def test_forgetting_while_a_passage_is_cut_leaves_no_trace(
    parts: Parts, who: Principal, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    await ingest(parts, who.pool_id, session.id, [IncomingMessage("m1", "user", VAULT)])
    async with beside("jobs", lambda: run_jobs(parts)):
        await observe(parts, who.pool_id, session.id, wait=True)
    [row] = await list_memories(parts, who.pool_id, Filter(parts.clock()), before=None, limit=9)
    cut, reading, forgotten = cutting.passages_of, threading.Event(), threading.Event()

    def slowly(found: Any) -> Any:
        made = cut(found)
        reading.set()
        assert forgotten.wait(30)
        return made

    monkeypatch.setattr(cutting, "passages_of", slowly)
    posting = asyncio.create_task(ingest(parts, who.pool_id, session.id, [IncomingMessage("m2", "user", COINS)]))
    await asyncio.to_thread(reading.wait, 30)
    await forget_text(parts, who, row.id, with_messages=False)
    forgotten.set()
    await posting
    assert stored(owner_url) == [(2, 2, f"user: {COINS}")]


async def test_a_passage_can_be_read_expanded_and_forgotten_by_its_id(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    session = await told(client)
    [passage] = (await recalled(client, "vault Xanadu", tier="passages"))["hits"]
    shown = (await client.get(f"/v1/memories/{passage['id']}")).json()
    assert (shown["session_id"], shown["first_seq"], shown["last_seq"]) == (session, 1, 3)
    assert shown["text"] == f"user: {FERRY}\nuser: {VAULT}\nuser: {COINS}"
    expanded = (await client.get(f"/v1/memories/{passage['id']}/sources")).json()
    assert (expanded["expanded"]["id"], expanded["drawn_from"]) == (passage["id"], [])
    [excerpt] = expanded["excerpts"]
    assert [(m["text"], m["cited"]) for m in excerpt["messages"]] == [(FERRY, True), (VAULT, True), (COINS, True)]
    assert VAULT in (await client.get(f"/v1/sessions/{session}/pack")).json()["text"]

    receipt = (await client.delete(f"/v1/memories/{passage['id']}")).json()
    assert (receipt["messages"], receipt["packs"], receipt["left"]) == (3, 1, {})
    assert receipt["memories"] >= 1
    for path in ("", "/sources"):
        gone = await client.get(f"/v1/memories/{passage['id']}{path}")
        assert (gone.status_code, "no passage" in gone.json()["detail"]) == (404, True)
    assert (await client.delete(f"/v1/memories/{passage['id']}")).status_code == 404
    kept_now = dump(owner_url).lower()
    assert [word for word in ("xanadu", "skye", "coins") if word in kept_now] == []
    assert (await client.get(f"/v1/sessions/{session}")).json()["lost"] == 0
    resent = await said(client, session, turn(1, "user", FERRY), turn(2, "user", VAULT))
    assert (resent["accepted"], resent["duplicates"], resent["conflicts"]) == (0, 2, [])
    assert "xanadu" not in dump(owner_url).lower()


async def test_facts_of_a_forgotten_passage_are_forgotten_even_with_other_sources(
    database_url: str, owner_url: str
) -> None:
    async with scripted(database_url) as (client, model):
        [one] = (await kept(client, model, VAULT, session="s1", project="p"))[1]
        await kept(client, model, VAULT, session="s2", project="p", days_ago=8)
        [first, second] = (await recalled(client, "vault Xanadu", tier="passages"))["hits"]
        receipt = (await client.delete(f"/v1/memories/{first['id']}?messages=false")).json()
        assert (receipt["memories"], receipt["messages"]) == (1, 1)
        assert (await client.get(f"/v1/memories/{one}")).status_code == 404
        assert (await recalled(client, "vault Xanadu"))["hits"] == []
        left = (await client.get(f"/v1/sessions/{second['session_id']}/messages")).json()["messages"]
        assert [message["text"] for message in left] == [VAULT], "the other session keeps its transcript"


async def test_an_observer_writes_nothing_from_a_passage_forgotten_meanwhile(database_url: str, owner_url: str) -> None:
    async with scripted(database_url) as (client, model):
        session = await opened(client)
        await said(client, session, turn(1, "user", VAULT))
        release = asyncio.Event()
        facts = {"facts": [fact(VAULT) | {"sources": [1]}]}
        model.say(ScriptedAnswer(json.dumps(facts), wait_for=release), {"facts": []})
        observing = asyncio.create_task(observed(client, session))
        await model.arrived.wait()
        [passage] = (await recalled(client, "vault Xanadu"))["hits"]
        assert (await client.delete(f"/v1/memories/{passage['id']}")).status_code == 200
        release.set()
        await observing
        assert (await recalled(client, "vault Xanadu"))["hits"] == []
    assert "xanadu" not in dump(owner_url).lower()


# Never in a passage ---------------------------------------------------------------------------------------------------


async def test_output_of_eskers_tools_and_packs_is_in_no_passage(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await told(client)
    pack = (await client.get(f"/v1/sessions/{session}/pack")).json()["text"]
    shown = [hit["content"] for hit in (await recalled(client, "vault Xanadu"))["hits"]]
    output = "<recalled_memories>\n" + "\n".join(f"* {text}" for text in shown) + "\n</recalled_memories>"
    other = await opened(client, "s2")
    call = {"type": "tool_use", "id": "t1", "name": "mcp__esker__recall_memory", "input": {"query": "vault"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": output}
    before = stored(owner_url)
    await said(
        client,
        other,
        turn(1, "user", f"{pack}\n\nGood morning."),
        turn(2, "assistant", [call]),
        turn(3, "user", [result]),
        turn(4, "user", "<system-reminder>\nThe vault is called Xanadu.\n</system-reminder>"),
    )
    new = [passage for passage in stored(owner_url) if passage not in before]
    assert new
    assert "Good morning." in new[0][2]
    assert not [text for _, _, text in new if "Xanadu" in text or "observations" in text]


async def test_secrets_are_masked_in_passages(client: httpx2.AsyncClient, owner_url: str) -> None:
    secret = "sk-ant-api03-" + "Ab3" * 30
    session = await opened(client)
    await said(client, session, turn(1, "user", f"The key of the ferry is {secret}, do not lose it."))
    [hit] = (await recalled(client, "key of the ferry"))["hits"]
    assert "do not lose it" in hit["content"]
    assert secret not in json.dumps(hit)
    assert secret not in dump(owner_url)


# Explained ------------------------------------------------------------------------------------------------------------


async def test_an_explained_answer_has_a_reason_for_each_left_out_candidate(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    for number in range(12):
        text = f"Ferry number {number} goes to Skye at {number} o'clock." if number % 2 else f"Word {number}."
        await said(client, session, turn(number, "user", text, sent_at=f"2026-01-{number + 1:02}T00:00:00Z"))
    plain = await recalled(client, "ferry Skye", limit=2)
    assert (plain["left_out"], {hit["parts"] for hit in plain["hits"]}) == ([], {None})
    answer = await recalled(client, "ferry Skye", limit=2, explain=True)
    assert [hit["id"] for hit in answer["hits"]] == [hit["id"] for hit in plain["hits"]]
    assert [one["reason"] for one in answer["left_out"]] == ["limit"] * 4 == ["limit"] * answer["omitted"]
    for one in (*answer["hits"], *answer["left_out"]):
        assert one["parts"].keys() >= {
            "keyword_rank", "vector_rank", "keyword", "cosine", "around", "relevance", "prior",
        }  # fmt: skip
    short = await recalled(client, "ferry Skye", max_tokens=60, explain=True)
    assert {one["reason"] for one in short["left_out"]} == {"tokens"}


# Switched off ---------------------------------------------------------------------------------------------------------


async def test_passages_switched_off_and_on_again_are_cut_from_the_kept_messages(
    parts: Parts, pool_id: str, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_MOST_PASSAGES", "_MOST_SESSIONS"):
        monkeypatch.setattr(switching, name, 2)
    sessions = [await open_session(parts, pool_id, SessionRequest("api", f"s{n}")) for n in range(5)]
    for session in sessions:
        await ingest(parts, pool_id, session.id, [IncomingMessage("m1", "user", FERRY)])
    before = sorted(stored(owner_url))
    steps: list[tuple[int, int]] = []
    off = await switch_passages(parts, "default", on=False, on_progress=lambda done, total: steps.append((done, total)))
    assert (off.deleted, steps) == (5, [(2, 5), (4, 5), (5, 5)])
    assert await found(parts, pool_id) == []
    await ingest(parts, pool_id, sessions[0].id, [IncomingMessage("m2", "user", "The ferry was late.")])
    assert (await cut_all_behind(parts), stored(owner_url)) == (0, [])
    with psycopg.connect(owner_url) as connection:
        left = connection.execute(
            "SELECT (SELECT count(*) FROM postings WHERE tier = 'p'), (SELECT count(*) FROM messages),"
            " (SELECT sum(parts) FROM tier_sizes WHERE tier = 'p')"
        ).fetchone()
    assert left == (0, 6, 0)

    steps.clear()
    on = await switch_passages(parts, "default", on=True, on_progress=lambda done, total: steps.append((done, total)))
    assert (on.sessions, steps) == (5, [(n, 5) for n in range(1, 6)])
    assert sorted(stored(owner_url)) == [*before[1:], (1, 2, f"user: {FERRY}\nuser: The ferry was late.")]
    again = await switch_passages(parts, "default", on=True, on_progress=lambda _, __: None)
    assert (again.sessions, again.deleted) == (0, 0)


async def test_a_message_cut_while_passages_are_switched_off_leaves_no_passage(
    parts: Parts, pool_id: str, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await open_session(parts, pool_id, SessionRequest("api", "s1"))
    cut, reading, off = cutting.passages_of, threading.Event(), threading.Event()

    def slowly(messages: Any) -> Any:
        reading.set()
        assert off.wait(30)
        return cut(messages)

    monkeypatch.setattr(cutting, "passages_of", slowly)
    posting = asyncio.create_task(ingest(parts, pool_id, session.id, [IncomingMessage("m1", "user", FERRY)]))
    await asyncio.to_thread(reading.wait, 30)
    await switch_passages(parts, "default", on=False, on_progress=lambda _, __: None)
    off.set()
    await posting
    assert stored(owner_url) == []
