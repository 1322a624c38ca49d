"""Signals of candidates: each search also scores the texts that only the other has found."""

import math
from datetime import timedelta

import pytest

from esker.server.core.recall.relevance import Signals
from esker.server.core.records import Calibration, Filter, Principal, Space
from esker.server.db.pipeline import fetch
from esker.server.store import search, vectors
from esker.server.store.search import QueryTerms
from esker.server.usecases import find_candidates as finding
from esker.server.usecases import term_counts
from esker.server.usecases.embed import register
from esker.server.usecases.find_candidates import Question, find_candidates
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.term_counts import TermCounts
from tests.support.clock import FakeClock
from tests.support.vectors import matrix

SPACE = Space("few_2", "m", "r", 2, "", "openai:http://x#m")
CALIBRATION = Calibration(mean=0.0, deviation=0.1, weight=1.0)
SHORT, LONG = "The heron sleeps.", "The heron sleeps and the otter swims."
# The cosines of the parts of each with the question (1, 0).
COSINES = {SHORT: [0.8], LONG: [0.6, 0.0, 0.28]}


@pytest.fixture
async def known(parts: Parts, who: Principal) -> Parts:
    """A pool with a short text and a long one, whose three parts have a vector each."""
    await vectors.create_space(parts.database, SPACE)
    await register(parts, SPACE, or_retired=False)
    await remember(parts, who, [Note(SHORT), Note(LONG)])
    async with parts.database.tenant(who.pool_id) as connection:
        batch = await vectors.claim(connection, SPACE.name, parts.clock(), timedelta(0), tried=False, limit=9)
        made = [matrix([cosine, math.sqrt(1 - cosine**2)] for cosine in COSINES[row.content]) for row in batch.rows]
        assert await vectors.store(connection, batch, batch.rows, made, parts.clock()) == 2
    return parts


async def signals(parts: Parts, who: Principal, words: QueryTerms) -> dict[str, Signals]:
    """Return the signals of both searches for each text found."""
    async with parts.database.moment_pipeline(who.pool_id) as connection:
        [space] = await vectors.spaces(connection)
        question, row_filter = (
            Question(words, space, matrix([[1.0, 0.0]])[0], CALIBRATION, "fused"),
            Filter(parts.clock()),
        )
        sizes = await fetch(connection, search.sizes(row_filter))
        counts = TermCounts().in_pool(who.pool_id, None, parts.clock())
        [found] = await find_candidates(connection, [question], ["memory"], row_filter, sizes, counts)
        cursor = await connection.execute("SELECT number, content FROM memories")
        content = {int(row[0]): str(row[1]) for row in await cursor.fetchall()}
    return {content[number]: each for number, each in found.signals.items()}


async def test_the_cosine_of_a_text_with_many_parts_is_corrected_for_chance(known: Parts, who: Principal) -> None:
    found = await signals(known, who, QueryTerms([], []))
    assert found[SHORT].cosine == pytest.approx(0.8, abs=1e-3)
    assert found[LONG].cosine == pytest.approx(0.6 - 0.7 * CALIBRATION.deviation * math.log(3), abs=1e-3)


async def test_a_candidate_of_one_search_also_has_the_signal_of_the_other(
    known: Parts, who: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = QueryTerms(["heron", "otter"], [0, 1])
    all_of_it = await signals(known, who, words)
    assert all_of_it[LONG].keyword > all_of_it[SHORT].keyword > 0
    monkeypatch.setattr(finding, "MOST", 1)
    # The long text is the best by words, and the short one the nearest.
    assert await signals(known, who, words) == all_of_it


async def test_counts_of_common_words_are_shared_by_recalls_and_made_again_after_five_minutes(
    known: Parts, who: Principal, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_counts, "_COMMON", 2)

    def kept() -> dict[str, float]:
        return known.term_counts.in_pool(who.pool_id, None, clock()).known("memory", 2, ["heron", "otter"])

    await recall(known, who.pool_id, RecallRequest("Where do the heron and the otter sleep?"))
    assert kept() == {"heron": 2.0}
    clock.advance(minutes=4)
    await recall(known, who.pool_id, RecallRequest("Where does the heron sleep?"))
    assert kept() == {"heron": 2.0}
    clock.advance(minutes=1)
    assert kept() == {}
