"""Rows that state the same are found without comparing every pair, and none is missed."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.facts import duplicate_pairs
from esker.server.core.facts.duplicate_pairs import compared, repeated, repeats
from esker.server.core.facts.retelling import retold_print, say_the_same
from esker.server.core.facts.same_fact import fingerprint
from esker.server.core.records import Memory
from tests.support.records import memory

WORDS = "Use Redis Postgres for the cache sessions always never user said deploy runs nightly on port 6379 to 42 in of"
TEXTS = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=9).map(" ".join)


@given(st.lists(TEXTS, max_size=12), st.booleans())
def test_the_same_repeats_are_found_as_by_comparing_every_pair(texts: list[str], close: bool) -> None:
    rows = [memory(text) for text in texts]
    near = {(one.id, other.id): 0.95 for one, other in combinations(rows, 2)} if close else {}
    marks = {row.id: fingerprint(row.content) for row in rows}
    pairs = {
        (one.id, other.id)
        for one, other in combinations(rows, 2)
        if say_the_same(one, other, marks, retold_print, near)
        or one.content.casefold().split() == other.content.casefold().split()
    }
    said_by = repeats(compared(rows), near)
    found = {(min(one, other), max(one, other)) for one, others in said_by.items() for other in others}
    # Rows with one wording count as one, at any cosine between them.
    assert pairs <= found
    first = {text: row.id for text, row in reversed([(words(row), row) for row in rows])}
    stand = {row.id: first[words(row)] for row in rows}
    for one, other in found - pairs:
        a, b = sorted((stand[one], stand[other]))
        assert a == b or (a, b) in pairs


def words(row: Memory) -> str:
    """Return the words of a row, case and space aside."""
    return " ".join(row.content.casefold().split())


def test_rows_that_say_the_same_are_named_and_one_of_them_may_stay() -> None:
    first = memory("The deploy runs nightly on Render.", id="mem_1")
    again = memory("the deploy runs  nightly on Render.", id="mem_2")
    other = memory("The deploy runs nightly on Heroku.", id="mem_3")
    said_by = repeats(compared([first, again, other]), {})
    assert said_by == {"mem_1": {"mem_2"}, "mem_2": {"mem_1"}}
    assert repeated(said_by) == ["mem_2"]


def test_rows_of_two_projects_are_not_repeats_but_rows_without_one_are() -> None:
    text = "The deploy runs nightly on Render."
    one, two = memory(text, id="mem_1", project="a"), memory(text, id="mem_2", project="b")
    assert repeats(compared([one, two]), {}) == {}
    both = memory(text, id="mem_3")
    assert repeats(compared([one, two, both]), {})["mem_3"] == {"mem_1", "mem_2"}


@pytest.mark.parametrize(("source", "drawn"), [("mem_1", "mem_2"), ("mem_2", "mem_1")])
def test_sources_of_a_reflection_are_not_repeats_of_it(source: str, drawn: str) -> None:
    row = memory("The deploy runs nightly on Render.", id=source)
    insight = memory("The deploy runs nightly on Render!", id=drawn, source_ids=[source], kind="reflection")
    assert repeats(compared([row, insight]), {}) == {}


def test_only_rows_with_one_gist_are_compared_by_meaning() -> None:
    rows = [memory("Deploys go to Render."), memory("The user said that deploys are done on Render."), memory("A cat.")]
    assert [set(group) for group in compared(rows).by_gist] == [{rows[0].id, rows[1].id}]


def test_only_the_first_rows_of_a_crowded_group_are_compared_and_the_others_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(duplicate_pairs, "_MOST_ALIKE", 3)
    rows = [memory(f"The deploy runs nightly on Render{mark}", id=f"mem_{n}") for n, mark in enumerate(".!?;:")]
    ready = compared(rows)
    assert all(len(group) == 3 for group in (*ready.by_gist, *ready.by_words))
    assert set(ready.crowded) == {"mem_3", "mem_4"}
    assert repeats(ready, {}).keys() == {"mem_0", "mem_1", "mem_2"}
    # Rows that share their wording are still found.
    again = memory("the deploy  runs nightly on Render:", id="mem_5")
    assert repeats(compared([*rows, again]), {})["mem_4"] == {"mem_5"}
    assert not compared(rows[:3]).crowded
