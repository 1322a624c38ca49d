"""Recall: by keyword at once, by meaning with the real model, and the answer that nothing is known."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta
from typing import Any

import httpx2
import psycopg
import pytest

from esker.embedding_worker import worker
from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.records import Principal
from esker.server.db.database import Connection, Database
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.store.search import Found, Search
from esker.server.usecases import find_candidates as finding
from esker.server.usecases.forget import forget_text
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, remember
from tests.support.api import contents, observed, opened, recalled, said, settled, tool_text
from tests.support.processes import esker
from tests.support.reflecting import OVERTAKEN
from tests.support.serving import serving, serving_meaning
from tests.support.waiting import PATIENCE, eventually


@pytest.fixture
async def meaning(database_url: str, minilm: LocalEmbedder) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of a server and a worker that share the real model."""
    async with (
        serving_meaning(database_url, minilm) as url,
        httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as connected,
    ):
        yield connected


async def noted(client: httpx2.AsyncClient, *notes: str | dict[str, Any]) -> list[str]:
    """Write memories and return their ids."""
    rows = [{"content": note} if isinstance(note, str) else note for note in notes]
    answer = await client.post("/v1/memories/batch", json={"memories": rows})
    assert answer.status_code == 201, answer.text
    return answer.json()["ids"]


FACTS = (
    "User preference: I always want pnpm in this repository, never npm.",
    "The Redis server drops sockets that are silent for 30 seconds.",
    "We go live on 14 May, and nothing is merged on Fridays.",
    "A refund must never exceed what the passenger paid.",
    "The pier staff see the Pay button cut off on their tablets.",
    "My sister lives in Rotterdam and breeds whippets.",
)


QUESTIONS = (
    "Which package manager do we install with?",
    "What closes idle connections?",
    "When does the product launch?",
    "How much money can customers get back?",
    "What is wrong on the screens at the harbour?",
    "Does anybody in the family keep dogs?",
)


async def test_a_question_finds_its_answer_by_meaning(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, *FACTS)
    await settled(meaning)
    for question, fact in zip(QUESTIONS, FACTS, strict=True):
        answer = await recalled(meaning, question, explain=True)
        assert (answer["semantic"], contents(answer)[0]) == ("ok", fact), question
        assert answer["hits"][0]["parts"]["vector_rank"] == 1, question


@pytest.fixture
def _no_polls(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Have workers that start from now on wait for notifications alone."""
    monkeypatch.setattr(worker, "POLL_SECONDS", 86_400)


@pytest.mark.usefixtures("_no_polls")
async def test_a_write_makes_a_row_findable_by_meaning(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, "Warm up.")
    await settled(meaning)
    await noted(meaning, FACTS[5])
    answer = await eventually(
        lambda: recalled(meaning, "Does anybody in the family keep dogs?"), lambda answer: answer["hits"]
    )
    assert contents(answer) == [FACTS[5]]


async def test_a_question_without_an_answer_returns_nothing(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, *FACTS)
    await settled(meaning)
    for nonsense in ("purple elephants in quantum lasagna", "kubernetes ingress yaml", "qwxz vbnm"):
        answer = await recalled(meaning, nonsense)
        assert (answer["hits"], answer["abstained"], answer["semantic"]) == ([], True, "ok"), nonsense


async def test_a_language_that_the_model_hardly_knows_is_reported(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, "客户住在里斯本老城区，靠近港口。")
    await settled(meaning)
    answer = await recalled(meaning, "客户住在哪里？")
    assert (answer["semantic"], contents(answer)) == ("weak", ["客户住在里斯本老城区，靠近港口。"])
    assert "hardly tells texts in this language apart" in answer["reason"]
    assert "(Found mostly by keyword: " in await tool_text(meaning, "recall_memory", query="客户住在哪里？")


async def test_the_exact_words_are_the_first_hit_with_the_best_score(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, *FACTS)
    await settled(meaning)
    for fact in FACTS:
        answer = await recalled(meaning, fact)
        assert contents(answer)[0] == fact
        assert answer["hits"][0]["score"] > 0.99
        scores = [hit["score"] for hit in answer["hits"]]
        assert scores == sorted(scores, reverse=True)


async def test_each_search_can_be_requested_alone(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, *FACTS)
    await settled(meaning)
    words, sense = "whippets", "Does anybody in the family keep dogs?"
    assert contents(await recalled(meaning, words, ranking="keyword")) == [FACTS[5]]
    by_keyword = await recalled(meaning, sense, ranking="keyword")
    assert (by_keyword["hits"], by_keyword["semantic"]) == ([], "off")
    by_vector = await recalled(meaning, f"{sense} Redis", ranking="vector", explain=True)
    assert contents(by_vector)[0] == FACTS[5]
    assert {hit["parts"]["keyword_rank"] for hit in by_vector["hits"]} == {None}


async def test_forgetting_a_row_during_a_recall_does_not_break_it(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    [memory_id] = await remember(parts, who, [Note("The harbour pilot lives in Antwerp.")])
    find = finding.find

    async def forget_when_found(connection: Connection, searches: Sequence[Search]) -> list[Found]:
        found = await find(connection, searches)
        monkeypatch.undo()
        await forget_text(parts, who, memory_id, with_messages=False)
        return found

    monkeypatch.setattr(finding, "find", forget_when_found)
    seen = await recall(parts, who.pool_id, RecallRequest("harbour pilot"))
    assert [hit.id for hit in seen.hits] == [memory_id], "a recall sees one moment"
    assert (await recall(parts, who.pool_id, RecallRequest("harbour pilot"))).abstained


# Time ----------------------------------------------------------------------------------------------------------------


def days_ago(count: float) -> str:
    """Return a moment as the API takes it."""
    return (system_clock() - timedelta(days=count)).isoformat()


async def test_rows_of_the_time_in_a_question_come_first(client: httpx2.AsyncClient) -> None:
    await noted(
        client,
        {"content": "We decided to keep orders in MySQL.", "said_at": days_ago(60)},
        {"content": "We decided to keep orders in Postgres.", "said_at": days_ago(1)},
    )
    now = await recalled(client, "What did we decide about orders yesterday?", explain=True)
    assert contents(now) == ["We decided to keep orders in Postgres.", "We decided to keep orders in MySQL."]
    assert now["window"]["start"][:10] == days_ago(1)[:10]
    assert now["hits"][0]["parts"]["time"] == 1
    then = await recalled(client, "What did we decide about orders two months ago?")
    assert contents(then)[0] == "We decided to keep orders in MySQL."


async def test_a_question_that_names_only_a_time_returns_its_texts(client: httpx2.AsyncClient) -> None:
    await noted(
        client,
        {"content": "The harbour pilot moved to Antwerp.", "said_at": days_ago(1)},
        {"content": "Sluices are painted green.", "said_at": days_ago(40)},
    )
    assert contents(await recalled(client, "What happened yesterday?")) == ["The harbour pilot moved to Antwerp."]
    nothing = await recalled(client, "What happened three weeks ago?")
    assert (nothing["hits"], nothing["abstained"]) == ([], True)


async def test_texts_of_a_time_are_ordered_by_when_they_were_said(
    client: httpx2.AsyncClient,
) -> None:
    for days in range(7):
        await noted(client, {"content": f"Buoy {days} was painted.", "said_at": days_ago(days)})
    answer = await recalled(client, "What happened in the last six days?", limit=3)
    assert contents(answer) == [f"Buoy {days} was painted." for days in range(3)]


async def test_a_text_about_a_longer_time_belongs_to_each_of_its_days(
    client: httpx2.AsyncClient, owner_url: str
) -> None:
    await noted(client, {"content": "The crane is in the yard all of May.", "said_at": "2026-01-10T12:00:00Z"})
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET refers_from = '2026-05-01', refers_to = '2026-05-31'")
    night = await opened(client)
    for at, text in (("2026-03-05T23:59:00Z", "The sluice is stuck."), ("2026-03-06T00:02:00Z", "It is open again.")):
        await said(client, night, {"external_id": at, "role": "user", "content": text, "sent_at": at})
    assert contents(await recalled(client, "What happened on 7 May 2026?")) == ["The crane is in the yard all of May."]
    for day in ("5 March 2026", "6 March 2026"):
        [passage] = contents(await recalled(client, f"What happened on {day}?"))
        assert "The sluice is stuck." in passage


async def test_a_day_is_in_the_requested_time_zone_or_that_of_the_session(client: httpx2.AsyncClient) -> None:
    session = await opened(client, timezone="America/New_York")
    asked = "What happened on 5 March 2026?"
    starts = {
        "2026-03-05T00:00:00Z": {},
        "2026-03-05T00:00:00+09:00": {"timezone": "Asia/Tokyo", "session_id": session},
        "2026-03-05T00:00:00-05:00": {"session_id": session},
    }
    for start, where in starts.items():
        assert (await recalled(client, asked, **where))["window"]["start"] == start
    refused = await client.post("/v1/recall", json={"query": asked, "timezone": "Mars/Olympus"})
    assert (refused.status_code, "Europe/Berlin" in refused.text) == (422, True)


async def test_a_time_can_be_relative_to_a_remembered_event(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(
        client,
        session,
        {
            "external_id": "1",
            "role": "user",
            "content": "The Borealis release is on 2026-03-20.",
            "sent_at": days_ago(3),
        },
    )
    await observed(client, session)
    await noted(
        client,
        {"content": "The tests of the payment page were red.", "said_at": "2026-03-17T12:00:00Z"},
        {"content": "The tests of the payment page were green.", "said_at": "2026-01-17T12:00:00Z"},
    )
    answer = await recalled(client, "How were the tests of the payment page three days before the Borealis release?")
    assert contents(answer)[0] == "The tests of the payment page were red."
    assert answer["window"]["start"][:10] == "2026-03-17"


async def test_the_time_of_a_note_is_in_the_zone_of_its_session(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client, timezone="America/New_York")
    await noted(
        client,
        "The Borealis release happened on 14 August 2026.",
        {"content": "The crane was moved yesterday.", "said_at": "2026-03-07T02:00:00Z", "session_id": session},
        {"content": "The gate was painted yesterday.", "said_at": "2026-03-07T02:00:00Z"},
        "Cranes are yellow.",
    )
    answer = await recalled(client, "Who was ill three days before the Borealis release?")
    assert answer["window"]["start"][:10] == "2026-08-11"
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute(
            "SELECT split_part(content, ' ', 2), refers_from AT TIME ZONE 'UTC', refers_to AT TIME ZONE 'UTC'"
            " FROM memories"
        )
        told = {name: (str(start), str(end)) for name, start, end in rows}
    assert told == {
        "Borealis": ("2026-08-14 00:00:00", "2026-08-14 23:59:59"),
        "crane": ("2026-03-05 05:00:00", "2026-03-06 04:59:59"),
        "gate": ("2026-03-06 00:00:00", "2026-03-06 23:59:59"),
        "are": ("None", "None"),
    }


async def test_an_unknown_event_gives_no_time(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, "The rocket was launched on 14 August 2026.", *FACTS)
    await settled(meaning)
    for asked, start in {
        "Who was ill one week before the moon landing?": None,
        "Who was ill the day after Anna?": None,
        "Who was ill one week before the rocket flew?": "2026-08-04",
    }.items():
        window = (await recalled(meaning, asked))["window"]
        assert (window and window["start"][:10]) == start, asked


# By keyword ------------------------------------------------------------------------------------------------------


async def test_without_an_embedder_keywords_find_and_the_answer_is_degraded(client: httpx2.AsyncClient) -> None:
    await noted(client, *FACTS)
    answer = await recalled(client, "What about whippets?")
    assert contents(answer) == [FACTS[5]]
    assert (answer["semantic"], answer["reason"]) == ("degraded", "no embedder is configured")
    assert answer["pending"] == 0


async def test_any_script_and_any_identifier_is_found_by_keyword(client: httpx2.AsyncClient) -> None:
    asked = {
        "docker 部署": "用 docker 部署容器的时候失败了",
        "タワー": "東京タワーの近くに住んでいる",
        "서울에서": "서울에서 배포했다",
        "auth.ts:45": "The check is in src/auth.ts:45",
        "ECONNRESET": "read ECONNRESET in the suite",
        "gen-itgc": "重跑gen-itgc后才发现",
        "v0.8.6": "released v0.8.6 on Monday",
        "koln": "Die Lieferung nach Köln ist verspätet",
    }
    await noted(client, *asked.values(), *FACTS)
    assert {query: contents(await recalled(client, query))[0] for query in asked} == asked


TICKETS = [
    f"The {what} of ticket T-{16_000 + n} was moved to the {where} team."
    for n, (what, where) in enumerate(
        [
            (what, where)
            for what in ("review", "owner", "estimate", "test", "spike")
            for where in ("red", "blue", "payments")
        ]
    )
]


async def test_a_row_with_the_requested_identifier_comes_first(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, *TICKETS)
    await settled(meaning)
    for question in (
        "T-16007",
        "Why was T-16007 closed?",
        "Did anybody look into T-16007 before we shipped the mobile app?",
        "What was the state of ticket T-16007 after the migration last spring?",
    ):
        found = contents(await recalled(meaning, question))
        assert [text for text in found if "T-16007" in text] == found[:1] != [], question


async def test_an_unknown_identifier_returns_nothing(meaning: httpx2.AsyncClient) -> None:
    await noted(meaning, *TICKETS)
    await settled(meaning)
    for ranking in ("full", "keyword"):
        for query in ("tadgicdo7539", "v30.42.25", "what is ojihvzpn16007?", "T-99999"):
            answer = await recalled(meaning, query, ranking=ranking)
            assert (contents(answer), answer["abstained"]) == ([], True), (ranking, query)


async def test_of_equal_texts_the_neighbour_of_an_answer_comes_first(client: httpx2.AsyncClient) -> None:
    one, other = await opened(client, "s1"), await opened(client, "s2")
    asked, answer = "Who inspects the harbour crane?", "The pilot inspects it with a torch."
    said_so = [
        (one, asked),
        (one, answer),
        (other, "Is there any soup?"),
        (other, "The warden inspects it with a torch."),
    ]
    notes = [
        {"content": content, "session_id": session, "said_at": days_ago(9 - place)}
        for place, (session, content) in enumerate(said_so)
    ]
    await noted(client, *notes)
    question = "Who inspects the crane with a torch?"
    near, far = (await recalled(client, question, explain=True, limit=3))["hits"][1:]
    assert (near["content"], far["content"]) == (answer, "The warden inspects it with a torch.")
    assert near["parts"]["around"] > far["parts"]["around"]
    alone = contents(await recalled(client, question, ranking="fused"))
    assert alone.index(answer) > alone.index("The warden inspects it with a torch."), "of equals, what was said last"


async def test_rare_words_count_more_than_common_ones(client: httpx2.AsyncClient) -> None:
    rare, common = "The gateway says ECONNRESET.", "The gateway service says no."
    await noted(client, *(f"The service number {n} is up." for n in range(20)), rare, common)
    found = contents(await recalled(client, "service ECONNRESET"))
    assert found[0] == rare


KEPT = (
    *(f"Boat {n} lies at pier {n % 7}." for n in range(40)),
    *(f"The crews of {place} keep their ropes on deck." for place in ("Antwerp", "Bergen", "Cork")),
    "We keep the rye flour in the cellar of the mill, beside the yeast.",
)


async def test_common_words_do_not_answer_a_question_about_an_unknown_subject(
    client: httpx2.AsyncClient,
) -> None:
    await noted(client, *KEPT)
    for question in ("Where does glaplack keep the vedroorg?", "keep momex foodreb drafoolm"):
        answer = await recalled(client, question)
        assert (answer["hits"], answer["abstained"], answer["semantic"]) == ([], True, "degraded"), question


async def test_a_few_unknown_words_do_not_hide_an_answer(client: httpx2.AsyncClient) -> None:
    await noted(client, *KEPT)
    for question in (
        "Where do we keep the rye flour?",
        # One misspelt word, one unknown name, and synonyms that memory does not contain.
        "Where do we keep the rye fluor?",
        "Where does Zbigniew keep his flour?",
        "In which building is the rye flour for baking stored?",
        "Zbigniew's yeast, please",
        "keep",
    ):
        assert KEPT[-1] in contents(await recalled(client, question, limit=50)), question


async def test_while_the_model_loads_keywords_find_and_the_answer_says_so(database_url: str) -> None:
    settings = Settings.from_environment({"ESKER_EMBEDDER": "openai:http://127.0.0.1:1/v1#none"})
    parts = make_parts(settings, Database(database_url), system_clock)
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        await noted(client, FACTS[5])
        answer = await recalled(client, "whippets")
        assert contents(answer) == [FACTS[5]]
        assert answer["semantic"] == "degraded"
        assert any(words in answer["reason"] for words in ("not loaded yet", "cannot be reached"))
        assert answer["pending"] == 1


# Scope and limits ------------------------------------------------------------------------------------------------


async def test_rows_that_the_caller_has_and_their_repeats_are_left_out_in_favour_of_others(
    client: httpx2.AsyncClient,
) -> None:
    ids = await noted(client, *(f"Ferry number {n} leaves pier {n} at {n} sharp." for n in range(1, 8)))
    [twin] = await noted(client, {"content": "Ferry number 1 leaves pier 1 at 1 sharp.", "project": "other"})
    asked = "When does the ferry leave the pier?"
    everything = await recalled(client, asked, limit=50, tier="memories")
    assert everything["seen"] == 0
    [first] = [hit for hit in everything["hits"] if ids[0] in (hit["id"], *hit["same"])]
    assert twin in (first["id"], *first["same"])
    seen = [ids[0], *ids[2:]]
    found = await recalled(client, asked, limit=1, tier="memories", without=seen, explain=True)
    assert [hit["id"] for hit in found["hits"]] == [ids[1]]
    assert (found["seen"], found["abstained"], found["omitted"]) == (6, False, 0)
    assert [one["reason"] for one in found["left_out"]].count("seen") == 6
    none = await recalled(client, asked, without=ids)
    assert (none["hits"], none["abstained"], none["seen"]) == ([], False, 7)
    answer = await client.post("/v1/recall", json={"query": asked, "without": ids}, headers={"Accept": "text/plain"})
    assert answer.text == (
        "<recalled_memories>\nYou already have everything that memory knows about this.\n"
        "(Searched by keyword only: no embedder is configured.)\n</recalled_memories>"
    )
    too_many = await client.post("/v1/recall", json={"query": asked, "without": ["mem_1"] * 5_001})
    assert too_many.status_code == 422


async def test_with_any_number_of_excluded_rows_the_others_are_found_once(client: httpx2.AsyncClient) -> None:
    asked = "When does the ferry leave the pier?"
    await noted(client, *(f"Ferry number {n} leaves pier {n} at {n} sharp." for n in range(1, 41)))
    order = [hit["id"] for hit in (await recalled(client, asked, limit=50, tier="memories"))["hits"]]
    assert len(order) == 40
    found = await recalled(client, asked, limit=1, tier="memories", without=order[:-1])
    assert [hit["id"] for hit in found["hits"]] == order[-1:]
    late = "Late in the evening, when lamps are lit and all is quiet, {} ferry may leave as well, from whichever pier."
    twins = await noted(client, late.format("a"), late.format("the"))
    found = await recalled(client, asked, limit=2, tier="memories", without=order)
    assert [sorted([hit["id"], *hit["same"]]) for hit in found["hits"]] == [sorted(twins)]


async def test_an_unknown_project_matches_nothing_and_similar_names_are_suggested(
    client: httpx2.AsyncClient,
) -> None:
    await noted(
        client,
        {"content": "The ferry is painted blue.", "project": "me/ferry"},
        {"content": "The ferry office opens at nine."},
    )
    found = await recalled(client, "ferry", project="me/fery")
    assert found["unknown_project"] == {"name": "me/fery", "nearest": ["me/ferry"]}
    assert [hit["project"] for hit in found["hits"]] == [None]
    text = await tool_text(client, "recall_memory", query="ferry", project="me/fery")
    assert "(Memory has no project me/fery; names like it: me/ferry. These belong to no project.)" in text
    assert "blue" not in text
    none = await recalled(client, "blue", project="harbour")
    assert (none["abstained"], none["unknown_project"]) == (True, {"name": "harbour", "nearest": []})
    assert "no project has a name like it" in await tool_text(client, "recall_memory", query="blue", project="harbour")
    session = await opened(client, "s", project="bridge")
    for known in ({"project": "me/ferry"}, {}, {"project": "bridge"}, {"session_id": session, "scope": "project"}):
        assert (await recalled(client, "ferry", **known))["unknown_project"] is None
    # When the whole pool is searched, a project is not a filter.
    assert (await recalled(client, "ferry", project="harbour", scope="pool"))["unknown_project"] is None


async def test_scope_keeps_sessions_and_projects_apart(client: httpx2.AsyncClient) -> None:
    one, two = await opened(client, "s1", project="p"), await opened(client, "s2", project="q")
    await said(client, one, "Our river is the Rhine.")
    await said(client, two, "Our river is the Elbe.")
    await observed(client, one)
    await observed(client, two)
    assert len((await recalled(client, "our river"))["hits"]) == 2
    for narrow in (
        {"scope": "session", "session_id": one},
        {"scope": "project", "project": "p"},
        {"scope": "project", "session_id": one},
    ):
        [hit] = (await recalled(client, "our river", **narrow))["hits"]
        assert "Rhine" in hit["content"]
        assert hit["sources"] == [{"session_id": one, "seqs": [1], "memory_ids": []}]
        assert hit["project"] == "p"


async def test_each_filter_keeps_only_matching_rows(client: httpx2.AsyncClient) -> None:
    await noted(
        client,
        {"content": "River Rhine.", "priority": "high", "tags": ["de"], "said_at": "2026-01-01T00:00:00Z"},
        {"content": "River Elbe.", "priority": "low", "kind": "manual", "said_at": "2026-02-01T00:00:00Z"},
        {"content": "River Po.", "priority": "medium", "said_at": "2026-03-01T00:00:00Z"},
    )

    async def found(**more: Any) -> set[str]:
        return {content.split()[1] for content in contents(await recalled(client, "river", **more))}

    assert await found() == {"Rhine.", "Elbe.", "Po."}
    assert await found(tags=["de"]) == {"Rhine."}
    assert await found(kinds=["manual"]) == {"Elbe."}
    assert await found(min_priority="medium") == {"Rhine.", "Po."}
    assert await found(since="2026-01-15T00:00:00Z") == {"Elbe.", "Po."}
    assert await found(until="2026-01-15T00:00:00Z") == {"Rhine."}
    assert await found(as_of="2026-02-15T00:00:00Z") == {"Rhine.", "Elbe."}
    assert len((await recalled(client, "river", limit=1))["hits"]) == 1


async def test_superseded_rows_are_excluded_unless_requested(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    await said(client, session, "Our river is the Rhine.", *OVERTAKEN)
    await observed(client, session)
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    [live] = (await recalled(client, "our river"))["hits"]
    assert live["kind"] == "reflection"
    everything = (await recalled(client, "our river", include_superseded=True))["hits"]
    assert [hit["id"] for hit in everything] == [live["id"]]  # the same words are one hit
    kinds = (await recalled(client, "our river", include_superseded=True, kinds=["observation"]))["hits"]
    assert [hit["superseded_by"] for hit in kinds] == [live["id"]]


async def test_before_a_reflection_its_sources_are_the_answer(client: httpx2.AsyncClient, owner_url: str) -> None:
    session = await opened(client)
    river = {"external_id": "r1", "role": "user", "content": "Our river is the Rhine."}
    for day, message in enumerate((river, *OVERTAKEN), start=1):
        await said(client, session, {**message, "sent_at": f"2026-01-{day:02}T00:00:00Z"})
    await observed(client, session)
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    with psycopg.connect(owner_url) as connection:
        connection.execute("UPDATE memories SET said_at = '2026-02-01' WHERE kind = 'reflection'")
        connection.execute("UPDATE memories SET outdated_at = '2026-02-01' WHERE superseded_at IS NOT NULL")
    [then] = (await recalled(client, "our river", as_of="2026-01-15T00:00:00Z"))["hits"]
    [now] = (await recalled(client, "our river"))["hits"]
    assert (then["kind"], now["kind"]) == ("observation", "reflection")
    later = await recalled(client, "our river", as_of="2026-02-15T00:00:00Z", kinds=["observation"])
    assert later["hits"] == []


async def test_an_answer_fits_its_token_limit_and_reports_what_it_left_out(client: httpx2.AsyncClient) -> None:
    await noted(client, *(f"River number {n} runs through the land and into the sea." for n in range(40)))
    answer = await recalled(client, "river", limit=40, max_tokens=120)
    assert 1 <= len(answer["hits"]) <= 5
    assert answer["omitted"] == 40 - len(answer["hits"])
    assert not answer["abstained"]


async def test_a_long_row_is_skipped_in_favour_of_shorter_ones_unless_it_is_the_best(
    client: httpx2.AsyncClient,
) -> None:
    long = "The river Rhine " + "flows and flows " * 200
    await noted(client, long, "The river Rhine.", "A river.")
    first = await recalled(client, "river Rhine", max_tokens=150)
    assert "The river Rhine." in contents(first)
    assert "A river." in contents(first)
    assert long.strip() not in contents(first)
    alone = await recalled(client, "flows", max_tokens=150)
    [hit] = alone["hits"]
    assert hit["truncated"]
    assert long.startswith(hit["content"])
    assert len(hit["content"]) > 100


@pytest.mark.parametrize("asked", [{"query": " \n"}, {"query": "x", "limit": 0}, {"query": "x", "max_tokens": 1}])
async def test_an_invalid_question_is_refused(client: httpx2.AsyncClient, asked: dict[str, Any]) -> None:
    assert (await client.post("/v1/recall", json=asked)).status_code == 422


async def test_an_answer_reports_how_much_is_not_observed_yet(client: httpx2.AsyncClient) -> None:
    session = await opened(client)
    report = await said(client, session, "Our river is the Rhine.")
    other = await opened(client, "s2")
    asked = [{}, {"scope": "session", "session_id": session}, {"scope": "session", "session_id": other}]
    waiting = [(await recalled(client, "river", **more))["unobserved_tokens"] for more in asked]
    assert waiting == [report["unobserved_tokens"], report["unobserved_tokens"], 0]


async def test_every_id_of_an_answer_works_everywhere(client: httpx2.AsyncClient) -> None:
    await noted(client, *FACTS)
    for hit in (await recalled(client, "passenger refund tablets Redis"))["hits"]:
        shown = (await client.get(f"/v1/memories/{hit['id']}")).json()
        assert shown["content"] == hit["content"]
        assert (await client.delete(f"/v1/memories/{hit['id']}")).status_code == 200


async def test_the_command_says_when_memory_is_empty_and_how_to_fill_it(client: httpx2.AsyncClient) -> None:
    shown = await asyncio.to_thread(esker, "recall", "river", ESKER_URL=str(client.base_url))
    assert "Memory is empty: `esker install`" in shown.stdout
    await noted(client, "Our river is the Rhine.")
    shown = await asyncio.to_thread(esker, "recall", "bridge", ESKER_URL=str(client.base_url))
    assert ("Nothing in memory" in shown.stdout, "empty" in shown.stdout) == (True, False)


async def test_the_same_words_are_one_hit(client: httpx2.AsyncClient) -> None:
    await noted(client, *({"content": "Our river is the Rhine.", "external_id": f"n{n}"} for n in range(3)))
    assert contents(await recalled(client, "river")) == ["Our river is the Rhine."]
