"""The two keyword searches, for narrow and wide scopes, must give the same result."""

from dataclasses import replace
from itertools import product

import pytest

from esker.server.core.records import Filter, Principal
from esker.server.db.database import Database
from esker.server.db.pipeline import fetch
from esker.server.store import search
from esker.server.store.search import EVERYTHING, QueryTerms, Search, Size, TermBudget, find
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.searching import by_keyword

RIVERS = ("Rhine", "Elbe", "Po", "Rhone", "Ebro", "Tagus", "Loire")
# Terms in up to 150 of the 300 rows are read.
RAREST = TermBudget(enough=1, most=150)


@pytest.fixture
async def filled(parts: Parts, who: Principal, database: Database) -> Database:
    """A pool with rows of several projects and of none."""
    notes = [
        Note(f"The {RIVERS[n % 7]} and the {RIVERS[n % 5]} meet {n} boats.", project=("a", "b", None)[n % 3])
        for n in range(300)
    ]
    await remember(parts, who, notes)
    return database


async def test_the_narrow_search_finds_the_same_as_the_wide_one(filled: Database, who: Principal, parts: Parts) -> None:
    searched = (["rhine"], ["elb", "po"], ["boat", "rhone", "tagus"], ["nowhere"])
    for terms, project in product(searched, ("a", "b", "unknown")):
        row_filter = Filter(parts.clock(), project=project)
        words = QueryTerms(terms, list(range(len(terms))))
        async with filled.tenant(who.pool_id) as connection:
            wide = await by_keyword(connection, words, row_filter, 20)
            narrow = await by_keyword(connection, words, row_filter, 20, narrow=True)
        assert narrow == wide, (terms, project)
        assert bool(wide.by_keyword) == (terms != ["nowhere"]), (terms, project)


@pytest.mark.parametrize("terms", [["rhine", "boat"], ["po", "boat", "meet"], ["boat", "tagus"]])
async def test_a_common_word_counts_in_full_in_rows_with_a_rarer_one(
    filled: Database, who: Principal, parts: Parts, terms: list[str]
) -> None:
    row_filter, words = Filter(parts.clock()), QueryTerms(terms, list(range(len(terms))))
    async with filled.tenant(who.pool_id) as connection:
        whole = await by_keyword(connection, words, row_filter, 20, reading=EVERYTHING)
        partly = await by_keyword(connection, words, row_filter, 20, reading=RAREST)
    assert (partly.by_keyword, partly.signals) == (whole.by_keyword, whole.signals)
    assert len(whole.by_keyword) == 20


async def test_a_known_count_of_a_word_is_used_in_place_of_counting_it(
    filled: Database, who: Principal, parts: Parts
) -> None:
    one = Search("memory", QueryTerms(["boat", "rhine"], [0, 1]), Filter(parts.clock()), Size(1_000_000, None), 20)
    async with filled.moment_pipeline(who.pool_id) as connection:
        [counted] = await find(connection, [one])
        [known] = await find(connection, [replace(one, counts=counted.counts)])
        [other] = await find(connection, [replace(one, counts={"boat": 3.0})])
    assert counted.counts == {"boat": 300, "rhine": 94}
    assert known == counted
    assert other.counts == {"boat": 3, "rhine": 94}
    assert other.weights
    assert counted.weights
    assert other.weights.weights[0] > counted.weights.weights[0]


@pytest.mark.parametrize("common", ["raft", "boat"])
async def test_common_words_that_are_looked_up_late_change_no_result(
    parts: Parts, who: Principal, database: Database, common: str
) -> None:
    # In the long rows a rare word counts less than `raft` in a short one, and more than `boat`, which is in most rows.
    filler = " ".join(f"{one}{other}lum" for one, other in product("bcdfghjklm", "aeiou"))
    long = [Note(f"Rhine {'boats' if n % 3 else 'docks'} {filler} {n}.") for n in range(40)]
    short = [Note(f"{'Raft' if n % 2 else 'Reed'} boats {n}.") for n in range(260)]
    await remember(parts, who, [*long, *short])
    row_filter, words = Filter(parts.clock()), QueryTerms(["rhine", common], [0, 1])
    async with database.tenant(who.pool_id) as connection:
        late = await by_keyword(connection, words, row_filter, 20)
        never = await by_keyword(connection, words, row_filter, 20, reading=TermBudget(may_be_late=False))
    assert late == never
    assert len(late.by_keyword) == 20


@pytest.mark.parametrize("project", ["a", "b"])
async def test_a_selective_filter_hides_no_row_with_only_common_words(
    filled: Database, who: Principal, parts: Parts, project: str
) -> None:
    kept = [Note(text, project=project, tags=("kept",)) for text in ("A raft at the Rhine.", "The boats are gone.")]
    await remember(parts, who, kept)
    row_filter, words = Filter(parts.clock(), tags=("kept",)), QueryTerms(["raft", "boat"], [0, 1])
    async with filled.tenant(who.pool_id) as connection:
        whole = await by_keyword(connection, words, row_filter, 20, reading=EVERYTHING)
        partly = await by_keyword(connection, words, row_filter, 20, reading=RAREST)
    assert (partly.by_keyword, partly.signals) == (whole.by_keyword, whole.signals)
    assert len(whole.by_keyword) == 2


async def test_long_texts_do_not_reduce_the_number_of_hits(parts: Parts, who: Principal, database: Database) -> None:
    raft = " ".join(f"The raft number {n} is on the Rhine." for n in range(60))
    await remember(parts, who, [Note(f"{n}: {raft}") for n in range(30)])
    row_filter, words = Filter(parts.clock()), QueryTerms(["raft", "rhine"], [0, 1])
    async with database.tenant(who.pool_id) as connection:
        found = await by_keyword(connection, words, row_filter, 10, reading=RAREST)
        whole = await by_keyword(connection, words, row_filter, 10, reading=EVERYTHING)
    assert len(found.by_keyword) == len(whole.by_keyword) > 3


async def test_a_small_scope_is_counted_exactly(filled: Database, who: Principal, parts: Parts) -> None:
    async with filled.tenant(who.pool_id) as connection:
        whole = (await fetch(connection, search.sizes(Filter(parts.clock()))))["memory"]
        part = (await fetch(connection, search.sizes(Filter(parts.clock(), project="a"))))["memory"]
        none = (await fetch(connection, search.sizes(Filter(parts.clock(), project="unknown"))))["memory"]
    assert (whole.searched, whole.is_narrow) == (300, False)
    # A project also sees the rows that belong to none.
    assert (part.searched, part.is_narrow) == (200, False)
    assert (none.searched, none.is_narrow) == (100, False)


async def test_a_scope_is_narrow_by_its_number_of_parts(parts: Parts, who: Principal, database: Database) -> None:
    long = " ".join(f"The raft number {n} is on the Rhine." for n in range(60))
    notes = [Note(f"{n}: {long}", project="long") for n in range(10)] + [Note("A short one.", project="short")]
    await remember(parts, who, notes)
    async with database.tenant(who.pool_id) as connection:
        size = {
            name: (await fetch(connection, search.sizes(Filter(parts.clock(), project=name))))["memory"]
            for name in ("long", "short")
        }
    assert (size["short"].searched, size["short"].is_narrow) == (1, True)
    assert size["long"].searched == size["long"].in_tier - 1 > 30
    assert not size["long"].is_narrow
