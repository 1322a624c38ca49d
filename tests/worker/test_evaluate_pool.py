"""An evaluation finds the faults of a pool in its own rows, and changes nothing."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from itertools import islice
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.errors import ReadOnlySqlTransaction

from esker.server.core.errors import Unavailable
from esker.server.core.pool import known_answers
from esker.server.core.pool.evaluation import PoolEvaluation
from esker.server.core.pool.known_answers import made_up_words
from esker.server.core.recall.candidates import TextHit
from esker.server.core.records import Pool, Principal, Space
from esker.server.core.text.tokens import estimate_tokens
from esker.server.evaluation.verdicts import PoolVerdict, headline, verdicts
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.store import search, vectors
from esker.server.usecases import build_vector_indexes, evaluate_packs, evaluate_recall
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.build_vector_indexes import index_large_tiers
from esker.server.usecases.embed import make_space, register
from esker.server.usecases.evaluate_pool import EvaluationRequest, evaluate_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.run_job import claim_job, run_job
from tests.support.clock import FakeClock
from tests.support.databases import contents
from tests.support.embedding_server import asked_at, embedding_server
from tests.support.vectors import matrix, note_with_vectors, unit_vectors
from tests.worker.test_worker import drain

FACTS = [
    "The backup of the ledger runs on Tuesdays from the Oslo bastion.",
    "Ottilie prefers trout over salmon when the Lisbon office orders lunch.",
    "The parser in lexer.py:88 chokes on nested backticks since v2.4.1.",
    "Invoices above 4,000 euros need a signature from Marguerite.",
    "The staging cluster ran out of inodes because of thumbnails.",
    "Kerberos tickets expire after nine hours on the Helsinki gateway.",
    "The mobile team freezes its branch every second Thursday evening.",
    "Postgres autovacuum was tuned for the telemetry partition.",
    "The podcast about glaciers is recorded in the small blue room.",
    "Retries of the webhook use jitter with a ceiling of ninety seconds.",
    "The museum licence for the heron photograph ends with the exhibition.",
    "Beatrice moved the sourdough recipe into the kitchen handbook.",
]


def quiet(_: str, __: int) -> Callable[[], None]:
    """Ignore progress."""
    return lambda: None


_ASKED = EvaluationRequest(queries=40)
_FEW = EvaluationRequest(queries=4)
"""For what is read from the rows themselves: questions are nearly all that an evaluation costs."""


async def evaluate(parts: Parts, who: Principal, asked: EvaluationRequest = _ASKED) -> PoolEvaluation:
    """Evaluate the pool of `who`."""
    return await evaluate_pool(parts, Pool(who.pool_id, who.pool_name), asked, quiet)


def told(found: PoolEvaluation) -> dict[str, PoolVerdict]:
    """Return the verdicts by figure."""
    return {verdict.figure: verdict for verdict in verdicts(found)}


@pytest.fixture
async def filled(parts: Parts, who: Principal) -> Parts:
    """A pool with facts of one project and a session that was observed."""
    await remember(parts, who, [Note(fact, project="north") for fact in FACTS])
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1", project="north"))
    said = [
        "We decided to store the sensor readings in Parquet files on the Bergen bucket.",
        "Remember that Theodora signs off every change of the firewall at the Tromsø site.",
    ]
    messages = [IncomingMessage(f"m{n}", "user", text) for n, text in enumerate(said)]
    await ingest(parts, who.pool_id, session.id, messages)
    await observe(parts, who.pool_id, session.id, wait=False)
    lease = await claim_job(parts, who.pool_id, ["observe"])
    assert lease
    await run_job(parts, lease, observe_leased)
    return parts


@asynccontextmanager
async def scripted_embedder() -> AsyncGenerator[RemoteEmbedder]:
    """An embedder that maps texts with common words to near vectors."""
    async with embedding_server(64) as endpoint, asked_at(endpoint) as embedder:
        yield embedder


async def with_vectors(parts: Parts, who: Principal, notes: Sequence[Note], embedder: RemoteEmbedder) -> Parts:
    """Write notes and embed the whole pool; return parts whose recall asks the embedder, too."""
    if notes:
        await remember(parts, who, notes)
    space = await embedder.load()
    await make_space(parts, space)
    await register(parts, space, or_retired=False)
    await drain(parts, embedder, space)
    return replace(parts, embedders=QueryEmbedders(lambda _: embedder, "scripted"))


@pytest.fixture
async def embedded(filled: Parts, who: Principal) -> AsyncGenerator[Parts]:
    """The same, with vectors of a scripted embedder that recall asks, too."""
    async with scripted_embedder() as embedder:
        yield await with_vectors(filled, who, [], embedder)


def plant(owner_url: str, statement: LiteralString, **values: Any) -> None:
    """Change the database directly."""
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute(statement, values)


# No writes -----------------------------------------------------------------------------------------------------------


async def test_an_evaluation_changes_nothing(embedded: Parts, who: Principal, owner_url: str) -> None:
    before = contents(owner_url)
    found = await evaluate(embedded, who)
    assert found.asked
    assert found.packs
    assert contents(owner_url) == before


async def test_a_second_evaluation_finds_the_same(embedded: Parts, who: Principal) -> None:
    first, second = await evaluate(embedded, who), await evaluate(embedded, who)

    def timeless(found: PoolEvaluation) -> dict[str, Any]:
        return asdict(replace(found, asked=[replace(one, milliseconds=0.0) for one in found.asked]))

    assert timeless(first) == timeless(second)
    other = await evaluate(embedded, who, EvaluationRequest(queries=40, seed=1))
    assert [one.question for one in other.asked] != [one.question for one in first.asked]


async def test_postgres_refuses_writes_during_an_evaluation(
    filled: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def writes(connection: Any, *_: object) -> None:
        await connection.execute("UPDATE memories SET last_used_at = now()")

    monkeypatch.setattr(evaluate_packs, "choose_rows", writes)
    with pytest.raises(Unavailable, match="takes no writes") as refused:
        await evaluate(filled, who)
    assert isinstance(refused.value.__cause__, ReadOnlySqlTransaction)


async def test_a_snapshot_is_of_one_pool_and_sees_one_moment(filled: Parts, who: Principal) -> None:
    other = await create_pool(filled, "other")
    async with filled.database.snapshot(who.pool_id) as snapshot:
        async with snapshot.tenant(who.pool_id) as connection:
            before = await vectors.live_rows(connection)
        await remember(filled, who, [Note("Something that was written meanwhile.")])
        async with snapshot.moment(who.pool_id) as connection:
            assert await vectors.live_rows(connection) == before
        with pytest.raises(ValueError, match="one pool"):
            async with snapshot.tenant(other.id):
                pass
    async with filled.database.tenant(who.pool_id) as connection:
        assert await vectors.live_rows(connection) == before + 1


# Findable memory -----------------------------------------------------------------------------------------------------


async def test_a_sound_pool_has_no_wrong_figure(embedded: Parts, who: Principal) -> None:
    found = await evaluate(embedded, who)
    said = told(found)
    ways = found.ranks_by_way()
    assert set(ways) == {"full recall", "by words alone", "by meaning alone"}
    assert ways["full recall"].asked == len(found.asked) >= len(FACTS)
    assert {one.question.tier for one in found.asked} == {"memory", "passage"}
    assert ways["full recall"].recall[10] == 1.0
    assert ways["full recall"].recall[1] <= ways["full recall"].recall[5] <= ways["full recall"].recall[10]
    assert found.without_meaning is None
    assert (found.store.messages.messages, found.store.messages.covered, found.store.messages.lost) == (2, 2, 0)
    assert found.store.missing
    assert found.store.missing.missing == 0
    assert [pack.precision for pack in found.packs] == [1.0]
    assert found.packs[0].rows >= len(FACTS)
    assert 0 < found.packs[0].tokens <= found.packs[0].budget
    assert {verdict.figure for verdict in said.values() if verdict.status == "wrong"} == set()


async def test_without_a_model_only_keywords_are_searched_and_a_warning_says_so(filled: Parts, who: Principal) -> None:
    found = await evaluate(filled, who)
    assert set(found.ranks_by_way()) == {"full recall", "by words alone"}
    assert found.without_meaning == "no embedder is configured"
    assert told(found)["search by meaning"].status == "warning"
    assert told(found)["texts without a vector"].shown == "all"
    assert found.ranks_by_way()["full recall"].recall[10] == 1.0


async def test_an_empty_pool_is_not_a_fault(parts: Parts, who: Principal) -> None:
    found = await evaluate(parts, who)
    assert (found.asked, found.packs, len(found.made_up)) == ([], [], 8)
    assert found.false_answers == 0.0
    said = verdicts(found)
    assert told(found)["full recall"].status == "unknown"
    assert headline(said) == "1 figure not measured."


async def test_rows_without_postings_lower_recall(filled: Parts, who: Principal, owner_url: str) -> None:
    plant(
        owner_url,
        "DELETE FROM postings WHERE tier = 'm' AND number IN (SELECT number FROM memories WHERE kind = 'note')",
    )
    found = await evaluate(filled, who)
    # Only the rows of the session can be found.
    assert found.ranks_by_way()["full recall"].recall[10] < 0.5
    assert told(found)["full recall"].status == "wrong"


async def test_a_repeat_of_the_right_text_counts_as_the_answer(parts: Parts, who: Principal) -> None:
    texts = [fact for fact in FACTS for _ in range(2)]
    await remember(parts, who, [Note(text if n % 2 else text.upper()) for n, text in enumerate(texts)])
    found = await evaluate(parts, who)
    assert found.ranks_by_way()["full recall"].recall[1] == 1.0


async def test_rows_of_another_pool_are_not_counted(filled: Parts, who: Principal) -> None:
    other = await create_pool(filled, "other")
    found = await evaluate(filled, replace(who, pool_id=other.id, pool_name="other"))
    assert (found.asked, found.store.rows.rows, found.store.vectors, found.packs) == ([], 0, [], [])


async def test_a_made_up_question_that_is_answered_is_counted(
    filled: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await evaluate(filled, who)
    assert [one.score for one in found.made_up if " " not in one.query] == [None] * 2
    monkeypatch.setattr(
        "esker.server.usecases.evaluate_recall.unanswerable", lambda *_: ["heron photograph", "xyzzy-12"]
    )
    wrongly = await evaluate(filled, who)
    assert [one.score is not None for one in wrongly.made_up] == [True, False]
    assert wrongly.false_answers == 0.5
    assert told(wrongly)["false answers"].status == "warning"


async def test_made_up_questions_are_not_answered_by_the_ordinary_words_in_them(parts: Parts, who: Principal) -> None:
    ordinary = ["keeps", "repaired", "often checks", "likes the colour of", "decided about", "was late for"]
    told = [f"The crew of {place} {did} the boat." for place in ("Antwerp", "Bergen", "Cork") for did in ordinary]
    await remember(parts, who, [Note(text) for text in (*told, *(f"Pier {n} is long." for n in range(80)))])
    found = await evaluate(parts, who, replace(_ASKED, queries=100))
    assert len(found.made_up) == 20
    assert found.false_answers <= 0.2


@pytest.mark.parametrize(("few", "asked"), [(3, 3), (2, 0)])
async def test_words_are_counted_far_enough_to_see_that_they_are_frequent(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch, few: int, asked: int
) -> None:
    monkeypatch.setattr(known_answers, "MOST_FEW", few)
    monkeypatch.setattr(evaluate_recall, "MOST_FEW", few)
    words = ["trout", "salmon", "pike", "perch", "herring", "mackerel", "sturgeon", "halibut"]
    await remember(parts, who, [Note(" ".join([*words[n:], *words[:n]])) for n in (0, 3, 5)])
    assert len((await evaluate(parts, who)).asked) == asked


# Faults --------------------------------------------------------------------------------------------------------------


async def test_repeated_rows_are_found(parts: Parts, who: Principal) -> None:
    await remember(parts, who, [Note(fact) for fact in FACTS])
    assert (await evaluate(parts, who, _FEW)).store.repeated.ids == []
    await remember(parts, who, [Note("the backup of the LEDGER runs on Tuesdays from the Oslo bastion.")])
    await remember(parts, who, [Note("The backup of the ledger runs on Tuesdays from the Bergen bastion.")])
    found = await evaluate(parts, who, _FEW)
    assert found.store.repeated.compared == len(FACTS) + 2
    assert len(found.store.repeated.ids) == 1
    assert told(found)["repeated rows"].status == "warning"


async def test_paraphrases_with_near_vectors_are_repeats(parts: Parts, who: Principal) -> None:
    space = Space("near_4", "m", "r", 4, "", "openai:http://x#m")
    await note_with_vectors(parts, who, space, unit_vectors(1, 4, seed=1))
    both = ["Deploys go to Render.", "The user said that deploys are done on Render."]
    await remember(parts, who, [Note(text) for text in both])
    assert (await evaluate(parts, who, _FEW)).store.repeated.ids == []
    async with parts.database.tenant(who.pool_id) as connection:
        batch = await vectors.claim(connection, space.name, parts.clock(), timedelta(0), tried=False, limit=9)
        await vectors.store(connection, batch, batch.rows, [matrix([[1.0, 0, 0, 0]])] * 2, parts.clock())
    assert len((await evaluate(parts, who, _FEW)).store.repeated.ids) == 1


async def test_stale_and_expired_rows_are_found(
    filled: Parts, who: Principal, owner_url: str, clock: FakeClock
) -> None:
    assert (await evaluate(filled, who, _FEW)).store.rows.stale == 0
    low: LiteralString = "UPDATE memories SET priority = 'low' WHERE content LIKE 'The podcast%%'"
    plant(owner_url, low)
    plant(
        owner_url,
        "UPDATE memories SET valid_until = %(then)s WHERE content LIKE 'Kerberos%%'",
        then=clock() - timedelta(days=1),
    )
    clock.now += timedelta(days=89)
    fresh = await evaluate(filled, who, _FEW)
    assert (fresh.store.rows.stale, fresh.store.rows.expired, fresh.store.rows.unmarked) == (0, 1, 1)
    assert told(fresh)["expired rows"].status == "warning"
    clock.now += timedelta(days=2)
    assert (await evaluate(filled, who, _FEW)).store.rows.stale == 1
    assert (await evaluate(filled, who, replace(_FEW, stale_days=120))).store.rows.stale == 0
    plant(owner_url, "UPDATE memories SET expired = true WHERE valid_until IS NOT NULL")
    assert (await evaluate(filled, who, _FEW)).store.rows.unmarked == 0


@pytest.mark.parametrize(
    ("change", "live", "stale"),
    [
        ("priority = 'low'", 12, 1),
        ("priority = 'medium'", 12, 0),
        ("priority = 'low', kind = 'manual'", 12, 0),
        ("priority = 'low', last_used_at = %(now)s", 12, 0),
        ("priority = 'low', created_at = %(now)s", 12, 0),  # from an old transcript, ingested today
        ("priority = 'low', valid_until = %(now)s", 11, 0),
        ("priority = 'low', superseded_by = 'mem_0', superseded_at = %(now)s, outdated_at = %(now)s", 11, 0),
    ],
)
async def test_stale_rows_are_live_unused_unpinned_and_of_low_priority(
    parts: Parts, who: Principal, owner_url: str, clock: FakeClock, change: str, live: int, stale: int
) -> None:
    await remember(parts, who, [Note(fact) for fact in FACTS])
    clock.now += timedelta(days=91)
    changed: Any = f"UPDATE memories SET {change} WHERE content LIKE 'The podcast%%'"  # noqa: S608
    plant(owner_url, changed, now=clock())
    found = (await evaluate(parts, who, _FEW)).store
    assert (found.rows.rows, found.rows.live, found.rows.stale) == (len(FACTS), live, stale)
    # Live rows alone are counted by age and compared.
    assert sum(count for of_kind in found.by_age.values() for count in of_kind.values()) == live
    assert found.repeated.compared == live


async def test_a_row_is_orphaned_only_without_any_source(filled: Parts, who: Principal, owner_url: str) -> None:
    drawn: LiteralString = (
        "UPDATE memories SET kind = 'reflection', reflection_id = 'ref_1', source_ids = %(sources)s"
        " WHERE content LIKE 'The museum%%'"
    )
    plant(owner_url, drawn, sources=["mem_gone", "mem_lost"])
    [orphan] = (await evaluate(filled, who, _FEW)).store.orphaned_rows
    with psycopg.connect(owner_url, autocommit=True) as connection:
        [(museum,), (podcast,)] = connection.execute(
            "SELECT id FROM memories WHERE content LIKE 'The museum%' OR content LIKE 'The podcast%' ORDER BY content"
        ).fetchall()
    assert orphan == museum
    # One of its sources is enough.
    plant(owner_url, drawn, sources=["mem_gone", podcast])
    assert (await evaluate(filled, who, _FEW)).store.orphaned_rows == []
    # A repeated row has another source.
    plant(owner_url, "UPDATE memories SET source_seqs = ARRAY[77] WHERE kind = 'observation'")
    said_once = (await evaluate(filled, who, _FEW)).store.orphaned_rows
    plant(
        owner_url,
        "INSERT INTO memory_sources (pool_id, memory_id, session_id, group_id, seqs, said_at)"
        " SELECT pool_id, id, session_id, group_id, ARRAY[1], said_at FROM memories WHERE id = %(first)s",
        first=said_once[0],
    )
    assert (await evaluate(filled, who, _FEW)).store.orphaned_rows == said_once[1:]


async def test_all_but_one_of_equal_rows_are_repeats_within_a_project(parts: Parts, who: Principal) -> None:
    said = ["The heron licence ends in May.", "the HERON licence ends in May", "The heron licence ends in  May!"]
    await remember(parts, who, [Note(text, project="north") for text in said])
    await remember(parts, who, [Note(fact, project="north") for fact in FACTS[:3]])
    await remember(parts, who, [Note(fact, project="south") for fact in FACTS[:3]])
    found = (await evaluate(parts, who, _FEW)).store.repeated
    assert (found.compared, len(found.ids)) == (9, 2)


async def test_orphaned_rows_are_found(filled: Parts, who: Principal, owner_url: str) -> None:
    assert (await evaluate(filled, who, _FEW)).store.orphaned_rows == []
    plant(owner_url, "UPDATE memories SET source_seqs = ARRAY[77] WHERE kind = 'observation'")
    found = await evaluate(filled, who, _FEW)
    assert len(found.store.orphaned_rows) == found.store.rows.live - len(FACTS) > 0
    assert told(found)["orphaned rows"].status == "warning"


async def test_expired_rows_are_neither_orphans_nor_counted_for_a_project(
    filled: Parts, who: Principal, owner_url: str, clock: FakeClock
) -> None:
    await remember(filled, who, [Note(f"Berth {n} belongs to the {n}th boat.", project="south") for n in range(30)])
    plant(owner_url, "UPDATE memories SET source_seqs = ARRAY[77] WHERE kind = 'observation'")
    found = await evaluate(filled, who, _FEW)
    assert found.store.orphaned_rows
    assert [pack.project for pack in found.packs] == ["south", "north"]
    over: LiteralString = (
        "UPDATE memories SET valid_until = %(now)s WHERE kind = 'observation' OR (project = 'south' AND %(all)s)"
    )
    plant(owner_url, over, now=clock(), all=False)
    assert (await evaluate(filled, who, _FEW)).store.orphaned_rows == []
    plant(owner_url, over, now=clock(), all=True)
    assert [pack.project for pack in (await evaluate(filled, who, _FEW)).packs] == ["north"]


async def test_a_gap_between_groups_is_found(filled: Parts, who: Principal, owner_url: str) -> None:
    plant(owner_url, "UPDATE observation_groups SET first_seq = 2, last_seq = 2")
    found = await evaluate(filled, who, _FEW)
    assert (found.store.messages.covered, found.store.messages.lost) == (1, 1)
    assert told(found)["coverage"].status == "wrong"


async def test_orphaned_vectors_and_those_of_another_model_are_found(
    embedded: Parts, who: Principal, owner_url: str
) -> None:
    [active] = (await evaluate(embedded, who, _FEW)).store.vectors
    assert (active.state, active.orphaned, active.outdated) == ("active", 0, 0)
    left = Space("left_3", "left", "r", 3, "", "openai:http://x#left")
    await vectors.create_space(embedded.database, left)
    plant(
        owner_url,
        "INSERT INTO embeddings_left_3 (pool_id, tier, number, part, content_hash, embedding, created_at)"
        " SELECT pool_id, 'm', number, 0, content_hash, '[1,2,3]', now() FROM memories LIMIT 5",
    )
    plant(
        owner_url,
        "UPDATE embeddings_left_3 SET number = -number WHERE number = (SELECT max(number) FROM embeddings_left_3)",
    )
    plant(
        owner_url,
        "UPDATE embeddings_left_3 SET content_hash = 'x' WHERE number = (SELECT max(number) FROM embeddings_left_3)",
    )
    found = await evaluate(embedded, who, _FEW)
    [other] = [table for table in found.store.vectors if table.space == "left_3"]
    assert (other.model, other.state, other.vectors, other.orphaned, other.outdated) == (None, None, 5, 1, 1)
    assert told(found)["vectors of another model"].shown == "5"
    assert told(found)["orphaned vectors"].shown == "2"


async def test_rows_that_wait_for_a_vector_are_counted(embedded: Parts, who: Principal) -> None:
    await remember(embedded, who, [Note("A row that no worker has seen yet.")])
    found = await evaluate(embedded, who, _FEW)
    assert found.store.missing
    assert (found.store.missing.missing, found.store.missing.waiting, found.store.missing.failed) == (1, 1, 0)
    assert told(found)["texts without a vector"].status == "warning"


async def test_an_index_that_misses_rows_is_found(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_vector_indexes, "LARGE", 500)
    monkeypatch.setattr(build_vector_indexes, "SMALL", 250)
    space = Space("indexed_16", "m", "r", 16, "", "openai:http://x#m")
    await note_with_vectors(parts, who, space, unit_vectors(1_000, 16, seed=1))
    await index_large_tiers(parts)
    [sound] = (await evaluate(parts, who, _FEW)).store.indexes
    assert (sound.tier, sound.questions) == ("memory", 20)
    assert sound.agreement >= 0.98
    through_index = search.by_vector_index

    async def misses_half(*arguments: Any, **named: Any) -> list[TextHit]:
        return (await through_index(*arguments, **named))[::2]

    monkeypatch.setattr(search, "by_vector_index", misses_half)
    found = await evaluate(parts, who, _FEW)
    assert 0.4 < found.store.indexes[0].agreement < 0.6
    assert told(found)["index of memory vectors"].status == "wrong"


async def test_exact_and_approximate_search_are_measured_side_by_side(
    parts: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_vector_indexes, "LARGE", 200)
    monkeypatch.setattr(build_vector_indexes, "SMALL", 100)
    asked = EvaluationRequest(queries=20)
    notes = [
        Note(f"Berth {word} of wharf {n % 7} was dredged.") for n, word in enumerate(islice(made_up_words(1), 250))
    ]
    async with scripted_embedder() as embedder:
        embedded = await with_vectors(parts, who, notes, embedder)
        session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
        await ingest(
            parts, who.pool_id, session.id, [IncomingMessage("m1", "user", "Ottilie moored the eel boat late.")]
        )
        await drain(parts, embedder, await embedder.load())
        await index_large_tiers(parts)
        sound = await evaluate(embedded, who, asked)
        of_rows = [one for one in sound.asked if one.question.tier == "memory"]
        assert len(of_rows) < len(sound.asked)
        # Passages are too few to have an index.
        assert [one.meaning.indexed for one in sound.asked] == [one in of_rows for one in sound.asked]
        assert sound.ranks_by_way()["by meaning, with the index"].asked == len(of_rows)
        assert [one.meaning.approximate for one in of_rows] == [one.meaning.exact for one in of_rows]
        assert sum(one.meaning.exact is not None for one in of_rows) > len(of_rows) / 3

        through_index: Any = search.by_vector_index

        async def misses_the_nearest(*arguments: Any) -> list[TextHit]:
            *others, limit = arguments
            return (await through_index(*others, limit + 10))[10:]

        monkeypatch.setattr(search, "by_vector_index", misses_the_nearest)
        blind = await evaluate(embedded, who, asked)
    assert [one.meaning.exact for one in blind.asked] == [one.meaning.exact for one in sound.asked]
    ways = blind.ranks_by_way()
    assert ways["by meaning, with the index"].recall[10] < ways["by meaning alone"].recall[10] / 2


async def test_a_repeat_in_a_pack_is_named(filled: Parts, who: Principal, owner_url: str) -> None:
    again = "the BACKUP of the ledger runs  on Tuesdays from the Oslo bastion!"
    await remember(filled, who, [Note(again, project="north")])
    [pack] = (await evaluate(filled, who)).packs
    assert pack.project == "north"
    assert set(pack.faults.values()) == {"repeat"}
    assert pack.precision == 1 - 1 / pack.rows
    assert list(pack.worth.worthless.values()) == ["repeat"]


async def test_the_worth_of_a_pack_excludes_the_tokens_of_rows_without_a_subject(filled: Parts, who: Principal) -> None:
    [before] = (await evaluate(filled, who)).packs
    await remember(filled, who, [Note(text := "that one should not do it", project="north")])
    [pack] = (await evaluate(filled, who)).packs
    assert list(pack.worth.worthless.values()) == ["no subject"]
    assert pack.worth.tokens == before.worth.tokens + estimate_tokens(text)
    assert before.worth.useful == 1.0
    assert pack.worth.useful == before.worth.tokens / pack.worth.tokens


async def test_the_tokens_of_a_pack_exclude_its_local_part(filled: Parts, who: Principal) -> None:
    [pack] = (await evaluate(filled, who)).packs
    session = await open_session(filled, who.pool_id, SessionRequest("api", "s2", project="north"))
    shown, _, _ = (await get_pack(filled, who.pool_id, session.id)).text.partition("<local_observations>")
    assert pack.tokens == estimate_tokens(shown)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("superseded_by = 'mem_0', superseded_at = now(), outdated_at = now()", "superseded"),
        ("valid_until = '2020-01-01'", "expired"),
        ("project = 'south'", "elsewhere"),
    ],
)
async def test_a_pack_is_checked_against_the_rows_themselves(
    filled: Parts, who: Principal, owner_url: str, change: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = evaluate_packs.choose_rows

    async def as_it_was(connection: Any, session: Any, now: Any) -> Any:
        choice = await chosen(connection, session, now)
        gone = "The podcast about glaciers is recorded in the small blue room."
        row = await (await connection.execute("SELECT id FROM memories WHERE content = %s", [gone])).fetchone()
        return replace(choice, reasons=[*choice.reasons, choice.reasons[0]._replace(id=row[0])])

    monkeypatch.setattr(evaluate_packs, "choose_rows", as_it_was)
    podcast: Any = f"UPDATE memories SET {change} WHERE content LIKE 'The podcast%%'"  # noqa: S608
    plant(owner_url, podcast)
    found = await evaluate(filled, who, EvaluationRequest(queries=4, projects=1))
    assert fault in found.packs[0].faults.values()
    assert told(found)["pack of north"].status == "wrong"
