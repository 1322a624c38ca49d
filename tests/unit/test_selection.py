"""Selection: relevant hits without repeats, and a reason for every other candidate."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.clock import age
from esker.server.core.conversation.records import Passage
from esker.server.core.dates.window import Window
from esker.server.core.recall.candidates import (
    Candidates,
    RankedCandidate,
    above_floor,
    below_floor,
    best_first,
    candidates_in_window,
    ranked,
)
from esker.server.core.recall.fitting import fitting
from esker.server.core.recall.relevance import Scale, Signals, score
from esker.server.core.recall.rendering import recalled_line
from esker.server.core.recall.selection import CandidateTexts, Chosen, choose, without_seen
from esker.server.core.records import Calibration, Memory, Priority, Tier
from esker.server.core.text.terms import asked_terms
from esker.server.core.text.tokens import estimate_tokens
from tests.support.records import NOON, memory, observation

SCALE = Scale(Calibration(0.04, 0.08, 1.0), 100)
SAYINGS = ("The river is the Rhine.", "The bridge is blue.", "Our vault is green.", "We use pnpm.", "Whales sing.")


def passage(passage_id: str, first: int = 1, last: int = 2, text: str = "user: The river.", **more: Any) -> Passage:
    """Return a passage."""
    values: dict[str, Any] = {"number": 1, "session_id": "ses_1", "project": None, "trust": "user", "tokens": 60}
    values |= {"said_from": NOON, "said_to": NOON} | more
    return Passage(id=passage_id, first_seq=first, last_seq=last, text=text, **values)


def found(tier: Tier, text_id: str, relevance: float, alone: float | None = None) -> RankedCandidate:
    """Return a candidate with its relevance."""
    return RankedCandidate(text_id, tier, relevance, relevance if alone is None else alone)


def chosen(
    candidates: Sequence[RankedCandidate],
    rows: Sequence[Memory] = (),
    windows: Sequence[Passage] = (),
    terms: Sequence[str] = ("river",),
    **more: Any,
) -> Chosen:
    """Return the hits that are chosen among candidates."""
    texts = CandidateTexts({row.id: row for row in rows}, {window.id: window for window in windows}, **more)
    return choose(best_first(candidates), texts, terms, NOON, limit=8)


def shown(answer: Chosen, limit: int = 8, max_tokens: int | None = None) -> list[str]:
    """Return the ids of the hits that a caller gets."""
    return [hit.id for hit in fitting(answer.hits, limit, max_tokens, answer.shown_in)]


def reasons(answer: Chosen) -> Mapping[str, str]:
    """Return the reasons of left-out candidates, by id."""
    return {one.id: one.reason for one in answer.left_out}


def test_a_row_that_a_newer_one_contradicts_comes_behind_it_and_names_it() -> None:
    older = memory("User said: The cache TTL is 5 minutes.")
    newer = memory("User said: We cache for 9 minutes. (unlike: The cache TTL is …)", said_at=NOON + timedelta(days=1))
    answer = chosen([found("memory", older.id, 3.0), found("memory", newer.id, 2.0)], [older, newer])
    assert [(hit.id, hit.contradicted_by) for hit in answer.hits] == [(newer.id, None), (older.id, newer.id)]
    assert answer.hits[0].score >= answer.hits[1].score
    assert f"(older; {newer.id} says otherwise)" in recalled_line(answer.hits[1])


# The floor ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", ["memory", "passage"])
@pytest.mark.parametrize("keyword", [0.08, 0.2, 0.4])
def test_a_new_text_without_a_vector_is_found_by_its_words(tier: Tier, keyword: float) -> None:
    scale = Scale(Calibration(0.04, 0.08, 1.0), 5_000)
    fresh = Candidates(tier, scale, keyword=["x"], vector=[], numbers={"x": 1}, signals={1: Signals(keyword, None)})
    relevant = above_floor(ranked(fresh))
    assert ([one.id for one in relevant], below_floor(ranked(fresh), relevant)) == (["x"], [])


def test_both_tiers_have_the_same_floor_and_an_equally_relevant_memory_comes_first() -> None:
    def of(tier: Tier) -> RankedCandidate:
        signals = {1: Signals(0.3, 0.5)}
        [one] = ranked(Candidates(tier, SCALE, keyword=[tier], vector=[], numbers={tier: 1}, signals=signals))
        return one

    assert of("passage").relevance == of("memory").relevance
    row, window = memory("The river is the Rhine."), passage("psg_1")
    both = [found("passage", window.id, 2.0), found("memory", row.id, 2.0)]
    assert [hit.tier for hit in chosen(both, [row], [window]).hits] == ["memory", "passage"]


def test_a_memory_with_most_words_of_a_better_passage_covers_it_and_inherits_its_relevance() -> None:
    row = memory("The river is the Rhine.")
    candidates = [found("passage", "psg_1", 2.5), found("memory", row.id, 1.5)]
    half = 2 * estimate_tokens(row.content)
    for tokens, hits in ((half, [row.id]), (half + 1, ["psg_1"])):
        answer = chosen(candidates, [row], [passage("psg_1", tokens=tokens)], said_in={row.id: [("ses_1", 1)]})
        assert shown(answer) == hits
        assert answer.hits[0].score == pytest.approx(score(2.5), abs=0.001)


def test_the_latest_said_of_equal_rows_comes_first_whenever_it_was_written() -> None:
    rows = [
        memory(text, said_at=NOON - timedelta(days=days)) for text, days in zip(SAYINGS, (3, 1, 4, 2, 5), strict=True)
    ]
    answer = chosen([found("memory", row.id, 2.0) for row in rows], rows)
    assert [hit.said_at for hit in answer.hits] == [NOON - timedelta(days=days) for days in (1, 2, 3, 4, 5)]


def test_below_the_floor_there_is_no_answer_and_each_candidate_says_so() -> None:
    rows = [memory(text) for text in SAYINGS[:2]]
    answer = chosen([found("memory", rows[0].id, 0.99), found("memory", rows[1].id, 0.6)], rows)
    assert answer.hits == []
    assert set(reasons(answer).values()) == {"below the floor"}


def test_neighbours_alone_never_make_a_text_an_answer() -> None:
    row = memory(SAYINGS[0])
    assert chosen([found("memory", row.id, 1.9, alone=0.95)], [row]).hits == []
    assert len(chosen([found("memory", row.id, 1.9, alone=1.01)], [row]).hits) == 1


def test_beside_an_answer_only_candidates_not_far_below_it_are_hits() -> None:
    rows = [memory(text) for text in SAYINGS]
    relevances = (2.0, 0.95, 0.85, 0.55, 0.4)
    answer = chosen([found("memory", row.id, r) for row, r in zip(rows, relevances, strict=True)], rows)
    assert [hit.content for hit in answer.hits] == list(SAYINGS[:2])
    assert [reasons(answer)[row.id] for row in rows[2:]] == ["far below the best"] * 2 + ["below the floor"]
    assert [hit.score for hit in answer.hits] == [pytest.approx(score(r), abs=0.001) for r in relevances[:2]]


def test_neighbours_order_the_hits_and_add_none() -> None:
    rows = [memory(text) for text in SAYINGS[:3]]
    candidates = [found("memory", rows[0].id, 2.0), found("memory", rows[1].id, 2.1, alone=1.05)]
    answer = chosen([*candidates, found("memory", rows[2].id, 1.7, alone=0.85)], rows)
    assert [hit.id for hit in answer.hits] == [rows[1].id, rows[0].id]
    assert reasons(answer)[rows[2].id] == "far below the best"


@pytest.mark.parametrize(("tier", "least"), [("memory", 0.45), ("passage", 0.35)])
def test_beside_an_answer_a_memory_must_be_nearer_to_it_than_a_passage(tier: Tier, least: float) -> None:
    row, window = memory("The river is the Rhine."), passage("psg_1")
    text_id = row.id if tier == "memory" else window.id
    for share, there in ((least + 0.01, True), (least - 0.01, False)):
        candidates = [found("memory", (best := memory("It rises.")).id, 4.0), found(tier, text_id, 4.0 * share)]
        answer = chosen(candidates, [best, row], [window])
        assert (text_id in [hit.id for hit in answer.hits]) == there


def test_an_outdated_passage_is_left_out_and_is_never_an_answer() -> None:
    row, window = memory(SAYINGS[0]), passage("psg_1")
    both = [found("passage", "psg_1", 3.0), found("memory", row.id, 0.7)]
    answer = chosen(both, [row], [window], outdated={"psg_1": True})
    assert (answer.hits, reasons(answer)) == ([], {"psg_1": "outdated", row.id: "below the floor"})
    assert chosen(both, [row], [window]).hits[0].id == "psg_1"


# Repeats --------------------------------------------------------------------------------------------------------------


def test_a_memory_covers_the_passage_that_it_was_taken_from() -> None:
    row, window = observation("The river.", seq=2), passage("psg_1", 1, 3)
    candidates = [found("memory", row.id, 2.0), found("passage", "psg_1", 2.0)]
    covered = chosen(candidates, [row], [window], said_in={row.id: {("ses_1", 2)}})
    assert [(hit.id, hit.passages) for hit in covered.hits] == [(row.id, ["psg_1"])]
    assert [(one.id, one.reason, one.by) for one in covered.left_out] == [("psg_1", "covered", row.id)]
    for elsewhere in ({("ses_1", 4)}, {("ses_2", 2)}, set[tuple[str, int]]()):
        apart = chosen(candidates, [row], [window], said_in={row.id: elsewhere})
        assert [hit.id for hit in apart.hits] == [row.id, "psg_1"], "a memory ranks above an equally relevant passage"


@pytest.mark.parametrize("problem", ["User asked: Why does the river rise?", "User reported: The river rises."])
def test_a_problem_does_not_cover_the_passage_that_may_answer_it(problem: str) -> None:
    row, window = observation(problem, seq=2, category="issue"), passage("psg_1", 1, 3)
    candidates = [found("memory", row.id, 3.0), found("passage", "psg_1", 1.5)]
    answer = chosen(candidates, [row], [window], said_in={row.id: {("ses_1", 2)}})
    assert [hit.id for hit in answer.hits] == [row.id, "psg_1"]


def test_a_memory_follows_no_passage_that_shows_it_better() -> None:
    row, window = observation("The river.", seq=2), passage("psg_1", 1, 3)
    candidates = [found("memory", row.id, 1.5), found("passage", "psg_1", 2.5)]
    answer = chosen(candidates, [row], [window], said_in={row.id: {("ses_1", 2)}})
    assert shown(answer) == ["psg_1"]
    assert answer.shown_in == {row.id: "psg_1"}


def test_a_memory_is_shown_instead_of_a_passage_that_does_not_fit() -> None:
    row, window = observation("The river.", seq=2), passage("psg_1", 1, 3, text="user: " + "The river rises. " * 50)
    best = memory("The bridge is blue.")
    candidates = [found("memory", best.id, 3.0), found("passage", "psg_1", 2.5), found("memory", row.id, 1.5)]
    answer = chosen(candidates, [best, row], [window], said_in={row.id: {("ses_1", 2)}})
    costs = {hit.id: estimate_tokens(recalled_line(hit)) for hit in answer.hits}
    assert shown(answer, max_tokens=costs[best.id] + costs["psg_1"]) == [best.id, "psg_1"]
    assert shown(answer, max_tokens=costs[best.id] + costs["psg_1"] - 1) == [best.id, row.id]
    # A memory that a passage shows takes no place of the limit.
    other = memory("The bridge is long.")
    answer = chosen(
        [*candidates, found("memory", other.id, 1.4)], [best, row, other], [window], said_in={row.id: {("ses_1", 2)}}
    )
    assert shown(answer, limit=3) == [best.id, "psg_1", other.id]


def test_a_memory_in_a_passage_that_the_caller_has_is_seen() -> None:
    row, window = observation("The river.", seq=2), passage("psg_1", 1, 3)
    candidates = [found("memory", row.id, 1.5), found("passage", "psg_1", 2.5)]
    answer = without_seen(chosen(candidates, [row], [window], said_in={row.id: {("ses_1", 2)}}), {"psg_1"})
    assert (answer.hits, answer.seen) == ([], 2)


def test_a_passage_shows_no_memory_whose_words_it_may_lack() -> None:
    row = observation("The river.", seq=2)
    candidates = [found("memory", row.id, 1.5), found("passage", "psg_1", 2.5)]
    long = passage("psg_1", 1, 3, text="user: " + "The river rises. " * 500, tokens=2_000)
    for window, said_in in (
        (long, {("ses_1", 2)}),
        (passage("psg_1", 1, 3), {("ses_1", 2), ("ses_1", 4)}),
        (passage("psg_1", 1, 3), {("ses_2", 2)}),
        (passage("psg_1", 1, 3), set[tuple[str, int]]()),
    ):
        assert shown(chosen(candidates, [row], [window], said_in={row.id: said_in})) == ["psg_1", row.id]


def test_a_passage_with_an_outdated_fact_hides_no_memory_and_gives_way_to_one_half_as_relevant() -> None:
    row, window = observation("The river.", seq=2), passage("psg_1", 1, 3)
    for relevance, hits in ((1.26, [row.id]), (1.24, ["psg_1", row.id])):
        candidates = [found("memory", row.id, relevance), found("passage", "psg_1", 2.5)]
        answer = chosen(candidates, [row], [window], said_in={row.id: {("ses_1", 2)}}, outdated={"psg_1": False})
        assert shown(answer) == hits


@pytest.mark.parametrize(("priority", "share"), [("high", 0.75), ("medium", 0.9), ("low", 1.0)])
def test_the_higher_its_priority_the_more_a_passage_must_exceed_a_memory(priority: Priority, share: float) -> None:
    row, window = observation("The river.", seq=2, priority=priority), passage("psg_1", 1, 3)
    for relevance, best in ((2.0 * share + 0.01, row.id), (2.0 * share - 0.01, "psg_1")):
        candidates = [found("memory", row.id, relevance), found("passage", "psg_1", 2.0)]
        answer = chosen(candidates, [row], [window], said_in={row.id: {("ses_1", 2)}})
        assert answer.hits[0].id == best


def test_a_passage_does_not_hide_that_a_fact_was_said_twice() -> None:
    one, other = observation("The river is the Rhine.", seq=2), observation("The river is the Rhine.", seq=3)
    candidates = [found("passage", "psg_1", 3.0), *(found("memory", row.id, 2.0) for row in (one, other))]
    said_in = {one.id: {("ses_1", 2)}, other.id: {("ses_1", 3)}}
    answer = chosen(candidates, [one, other], [passage("psg_1", 1, 3)], said_in=said_in)
    assert [(hit.tier, len(hit.same)) for hit in answer.hits] == [("passage", 0), ("memory", 1)]
    assert len(shown(answer)) == 2


def test_a_passage_does_not_hide_that_a_newer_row_contradicts_an_older_one() -> None:
    older = observation("User said: The cache TTL is 5 minutes.", seq=2)
    newer = observation("User said: We cache for 9 minutes. (unlike: The cache TTL is …)", seq=9)
    candidates = [found("passage", "psg_1", 3.0), found("memory", older.id, 2.0), found("memory", newer.id, 1.8)]
    answer = chosen(candidates, [older, newer], [passage("psg_1", 1, 3)], said_in={older.id: {("ses_1", 2)}})
    assert shown(answer) == ["psg_1", newer.id, older.id]


def test_a_hit_also_covers_passages_of_rows_that_say_the_same() -> None:
    one, other = observation("The river is the Rhine.", seq=2), observation("The river is the Rhine.", seq=9)
    candidates = [found("memory", one.id, 2.0), found("memory", other.id, 1.9), found("passage", "psg_1", 1.5)]
    answer = chosen(candidates, [one, other], [passage("psg_1", 9, 9)], said_in={other.id: {("ses_1", 9)}})
    [hit] = answer.hits
    assert (hit.id, hit.same, hit.passages) == (one.id, [other.id], ["psg_1"])
    assert reasons(answer) == {other.id: "says the same", "psg_1": "covered"}
    assert [source.seqs for source in hit.sources] == [[2], [9]]


def test_a_live_row_is_shown_instead_of_a_superseded_one_with_the_best_relevance_of_both() -> None:
    old = memory(SAYINGS[0], superseded_by="mem_x", superseded_at=NOON)
    new = memory(SAYINGS[0].upper())
    answer = chosen([found("memory", old.id, 3.0), found("memory", new.id, 1.5)], [old, new])
    [hit] = answer.hits
    assert (hit.id, hit.same, hit.score) == (new.id, [old.id], round(score(3.0), 4))


@given(
    st.lists(st.tuples(st.sampled_from(SAYINGS), st.floats(-1, 5), st.floats(-1, 5), st.integers(1, 9)), max_size=8),
    st.lists(st.tuples(st.floats(-1, 5), st.integers(1, 9), st.integers(0, 3), st.booleans()), max_size=8),
)
def test_every_candidate_is_a_hit_or_has_a_reason_why_not(
    facts: list[tuple[str, float, float, int]], windows: list[tuple[float, int, int, bool]]
) -> None:
    rows = [observation(text, seq=seq) for text, _, _, seq in facts]
    spans = [passage(f"psg_{n}", first, first + more) for n, (_, first, more, _) in enumerate(windows)]
    candidates = [found("memory", row.id, r, a) for row, (_, r, a, _) in zip(rows, facts, strict=True)]
    candidates += [found("passage", one.id, r) for one, (r, _, _, _) in zip(spans, windows, strict=True)]
    answer = chosen(
        candidates,
        rows,
        spans,
        said_in={row.id: {("ses_1", seq)} for row, (_, _, _, seq) in zip(rows, facts, strict=True)},
        outdated={one.id: True for one, (_, _, _, old) in zip(spans, windows, strict=True) if old},
    )
    hits, out = [hit.id for hit in answer.hits], [one.id for one in answer.left_out]
    assert sorted([*hits, *out]) == sorted(one.id for one in candidates)
    behind = [text_id for hit in answer.hits for text_id in (*hit.same, *hit.passages)]
    shown = {row.id for row in rows}
    assert sorted(behind) == sorted(one.id for one in answer.left_out if one.by in shown)
    assert all(one.by in hits for one in answer.left_out if one.by is not None)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < s <= 1 for s in scores)
    contents = [hit.content for hit in answer.hits if hit.tier == "memory"]
    assert len(contents) == len(set(contents))


# Ranked ---------------------------------------------------------------------------------------------------------------


def test_a_tier_is_ranked_by_relevance_and_shows_its_parts() -> None:
    rows = [memory(SAYINGS[0]), memory(SAYINGS[1]), memory(SAYINGS[2])]
    candidates = Candidates(
        "memory",
        SCALE,
        keyword=[rows[1].id, rows[0].id],
        vector=[rows[0].id],
        numbers={row.id: n for n, row in enumerate(rows)},
        signals={0: Signals(0.2, 0.6), 1: Signals(0.4, None), 2: Signals(0.0, None)},
        neighbours={2: {0, 1}, 0: {2}},
        tokens={0: 20, 2: 20},
    )
    order = ranked(candidates)
    assert [one.id for one in order] == [rows[0].id, rows[1].id, rows[2].id], "both signals outrank one"
    parts = {one.id: one.parts for one in order}
    assert (parts[rows[0].id].keyword_rank, parts[rows[0].id].vector_rank) == (2, 1)
    assert (parts[rows[1].id].keyword_rank, parts[rows[1].id].vector_rank, parts[rows[1].id].cosine) == (1, None, None)
    assert parts[rows[2].id].around > 0 == parts[rows[0].id].around
    assert order[-1].relevance < 0.01, "neighbours alone never make an answer"


def test_priority_only_breaks_ties() -> None:
    high, low = memory(SAYINGS[0], priority="high"), memory(SAYINGS[1], priority="low")

    def first(low_keyword: float) -> str:
        signals = {1: Signals(0.5, None), 2: Signals(low_keyword, None)}
        candidates = Candidates("memory", SCALE, numbers={high.id: 1, low.id: 2}, signals=signals)
        return chosen(ranked(candidates), [high, low]).hits[0].id

    assert first(0.5) == high.id
    assert first(0.502) == low.id


def test_an_answer_ranks_above_the_same_question_asked_before() -> None:
    asked = memory("User asked: Where is the river?")
    ordered = memory("User asked: Paint the bridge blue.")
    answer = memory("User said: the whales are in the river.")
    relevance = {asked.id: 2.0, ordered.id: 1.8, answer.id: 1.5}
    hits = chosen([found("memory", *one) for one in relevance.items()], [asked, ordered, answer]).hits
    assert [hit.id for hit in hits] == [ordered.id, answer.id, asked.id]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What did Ann Lee's boat cost?", "Ann Lee"),
        ("What did Bob pay for the boat?", "Bob"),
        ("What did Ann Lee and Bob pay?", "Bob"),
        ("What did a boat cost?", "Bob"),
    ],
)
@pytest.mark.parametrize("colon", [": ", "："])
def test_a_row_of_the_speaker_whom_the_question_names_ranks_above_one_of_another(
    query: str, first: str, colon: str
) -> None:
    bob, ann = memory(f"Bob{colon}the river is wide."), memory(f"Ann Lee{colon}the boat was 900 euros.")
    candidates = [found("memory", bob.id, 2.0), found("memory", ann.id, 1.7)]
    terms = [term for forms in asked_terms(query) for term in forms]
    hits = chosen(candidates, [bob, ann], terms=terms).hits
    assert [hit.content.startswith(first) for hit in hits] == [True, False]


def test_a_row_without_a_speaker_is_none_of_another_speaker() -> None:
    note, link, said, ann = map(
        memory, ("Ships are wide.", "https://river.example is slow.", "User said: bats fly.", "Ann: whales sing.")
    )
    candidates = [found("memory", row.id, 2.0 - place / 10) for place, row in enumerate((note, link, said, ann))]
    hits = chosen(candidates, [note, link, said, ann], terms=["ann"]).hits
    assert [hit.id for hit in hits] == [note.id, link.id, said.id, ann.id]


def test_a_passage_with_output_that_an_agent_read_ranks_below_one_of_words() -> None:
    said, output = passage("psg_1", trust="assistant"), passage("psg_2", 5, 6, trust="tool")
    candidates = [found("passage", said.id, 2.0), found("passage", output.id, 2.5)]
    assert [hit.id for hit in chosen(candidates, [], [said, output]).hits] == [said.id, output.id]
    [hit] = chosen([found("passage", output.id, 2.0)], [], [output]).hits
    assert hit.score == pytest.approx(score(1.5), abs=0.001)


def test_a_firm_time_in_a_question_counts_more() -> None:
    inside, outside = memory(SAYINGS[0], said_at=NOON), memory(SAYINGS[1], said_at=NOON - timedelta(days=90))
    window = Window(NOON - timedelta(hours=1), NOON + timedelta(hours=1), timedelta(days=1))
    candidates = [found("memory", inside.id, 1.0), found("memory", outside.id, 2.0)]
    texts = CandidateTexts({row.id: row for row in (inside, outside)}, {})

    def first(**more: Any) -> str:
        return choose(best_first(candidates), texts, [], NOON, limit=8, **more).hits[0].id

    assert first() == first(window=window) == outside.id, "a window does not outweigh twice the relevance"
    assert first(window=window, firm=True) == inside.id


@pytest.mark.parametrize(("firm", "factor"), [(False, 1.6), (True, 2.5)])
def test_a_text_of_the_time_in_a_question_counts_as_documented(firm: bool, factor: float) -> None:
    row = memory("The river is the Rhine.", said_at=NOON)
    window = Window(NOON - timedelta(hours=1), NOON + timedelta(hours=1), timedelta(days=1))
    texts = CandidateTexts({row.id: row}, {})
    [timed] = choose([found("memory", row.id, 1.2)], texts, [], NOON, limit=8, window=window, firm=firm).hits
    assert timed.parts
    assert timed.parts.relevance == pytest.approx(factor * 1.2, abs=0.002)  # the prior adds a thousandth


def test_a_question_of_a_time_alone_gives_each_text_twice_the_floor() -> None:
    assert [one.relevance for one in candidates_in_window("memory", ["mem_1", "mem_2"])] == [2.0, 2.0]


def test_at_most_300_tokens_of_a_passage_are_shown() -> None:
    words = " ".join(f"word{number}" for number in range(1_000))
    window = passage("psg_1", text=f"user: {words}", tokens=estimate_tokens(words))
    [hit] = chosen([found("passage", "psg_1", 2.0)], windows=[window]).hits
    assert 200 < estimate_tokens(hit.content) <= 300
    assert hit.truncated


def test_the_last_written_of_equal_rows_comes_first() -> None:
    assert [one.id for one in best_first([found("memory", f"mem_{n}", 1.0) for n in (1, 3, 2)])] == [
        "mem_3", "mem_2", "mem_1",
    ]  # fmt: skip


# Seen hits ------------------------------------------------------------------------------------------------------------


def test_a_hit_is_left_out_if_the_caller_has_seen_it_or_a_row_that_says_the_same() -> None:
    rows = [memory("The river is the Rhine."), memory("The river is the Rhine!"), memory("The bridge is blue.")]
    answer = chosen([found("memory", row.id, 3.0 - n / 2) for n, row in enumerate(rows)], rows)
    assert [(hit.id, hit.same) for hit in answer.hits] == [(rows[0].id, [rows[1].id]), (rows[2].id, [])]
    for seen in rows[:2]:
        unseen = without_seen(answer, {seen.id})
        assert ([hit.id for hit in unseen.hits], unseen.seen) == ([rows[2].id], 1)
        assert reasons(unseen)[rows[0].id] == "seen"
    assert without_seen(answer, set()).hits == answer.hits


# Token budget ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from([*SAYINGS, "The whale swims on. " * 90]), unique=True), st.integers(50, 400))
def test_hits_stay_inside_max_tokens_and_the_best_is_always_shown(texts: list[str], tokens: int) -> None:
    rows = [memory(text) for text in texts]
    hits = chosen([found("memory", row.id, 9.0 - n) for n, row in enumerate(rows)], rows).hits
    fit = fitting(hits, 8, tokens)
    assert sum(estimate_tokens(recalled_line(hit)) for hit in fit) <= tokens
    assert not hits or fit[0].id == hits[0].id
    assert [hit.id for hit in hits if hit.id in {one.id for one in fit}] == [one.id for one in fit]
    assert fitting(hits, 8, None) == hits


def test_a_first_hit_that_would_be_cut_to_fewer_than_eight_tokens_is_left_out() -> None:
    row = memory("word " * 200)
    [hit] = chosen([found("memory", row.id, 9.0)], [row]).hits
    without = estimate_tokens(recalled_line(replace(hit, content="", truncated=True)))
    assert fitting([hit], 1, without + 7) == []
    [cut] = fitting([hit], 1, without + 8)
    assert cut.content.startswith("word word")
    assert cut.truncated


@pytest.mark.parametrize(
    ("since", "words"),
    [
        (timedelta(minutes=59), "just now"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=47), "47 hours ago"),
        (timedelta(days=13), "13 days ago"),
        (timedelta(days=59), "8 weeks ago"),
        (timedelta(days=729), "24 months ago"),
        (timedelta(days=730), "2 years ago"),
    ],
)
def test_an_age_is_in_the_largest_unit_that_fits_twice(since: timedelta, words: str) -> None:
    assert age(since) == words
