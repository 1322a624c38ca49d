"""Requirements of a reflection: which rows must survive, and when it is good enough. The outputs are invented."""

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.facts.condensing import completed, is_insight, judge, must_survive, preserves
from esker.server.core.facts.records import Draft, Reflected
from esker.server.core.facts.same_fact import fingerprint
from esker.server.core.records import Category, Memory, Priority, Trust
from esker.server.core.text.loops import degeneration
from esker.server.core.text.tokens import estimate_tokens
from tests.support.records import memory, observation

ROOMY = 100_000
TALK = "They talked for a while about the weather, the coffee machine and the way to the station on a rainy day."
FLOATS = "User ruled: never use floats for money in the billing service."
RETRIES = "The payment client retries 3 times, then calls notify_oncall() in src/pay.ts."
OPEN = "Next: migrate the invoices table to bigint; postponed until the release."


def draft(content: str, *sources: Memory, **changes: Any) -> Draft:
    """Return a draft for these rows."""
    values: dict[str, Any] = {"priority": "medium", "category": "fact"} | changes
    return Draft(content, source_ids=tuple(row.id for row in sources), **values)


def problem(rows: Sequence[Memory], *drafts: Draft, dropped: Sequence[Memory] = (), target: int = ROOMY) -> str | None:
    """Return the fault of a candidate."""
    return judge(rows, Reflected(drafts, tuple(row.id for row in dropped)), target).problem


def kept_of(rows: Sequence[Memory], *drafts: Draft) -> list[tuple[str, tuple[str, ...]]]:
    """Return the texts of a completed candidate with their sources."""
    return [(one.content, one.source_ids) for one in completed(rows, drafts).drafts]


# Rows that must survive --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "survives"),
    [
        ({"priority": "high", "category": "fact", "trust": "tool"}, True),
        ({"priority": "medium", "category": "next_step", "trust": "assistant"}, True),
        ({"priority": "low", "category": "next_step", "trust": "user"}, False),
        ({"priority": "low", "category": "decision", "trust": "user"}, True),
        ({"priority": "low", "category": "preference", "trust": "user"}, True),
        ({"priority": "medium", "category": "decision", "trust": "assistant"}, False),
        ({"priority": "medium", "category": "fact", "trust": "user"}, False),
        ({"priority": "medium", "category": "outcome", "trust": "assistant"}, False),
    ],
)
def test_rulings_and_open_matters_must_survive(changes: dict[str, Any], survives: bool) -> None:
    assert must_survive(observation("A thing.", **changes)) is survives


@given(st.sampled_from(get_args(Priority)), st.sampled_from(get_args(Category)), st.sampled_from(get_args(Trust)))
def test_no_row_of_high_priority_may_be_left_out(priority: Priority, category: Category, trust: Trust) -> None:
    row = observation("A thing.", priority=priority, category=category, trust=trust)
    assert must_survive(row) or row.priority != "high"


def test_an_insight_is_kept_beside_its_sources_for_the_whole_pool() -> None:
    assert is_insight(memory(kind="reflection", facet="knowledge"))
    assert not is_insight(memory(kind="reflection", tags=["knowledge"]))


@pytest.mark.parametrize(
    ("said", "text", "holds"),
    [
        (FLOATS, f"The billing service was reviewed. {FLOATS}", True),
        (FLOATS, "In the billing service, never use floats for money: a rule of the user.", True),
        (FLOATS, "User ruled: use floats for money in the billing service.", False),
        (RETRIES, "The payment client retries 5 times, then calls notify_oncall() in src/pay.ts.", False),
        (RETRIES, "The payment client retries 3 times, then calls notify_oncall().", False),
        (RETRIES, "There are retries in src/pay.ts: 3.", False),
        ("数据库不用 MySQL", "数据库用 MySQL", False),
        (RETRIES, "", False),
    ],
    ids=["more", "another order", "negation lost", "number changed", "path lost", "gist lost", "cjk negation", "blank"],
)
def test_a_text_preserves_another_only_with_its_numbers_names_and_negations(said: str, text: str, holds: bool) -> None:
    assert preserves(fingerprint(text), fingerprint(said)) is holds


@pytest.mark.parametrize(("kept", "holds"), [(10, True), (7, True), (6, False), (1, False)])
def test_a_text_preserves_another_with_seven_tenths_of_its_terms(kept: int, holds: bool) -> None:
    words = "anchor basket candle dragon engine forest harbour island jacket kettle".split()
    assert preserves(fingerprint(" ".join(words[:kept])), fingerprint(" ".join(words))) is holds


@given(st.sampled_from([TALK, FLOATS, RETRIES, OPEN, "数据库不用 MySQL"]), st.text(max_size=80))
def test_a_text_with_more_words_at_its_end_still_preserves_the_first(said: str, more: str) -> None:
    assert preserves(fingerprint(f"{said}\n{more}"), fingerprint(said))


# Carried over by the code ------------------------------------------------------------------------------------------


def test_a_dropped_fact_that_must_survive_is_carried_over_word_for_word() -> None:
    talk, rule = observation(TALK, 1), observation(FLOATS, 2, priority="high", category="preference")
    candidate = completed([talk, rule], [draft("They talked about the weather.", talk)])
    carried = candidate.drafts[-1]
    assert (carried.content, carried.source_ids, candidate.dropped_ids) == (FLOATS, (rule.id,), ())
    assert (carried.priority, carried.category) == ("high", "preference")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        (RETRIES, "The payment client retries 30 times, then calls notify_oncall() in src/pay.ts."),
        (FLOATS, "User ruled: always use floats for money in the billing service."),
        (FLOATS, "There was a talk about rules."),
    ],
    ids=["number changed", "negation flipped", "said away"],
)
def test_a_draft_does_not_replace_a_source_that_it_lost(said: str, written: str) -> None:
    talk, rule = observation(TALK, 1), observation(said, 2, priority="high")
    assert kept_of([talk, rule], draft(written, talk, rule)) == [(written, (talk.id,)), (said, (rule.id,))]
    assert kept_of([rule], draft(written, rule)) == [(said, (rule.id,))]


@pytest.mark.parametrize("category", ["next_step", "issue"])
def test_an_open_matter_does_not_become_done_by_being_mentioned(category: Category) -> None:
    open_row = observation(OPEN, 1, category=category, priority="high")
    done = draft(f"Done: {OPEN}", open_row, category="outcome")
    assert kept_of([open_row], done) == [(OPEN, (open_row.id,))]
    still_open = draft(f"Still open. {OPEN}", open_row, category=category)
    assert kept_of([open_row], still_open) == [(still_open.content, (open_row.id,))]


def test_an_open_matter_ends_with_the_row_that_says_how_it_ended() -> None:
    open_row = observation(OPEN, 1, category="next_step")
    ended = observation("Outcome: the invoices table is bigint now.", 2, category="outcome")
    done = draft(f"{OPEN} Outcome: it is bigint now.", open_row, ended, category="outcome")
    assert kept_of([open_row, ended], done) == [(done.content, (open_row.id, ended.id))]


def test_an_unimportant_row_that_is_not_cited_is_dropped_unless_untouched() -> None:
    talk, small, other = observation(TALK, 1), observation("It rained.", 2), observation("It was cold.", 3)
    written = draft("They talked about the weather.", talk)
    assert completed([talk, small, other], [written], untouched=[other.id]).dropped_ids == (small.id,)


def test_an_insight_replaces_no_row() -> None:
    rule = observation(FLOATS, 1, priority="high")
    insight = draft("Money is kept in whole cents.", rule, facet="knowledge")
    candidate = completed([rule], [insight])
    assert [one.content for one in candidate.drafts] == [insight.content, FLOATS]
    assert judge([rule], candidate, ROOMY).problem is not None, "one more row is not a gain"


def test_rows_are_distinguished_by_id_so_that_thousands_are_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [observation("It rained.", n, priority="high" if n % 2 else "low") for n in range(1, 41)]

    def never(_: Memory, other: object) -> bool:
        raise AssertionError("two rows were compared")

    monkeypatch.setattr(Memory, "__eq__", never)
    candidate = completed(rows, [], untouched=(row.id for row in rows[:20]))
    assert [one.source_ids for one in candidate.drafts] == [(row.id,) for row in rows[20:] if row.priority == "high"]
    assert candidate.dropped_ids == tuple(row.id for row in rows[20:] if row.priority == "low")


ROWS = st.lists(
    st.builds(
        observation,
        st.sampled_from([TALK, FLOATS, RETRIES, OPEN, "It rained.", "Der Bau ist grün.", "部署没有成功"]),
        st.integers(1, 99),
        priority=st.sampled_from(get_args(Priority)),
        category=st.sampled_from(get_args(Category)),
        trust=st.sampled_from(get_args(Trust)),
    ),
    min_size=1,
    max_size=8,
)


@given(ROWS, st.data())
def test_every_row_has_one_fate_and_no_draft_drops_one_that_must_survive(
    rows: list[Memory], data: st.DataObject
) -> None:
    texts = st.sampled_from(["Gone.", TALK, f"{FLOATS} {RETRIES} {OPEN}", "Use floats. Retries 5 times."])
    cited = st.lists(st.sampled_from(rows), min_size=1, max_size=4, unique_by=lambda row: row.id)
    drafts = data.draw(st.lists(st.builds(lambda text, some: draft(text, *some), texts, cited), max_size=4))
    candidate = completed(rows, drafts)
    by_id = {row.id: row for row in rows}
    stood_for = {i for one in candidate.drafts for i in one.source_ids}
    assert stood_for | {*candidate.dropped_ids} == by_id.keys()
    assert not stood_for & {*candidate.dropped_ids}
    assert not [i for i in candidate.dropped_ids if must_survive(by_id[i])]
    for row in filter(must_survive, rows):
        own = [one.content for one in candidate.drafts if row.id in one.source_ids]
        assert any(preserves(fingerprint(text), fingerprint(row.content)) for text in own)


# Good enough -------------------------------------------------------------------------------------------------------


def test_fewer_rows_in_fewer_words_are_good_enough() -> None:
    rows = [observation(TALK, seq) for seq in range(1, 4)]
    written = draft("Weather, coffee and the way to the station were talked about.", *rows)
    assert problem(rows, written) is None
    assert judge(rows, Reflected((written,)), ROOMY).tokens == estimate_tokens(written.content)


def test_a_copy_of_the_rows_is_not_better() -> None:
    rows = [observation(TALK, 1), observation(RETRIES, 2)]
    assert "tokens" in str(problem(rows, *(draft(row.content, row) for row in rows)))


def test_rows_that_stay_count_towards_the_size() -> None:
    rows = [observation(TALK, 1), observation(RETRIES, 2)]
    shorter = draft("The weather was talked about.", rows[0])
    judged = judge(rows, Reflected((shorter,)), ROOMY)
    assert (judged.problem, judged.tokens) == (None, estimate_tokens(shorter.content) + rows[1].tokens)
    longer = draft(f"{TALK} {TALK}", rows[0])
    assert "what it would replace has" in str(problem(rows, longer))


def test_more_rows_than_before_are_not_better_at_any_length() -> None:
    row = observation(TALK, 1)
    assert "2 rows in place of 1" in str(problem([row], draft("It rained a lot.", row), draft("Coffee is out.", row)))


def test_the_target_limits_reworded_rows_but_not_verbatim_ones() -> None:
    rows = [observation(TALK, 1), observation(FLOATS, 2, priority="high"), observation(TALK, 3)]
    short, rule = draft("They talked about rain.", rows[0], rows[2]), draft(FLOATS, rows[1])
    cost = estimate_tokens(short.content)
    assert problem(rows, short, rule, target=cost) is None
    assert f"the limit is {cost - 1}" in str(problem(rows, short, rule, target=cost - 1))


def test_a_loop_is_not_a_reflection() -> None:
    row = observation(" ".join(f"{TALK} Number {n} was as dull as the one before it." for n in range(60)), 1)
    assert problem([row], draft("The weather was discussed again. " * 20, row)) is not None
    rows = [observation(f"{TALK} It was day {n} of the week.", n) for n in range(1, 9)]
    again = [draft("The weather was discussed at length that day.", one) for one in rows]
    assert problem(rows, *again) is not None


def test_a_loop_in_the_words_of_its_sources_is_not_a_reflection() -> None:
    things = ("login", "search", "invoice", "export", "import", "backup", "report", "billing")
    rows = [
        observation(f"{TALK} The {thing} page was slow, and {things[n - 1]} was not.", n)
        for n, thing in enumerate(things)
    ]
    assert problem(rows, draft("The weather and the coffee machine. " * 12, *rows)) is not None


def test_many_small_changes_of_one_file_are_not_a_loop_but_a_loop_beside_them_is() -> None:
    numbers = range(1, 41)
    asked = "Changed src/theme/dark.json — asked: make grey number {} a little brighter please, it is too dark"
    rows = [observation(asked.format(n), n) for n in numbers]
    listed = "Changed src/theme/dark.json: " + " ".join(f"grey number {n} a little brighter;" for n in numbers)
    assert degeneration(listed) is not None
    assert problem(rows, draft(listed, *rows)) is None
    invented = "Changed src/theme/dark.json: " + " ".join(f"step {n} finished;" for n in numbers)
    assert problem(rows, draft(invented, *rows)) is not None


def test_rows_with_different_facts_are_not_a_loop() -> None:
    things = ("login", "search", "invoice", "export", "import", "backup")
    rows = [
        observation(f"{TALK} Then the {thing} test failed with a timeout and was run again.", 1) for thing in things
    ]
    again = [draft(f"The {thing} test timed out once.", one) for thing, one in zip(things, rows, strict=True)]
    assert problem(rows, *again) is None


@pytest.mark.parametrize("text", ["", " ", "\u200b", "ok", "…"])
def test_a_row_that_says_next_to_nothing_replaces_nothing(text: str) -> None:
    rows = [observation(TALK, 1), observation(RETRIES, 2)]
    assert "too little" in str(problem(rows, draft(text, *rows)))


def test_a_single_word_replaces_no_row_however_short() -> None:
    rows = [observation("It rained.", 1), observation("It was cold.", 2)]
    assert "too little" in str(problem(rows, draft("ok", *rows)))
    assert problem(rows, draft("cold rain", *rows)) is None


def test_a_sentence_does_not_replace_a_hundred_rows_or_a_long_important_one() -> None:
    rows = [observation(f"{TALK} It was day {n}.", n) for n in range(1, 101)]
    assert "too little" in str(problem(rows, draft("The weather was talked about.", *rows)))
    long = observation(f"{TALK} {RETRIES} {FLOATS}", 1, priority="high")
    assert "too little" in str(problem([long], draft("A talk about rules.", long)))


@given(ROWS, st.integers(1, 200))
def test_an_accepted_candidate_is_smaller_and_has_no_more_rows(rows: list[Memory], target: int) -> None:
    written = draft("They talked about the weather and the billing service.", *rows)
    candidate = completed(rows, [written])
    judged = judge(rows, candidate, target)
    if judged.problem is None:
        assert judged.tokens < sum(row.tokens for row in rows)
        assert len(candidate.drafts) <= len(rows)
