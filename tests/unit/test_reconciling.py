"""Reconciling facts: which join a row, which replace one, and which become rows of their own."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.conversation.records import Role, StoredMessage
from esker.server.core.facts.reconciling import (
    NewFact,
    ReconciliationPlan,
    best_used,
    discriminating_terms,
    named_by,
    new_facts,
    planned,
)
from esker.server.core.facts.records import Fact, TranscriptSlice
from esker.server.core.records import Category, Memory, Trust
from tests.support.records import NOON, memory, message, observation, result, session

LATER = 60
"""Minutes after noon at which facts are said, unless a test says otherwise; rows were said within the first minutes."""
ROW_ID = "mem_" + "0" * 25
TRUSTS: tuple[Trust, ...] = ("external", "tool", "assistant", "user")


def at(minute: int) -> datetime:
    """Return the time `minute` minutes after noon."""
    return NOON + timedelta(minutes=minute)


def stated(text: str, minute: int = LATER, **changes: object) -> Fact:
    """Return a fact of the message of a minute."""
    values = {
        "priority": "medium",
        "category": "fact",
        "trust": "user",
        "source_seqs": (minute,),
        "said_at": at(minute),
    }
    return Fact(text, **{**values, **changes})  # type: ignore[arg-type]


def heard(fact: Fact, *others: StoredMessage, role: Role = "user", words: str | None = None) -> NewFact:
    """Return a fact with its row, from one message of `role` that says these `words`, or just the fact."""
    own = message(fact.source_seqs[-1], role, words or fact.content)
    return prepared([fact], [*others, own])[0]


def prepared(facts: Sequence[Fact], messages: Sequence[StoredMessage]) -> list[NewFact]:
    """Return facts with their rows."""
    shown = TranscriptSlice(session(), tuple(messages), ())
    return new_facts(shown, "grp_2", "observer", facts, at(LATER))


def plan(*facts: NewFact, rows: Sequence[Memory] = (), offered: Sequence[Memory] = ()) -> ReconciliationPlan:
    """Decide about facts, with all rows as candidates for each."""
    candidates = [[*rows, *offered]] * len(facts)
    return planned(facts, candidates, candidates, {row.id: row for row in offered})


def fresh(decided: ReconciliationPlan) -> list[str]:
    """Return the texts of the rows to be written."""
    return [row.memory.content for row in decided.fresh]


# A row of its own, or one with another -----------------------------------------------------------------------------


def test_a_fact_that_no_row_states_becomes_a_row_and_changes_no_other() -> None:
    decided = plan(heard(stated("Backups run at night.")), rows=[observation("The API speaks HTTP.")])
    assert fresh(decided) == ["Backups run at night."]
    assert not decided.merged_into
    assert not decided.replaced
    assert not decided.merged


def test_a_fact_that_a_row_states_in_full_becomes_another_source_of_that_row() -> None:
    row = observation("Backups run at night.")
    decided = plan(heard(stated("Backups run at night.")), rows=[row])
    assert not decided.fresh
    assert not decided.replaced
    assert decided.merged == 1
    again = decided.merged_into[row.id]
    assert (again.id, [*again.seqs], again.said_at) == (row.id, [LATER], at(LATER))


LONG = "Nightly backups of the orders database run on the standby server"


def test_a_fact_with_fewer_words_joins_the_fuller_row() -> None:
    row = observation(f"{LONG} in Frankfurt.")
    decided = plan(heard(stated(f"{LONG}.")), rows=[row])
    assert list(decided.merged_into) == [row.id]
    assert not decided.fresh


def test_a_fact_with_more_words_replaces_the_shorter_row_and_takes_over_its_sources() -> None:
    row = observation(f"{LONG}.")
    decided = plan(heard(stated(f"{LONG} in Frankfurt.")), rows=[row])
    [written] = decided.fresh
    assert not decided.merged_into
    assert (decided.replaced[row.id].id, decided.replaced[row.id].said_at) == (written.memory.id, at(LATER))
    assert decided.said_by == {row.id: written.memory.id}


def test_a_fact_that_joins_one_row_replaces_the_shorter_ones_by_it() -> None:
    short, full = observation(f"{LONG}.", 1), observation(f"{LONG} in Frankfurt.", 2)
    decided = plan(heard(stated(f"{LONG} in Frankfurt.")), rows=[short, full])
    assert list(decided.merged_into) == [full.id]
    assert decided.replaced[short.id].id == full.id
    assert decided.said_by == {short.id: full.id}
    assert full.id not in decided.replaced


def test_two_facts_join_one_row_with_all_sources_the_latest_time_and_the_higher_priority() -> None:
    row = observation(f"{LONG} in Frankfurt.", priority="low")
    one = heard(stated(f"{LONG} in Frankfurt.", 61, priority="high", tentative=True))
    two = heard(stated(f"{LONG}.", 62, priority="low"))
    decided = plan(one, two, rows=[row])
    again = decided.merged_into[row.id]
    assert ([*again.seqs], again.said_at, again.priority, again.tentative) == ([61, 62], at(62), "high", False)
    assert decided.merged == 2


@pytest.mark.parametrize(
    ("role", "priority", "tentative"), [("user", "high", False), ("assistant", "low", True), ("tool", "low", True)]
)
def test_a_row_becomes_important_or_certain_only_on_the_word_of_a_source_as_trusted(
    role: Role, priority: str, tentative: bool
) -> None:
    row = observation("Backups run at night.", priority="low", tentative=True)
    fact = stated("Backups run at night.", priority="high", trust=role)
    again = plan(heard(fact, role=role), rows=[row]).merged_into[row.id]
    assert (again.priority, again.tentative) == (priority, tentative)


@pytest.mark.parametrize(
    ("category", "row_category", "trust", "row_trust", "joins"),
    [
        ("fact", "fact", "user", "user", True),
        # The row could be undone by a source that may not undo the fact.
        ("fact", "fact", "user", "assistant", False),
        ("decision", "fact", "user", "user", False),
        ("preference", "fact", "user", "user", False),
        ("decision", "preference", "user", "user", True),
        ("decision", "fact", "assistant", "assistant", True),
        ("fact", "decision", "user", "user", True),
    ],
)
def test_a_fact_never_joins_a_row_that_is_easier_to_replace(
    category: Category, row_category: Category, trust: Trust, row_trust: Trust, joins: bool
) -> None:
    row = observation("Backups run at night.", category=row_category, trust=row_trust)
    role: Role = "user" if trust == "user" else "assistant"
    decided = plan(heard(stated("Backups run at night.", category=category, trust=trust), role=role), rows=[row])
    assert bool(decided.merged_into) is joins
    assert bool(decided.replaced) is not joins


# Naming the replaced row -------------------------------------------------------------------------------------------


def switch(replaces: str = "We use Redis for sessions.", **changes: object) -> Fact:
    """Return the decision that Postgres takes the place of Redis."""
    return stated("We use Postgres for sessions.", **{"replaces": replaces, "category": "decision", **changes})


def test_a_fact_that_names_a_row_in_words_replaces_that_row_alone() -> None:
    named = observation("We use Redis for sessions.", category="decision")
    other = observation("We use Kafka for events.", category="decision")
    fact = heard(switch())
    decided = plan(fact, rows=[other, named])
    assert {old: by.id for old, by in decided.replaced.items()} == {named.id: fact.row.memory.id}
    assert not decided.said_by, "the new row does not state what the old one states"


def test_of_rows_that_fit_equally_the_newest_is_replaced() -> None:
    rows = [
        observation("We use Redis for sessions.", minute, id=f"mem_{place}")
        for place, minute in enumerate((2, 3, 1), start=1)
    ]
    for order in (rows, rows[::-1]):
        assert list(plan(heard(switch()), rows=order).replaced) == ["mem_2"]


def test_of_rows_that_fit_and_were_said_together_the_lowest_id_is_replaced() -> None:
    rows = [observation("We use Redis for sessions.", id=f"mem_{place}") for place in (2, 1, 3)]
    assert list(plan(heard(switch()), rows=rows).replaced) == ["mem_1"]


def test_the_row_that_fits_best_is_replaced_even_if_another_is_newer() -> None:
    best = observation("We use Redis for sessions.", 1)
    newer = observation("We use Redis for sessions, carts and logins.", 2)
    assert list(plan(heard(switch()), rows=[newer, best]).replaced) == [best.id]


@pytest.mark.parametrize(
    "text",
    [
        "We use Memcached for sessions.",  # lacks the name
        "We use sessions.",  # lacks the name, and contains nothing else
        "We keep orders in MySQL.",  # about something else
    ],
)
def test_a_row_without_the_named_subject_or_name_is_not_replaced(text: str) -> None:
    assert not plan(heard(switch()), rows=[observation(text)]).replaced


def test_a_row_without_the_named_number_is_not_replaced() -> None:
    rows = [observation("Sessions expire after 24 hours."), observation("Sessions expire after 36 hours.")]
    fact = stated("Sessions expire after 48 hours.", replaces="Sessions expire after 24 hours.")
    assert list(plan(heard(fact), rows=rows).replaced) == [rows[0].id]


def test_a_row_that_is_named_by_id_is_replaced_if_the_observer_was_shown_it() -> None:
    shown, hidden = (observation("We use Redis for sessions.", id=ROW_ID + digit) for digit in "12")
    fact = heard(switch(f"{shown.id} and {hidden.id}"))
    assert list(plan(fact, offered=[shown], rows=[hidden]).replaced) == [shown.id]


def test_all_rows_that_are_named_by_id_are_replaced() -> None:
    rows = [observation(f"We use Redis for {what}.", id=ROW_ID + str(n)) for n, what in enumerate(("a", "b"))]
    assert plan(heard(switch(f"{rows[0].id}, {rows[1].id}")), offered=rows).replaced.keys() == {row.id for row in rows}


def test_a_fact_that_names_two_rows_in_words_replaces_both() -> None:
    rows = [observation("We use Redis for sessions.", 1), observation("We use Kafka for events.", 2)]
    fact = switch("\n".join(row.content for row in rows))
    assert set(plan(heard(fact), rows=rows).replaced) == {row.id for row in rows}


def test_a_tentative_fact_replaces_nothing() -> None:
    row = observation("We use Redis for sessions.", tentative=True)
    fact = switch(tentative=True)
    assert named_by(fact) == ""
    assert not plan(heard(fact), rows=[row]).replaced


def test_a_certain_fact_replaces_a_tentative_row() -> None:
    row = observation("We use Redis for sessions.", tentative=True)
    assert list(plan(heard(switch()), rows=[row]).replaced) == [row.id]


def test_a_fuller_tentative_fact_leaves_the_certain_row_live() -> None:
    certain = observation(f"{LONG}.")
    decided = plan(heard(stated(f"{LONG} in Frankfurt.", tentative=True)), rows=[certain])
    assert not decided.replaced
    assert len(decided.fresh) == 1


def test_a_pinned_row_is_never_replaced() -> None:
    named = observation("We use Redis for sessions.", kind="manual")
    shorter = observation(f"{LONG}.", kind="manual")
    assert not plan(heard(switch()), rows=[named]).replaced
    assert not plan(heard(switch(ROW_ID + "1")), offered=[replace(named, id=ROW_ID + "1")]).replaced
    assert not plan(heard(stated(f"{LONG} in Frankfurt.")), rows=[shorter]).replaced


@pytest.mark.parametrize(("minute", "replaces"), [(LATER - 1, True), (LATER, True), (LATER + 1, False)])
def test_a_row_that_was_said_later_than_the_fact_is_not_replaced(minute: int, replaces: bool) -> None:
    row = observation("We use Redis for sessions.", minute)
    assert bool(plan(heard(switch()), rows=[row]).replaced) is replaces


@pytest.mark.parametrize(
    ("place", "replaces"),
    [
        ({"session_id": "ses_2", "project": "shop"}, False),
        ({"session_id": "ses_2", "project": None}, True),
        ({"session_id": "ses_1", "project": "shop"}, True),
    ],
)
def test_a_row_of_another_project_is_replaced_only_within_the_session(place: dict[str, Any], replaces: bool) -> None:
    row = observation("We use Redis for sessions.", **place)
    assert bool(plan(heard(switch()), rows=[row]).replaced) is replaces


def test_a_fact_that_states_the_same_as_the_row_it_names_does_not_replace_it() -> None:
    row = observation("We use Redis for sessions.", category="decision")
    decided = plan(heard(stated(row.content, category="decision", replaces=row.content)), rows=[row])
    assert not decided.replaced
    assert list(decided.merged_into) == [row.id]


# Trust: which source may replace which row -------------------------------------------------------------------------


def replaces_row(voice: Trust, row_trust: Trust, category: Category, words: str = "We use Postgres.") -> bool:
    """Whether a fact with the trust of `voice` replaces a row that it names."""
    role: Role = voice if voice != "external" else "system"
    row = observation("We use Redis for sessions.", trust=row_trust, category=category)
    return bool(plan(heard(switch(trust=voice), role=role, words=words), rows=[row]).replaced)


@pytest.mark.parametrize("category", ["decision", "preference"])
@pytest.mark.parametrize("voice", TRUSTS)
@pytest.mark.parametrize("row_trust", TRUSTS)
def test_a_decision_or_preference_yields_only_to_a_source_as_trusted(
    category: Category, voice: Trust, row_trust: Trust
) -> None:
    assert replaces_row(voice, row_trust, category) is (TRUSTS.index(voice) >= TRUSTS.index(row_trust))


@pytest.mark.parametrize("voice", TRUSTS)
@pytest.mark.parametrize("row_trust", TRUSTS)
def test_other_rows_yield_to_the_assistant_as_well(voice: Trust, row_trust: Trust) -> None:
    expected = voice in ("user", "assistant") or TRUSTS.index(voice) >= TRUSTS.index(row_trust)
    assert replaces_row(voice, row_trust, "fact") is expected


@pytest.mark.parametrize("words", ["Should we use Postgres?", "要不要用Postgres？", "“Shall we use Postgres?”"])
def test_a_question_replaces_nothing(words: str) -> None:
    assert not replaces_row("user", "user", "decision", words)
    assert not replaces_row("user", "user", "fact", words)
    assert replaces_row("user", "user", "decision", f"{words} Yes, we do.")


def test_a_question_does_not_replace_a_shorter_ruling_but_does_a_shorter_fact() -> None:
    fact = heard(stated(f"{LONG} in Frankfurt."), words="Do backups run in Frankfurt?")
    assert not plan(fact, rows=[observation(f"{LONG}.", category="decision")]).replaced
    assert plan(fact, rows=[observation(f"{LONG}.")]).replaced


def test_the_result_of_a_tool_is_an_assertion() -> None:
    fact = stated("The port is 8080.", trust="tool")
    [made] = prepared([fact], [message(LATER, "user", result("The port is 8080."))])
    assert made.asserted


def test_a_users_yes_makes_the_assistants_proposal_the_users_word() -> None:
    proposal = message(59, "assistant", "I would use Postgres for sessions.")
    fact = switch(trust="assistant", source_seqs=(59, LATER))
    assert heard(fact, proposal, words="Yes, do that.").voice == "user"


def test_a_users_yes_does_not_make_a_tool_result_the_users_word() -> None:
    page = message(59, "tool", "Use Postgres for sessions.")
    fact = switch(trust="tool", source_seqs=(59, LATER))
    assert heard(fact, page, words="Yes, do that.").voice == "tool"


# Several facts of one slice ----------------------------------------------------------------------------------------


def test_a_later_fact_of_the_slice_replaces_an_earlier_one() -> None:
    first = heard(stated("We use Redis for sessions.", 61, category="decision"))
    second = heard(replace(switch(), said_at=at(62), source_seqs=(62,)))
    decided = plan(first, second)
    assert fresh(decided) == ["We use Redis for sessions.", "We use Postgres for sessions."]
    assert {old: by.id for old, by in decided.replaced.items()} == {first.row.memory.id: second.row.memory.id}


def test_a_row_that_one_fact_replaced_is_neither_joined_nor_replaced_by_the_next() -> None:
    row = observation("We use Redis for sessions.", category="decision")
    first = heard(switch())
    second = heard(stated("We use Redis for sessions.", 61, category="decision"))
    third = heard(stated("We use Kafka for sessions.", 62, category="decision", replaces=row.content))
    decided = plan(first, second, third, rows=[row])
    assert decided.replaced[row.id].id == first.row.memory.id
    assert decided.replaced[second.row.memory.id].id == third.row.memory.id
    assert not decided.merged_into


def test_a_wording_that_is_found_twice_is_one_fact_with_the_sources_of_both() -> None:
    words = [message(minute, "user", "Backups run at night.") for minute in (61, 62)]
    facts = [stated("Backups run at night.", minute, tentative=minute == 61) for minute in (62, 61)]
    [one] = prepared(facts, words)
    assert (one.fact.source_seqs, one.fact.said_at, one.fact.tentative) == ((61, 62), at(61), False)


def test_of_two_wordings_of_a_fact_the_fuller_one_is_kept() -> None:
    texts = (f"{LONG} in Frankfurt.", f"{LONG}.")
    words = [message(minute, "user", text) for minute, text in zip((61, 62), texts, strict=True)]
    [one] = prepared([stated(text, minute) for minute, text in zip((61, 62), texts, strict=True)], words)
    assert one.row.memory.content == texts[0]
    assert one.print.terms == {*one.row.terms}


def test_a_fact_that_was_taken_back_between_two_mentions_is_two_facts() -> None:
    said = [
        stated("We use Redis for sessions.", 61),
        stated("We use Postgres for sessions.", 62, replaces="We use Redis for sessions."),
        stated("We use Redis for sessions.", 63),
    ]
    facts = prepared(said, [message(fact.source_seqs[0], "user", fact.content) for fact in said])
    assert [fact.fact.content for fact in facts] == [fact.content for fact in said]


def test_secrets_are_masked_in_the_row_of_a_fact() -> None:
    [one] = prepared([stated("The key is sk-ant-api03-" + "a" * 80)], [message(LATER, "user", "Here it is.")])
    assert "aaaa" not in one.row.memory.content


# Finding candidates ------------------------------------------------------------------------------------------------

NAMES = st.sets(st.text("abcdefgh", min_size=1, max_size=8), min_size=1, max_size=40)


@given(NAMES, st.data())
def test_every_row_that_shares_four_fifths_of_the_terms_is_found_by_one_of_those_looked_up(
    terms: set[str], data: st.DataObject
) -> None:
    least = math.ceil(0.8 * len(terms))
    shared = data.draw(st.sets(st.sampled_from(sorted(terms)), min_size=least))
    assert shared & set(discriminating_terms(terms))


def test_two_terms_more_than_needed_are_looked_up_the_longest_first() -> None:
    terms = ["a" * length for length in range(1, 21)]
    # Of 20 terms a row shares 16 at least, so any five include one that is shared.
    assert discriminating_terms(terms) == terms[::-1][: 5 + 2]


# Which shown rows count as used ------------------------------------------------------------------------------------


def test_of_used_rows_that_state_the_same_only_the_best_counts() -> None:
    low, high = memory("Backups run at night.", priority="low"), memory("Backups run at night.", priority="high")
    other = memory("The API speaks HTTP.")
    offered = {row.id: row for row in (low, high, other)}
    assert best_used(offered, [low.id, other.id, high.id, low.id]) == [high.id, other.id]


def test_a_pinned_row_is_the_best_of_those_that_state_the_same() -> None:
    high, pinned = memory("Backups run at night.", priority="high"), memory("Backups run at night.", kind="manual")
    assert best_used({row.id: row for row in (high, pinned)}, [high.id, pinned.id]) == [pinned.id]


def test_a_row_that_was_not_shown_never_counts_as_used() -> None:
    assert best_used({}, ["mem_1"]) == []
