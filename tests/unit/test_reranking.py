"""Reranking: a reranker decides the order of hits; the score of each position stays the same."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.recall.answer import Hit, ScoreParts
from esker.server.core.recall.reranking import FIRST, reordered, shown
from esker.server.core.text.tokens import estimate_tokens
from tests.support.records import hit

PARTS = ScoreParts(1, 1, 1.0, 0.5, 0.0, 0.0, 1.0, 0.0)
HIT = hit(parts=PARTS)


def hits(scores: list[float]) -> list[Hit]:
    """Return hits with these scores, best first."""
    return [replace(HIT, id=f"mem_{n}", score=score) for n, score in enumerate(sorted(scores, reverse=True))]


@given(
    st.lists(st.floats(0.5, 1), max_size=30),
    st.lists(st.floats(-20, 20), min_size=FIRST, max_size=FIRST),
)
def test_hits_are_in_the_rerankers_order_and_each_position_keeps_its_score(
    scores: list[float], given: list[float]
) -> None:
    before = hits(scores)
    given = given[: len(before)]
    after = reordered(before, given)
    assert sorted(hit.id for hit in after) == sorted(hit.id for hit in before)
    assert [hit.score for hit in after] == [hit.score for hit in before]
    order = [given[before.index(next(hit for hit in before if hit.id == one.id))] for one in after[: len(given)]]
    assert order == sorted(order, reverse=True)
    assert after[len(given) :] == before[len(given) :]


def test_ties_keep_their_order_and_parts_show_the_rerankers_score() -> None:
    after = reordered(hits([0.9, 0.8, 0.7]), [0.1, 0.3, 0.1])
    assert [hit.id for hit in after] == ["mem_1", "mem_0", "mem_2"]
    assert [hit.parts and hit.parts.rerank for hit in after] == [0.3, 0.1, 0.1]
    assert HIT.parts is PARTS


def test_a_reranker_reads_only_the_first_hits_each_cut_to_its_limit() -> None:
    found = [replace(HIT, content="word " * 5_000)] * (FIRST + 10)
    texts = shown(found)
    assert len(texts) == FIRST
    assert max(map(estimate_tokens, texts)) <= 300
