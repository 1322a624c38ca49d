"""Dialogues in which something changes, or must not, in seven languages.

`earlier` are the statements of one session, in order, and `later` is that of the next. The outcome is `replaced`: no
earlier statement is left; `noted`: the later one replaces them or says that they have another value; or `kept`:
neither. `earlier_as` and `later_as` are the labels of what is not a plain statement of the user.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from esker.server.core.facts.records import Fact
from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import without_notes
from esker.server.providers.extractive.superseding import changes_value, with_replaced
from tests.support.records import NOON, observation

CASES = Path(__file__).parents[1] / "cases" / "changes.jsonl"


@dataclass(frozen=True)
class Dialogue:
    """A dialogue and its outcome."""

    name: str
    earlier: tuple[str, ...]
    later: str
    outcome: str
    earlier_as: str = labels.SAID
    later_as: str = labels.SAID


def dialogues() -> list[Dialogue]:
    """Return the dialogues of the file."""
    read = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    return [Dialogue(**{**one, "earlier": tuple(one["earlier"])}) for one in read]


_CATEGORIES = {labels.PLANS: "next_step", labels.LEFT_OPEN: "next_step", labels.OUTCOME: "outcome"}
_AGENT = (labels.FOUND, labels.LEFT_OPEN, labels.OUTCOME)


def row(text: str, minute: int = 1, *, label: str = labels.SAID, **changes: object) -> Memory:
    """Return a statement as a row."""
    return observation(f"{label}: {text}", minute, **{"category": "fact", **_kind(label), **changes})


def _kind(label: str) -> dict[str, str]:
    kind = {"category": _CATEGORIES[label]} if label in _CATEGORIES else {}
    return kind | ({"trust": "assistant"} if label in _AGENT else {})


def said(text: str, earlier: list[Memory], *, label: str = labels.SAID, **changes: object) -> Fact:
    """Return a person's statement as the observer marks it."""
    at = NOON + timedelta(hours=1)
    values = {"priority": "medium", "category": "fact", "trust": "user", "source_seqs": (9,), "said_at": at}
    fact = Fact(f"{label}: {text}", **{**values, **_kind(label), **changes})  # type: ignore[arg-type]
    return with_replaced([fact], earlier)[0]


@pytest.mark.parametrize("dialogue", dialogues(), ids=lambda dialogue: dialogue.name)
def test_a_statement_replaces_what_it_changes_and_nothing_else(dialogue: Dialogue) -> None:
    left: list[Memory] = []
    for minute, text in enumerate(dialogue.earlier, start=1):
        ids = (said(text, left, label=dialogue.earlier_as).replaces or "").split()
        left = [*(one for one in left if one.id not in ids), row(text, minute, label=dialogue.earlier_as)]
    fact = said(dialogue.later, left, label=dialogue.later_as)
    replaced, noted = (fact.replaces or "").split(), labels.UNLIKE in fact.content
    if dialogue.outcome == "replaced":
        assert set(replaced) == {one.id for one in left}
    elif dialogue.outcome == "noted":
        assert replaced or noted
    else:
        assert (replaced, noted) == ([], False)


def test_each_kind_of_outcome_has_forty_dialogues_or_more() -> None:
    outcomes = [dialogue.outcome for dialogue in dialogues()]
    assert outcomes.count("replaced") + outcomes.count("noted") >= 40
    assert outcomes.count("kept") >= 40


def test_a_row_that_replaces_another_names_its_subject_without_its_value() -> None:
    old = row("The checkout service caches carts in Redis.")
    fact = said("We moved the cart cache from Redis to Valkey.", [old])
    assert fact.replaces == old.id
    assert fact.content.endswith(f"{labels.REPLACES}The checkout service caches carts in …)")
    assert without_notes(fact.content) == "User said: We moved the cart cache from Redis to Valkey."


def test_a_row_that_names_the_subject_itself_quotes_nothing() -> None:
    assert (
        labels.REPLACES
        not in said("Our gateway timeout is 45 seconds now.", [row("Our gateway timeout is 30 s.")]).content
    )


def test_a_subject_survives_two_changes() -> None:
    first = said("We moved the cart cache from Redis to Valkey.", [row("The checkout service caches carts in Redis.")])
    second = said("We moved the cart cache from Valkey to Dragonfly.", [observation(first.content, category="fact")])
    assert second.replaces
    assert "checkout service" in second.content


def test_a_note_keeps_what_still_holds_of_the_replaced_row() -> None:
    old = row("Thursday, 15 October, 16:30, at Dr. Wieland's.")
    fact = said("16:30 won't work, it's 17:10 the same day.", [old])
    assert fact.replaces == old.id
    assert fact.content.endswith(f"{labels.REPLACES}Thursday, 15 October, …, at Dr. Wieland's)")


def test_a_row_cites_the_sources_of_the_words_that_it_quotes() -> None:
    values = {"priority": "low", "category": "fact", "trust": "user", "said_at": NOON}
    told = Fact("User said: The checkout service caches carts in Redis.", source_seqs=(3,), **values)  # type: ignore[arg-type]
    moved = Fact("User said: We moved the cart cache from Redis to Valkey.", source_seqs=(9,), **values)  # type: ignore[arg-type]
    assert [fact.source_seqs for fact in with_replaced([told, moved], ())] == [(3,), (3, 9)]


def test_a_fact_replaces_several_earlier_ones_of_its_slice() -> None:
    values = {"priority": "low", "category": "fact", "trust": "user", "source_seqs": (1,), "said_at": NOON}
    told = ["Ana owns billing.", "Ben owns search.", "Ana and Ben swapped: Ben owns billing now and Ana owns search."]
    *_, swapped = with_replaced([Fact(f"{labels.SAID}: {text}", **values) for text in told], ())  # type: ignore[arg-type]
    assert sorted((swapped.replaces or "").splitlines()) == [
        "User said: Ana owns billing.",
        "User said: Ben owns search.",
    ]


def test_a_finding_of_an_agent_is_neither_answered_nor_replaced_by_its_other_findings() -> None:
    found = row("With a threshold of 0.85, 9 of 50 pairs are wrong.", label=labels.FOUND)
    assert said("Make it 0.95.", [found]).replaces is None
    assert said("The threshold of the news is 0.95 now.", [found], label=labels.FOUND).replaces is None


def test_an_appointment_is_found_by_its_former_day_unless_the_day_is_named_for_another() -> None:
    retro, *others = row("The retro is on Tuesday."), *(row(f"The disk {n} is full.", n) for n in range(2, 9))
    assert said("Tuesday is out, so we moved it to Thursday.", [retro, *others]).replaces == retro.id
    demo = row("The customer demo is on Tuesday.")
    assert said("We moved it to Thursday, Tuesday is the customer demo.", [demo, *others]).replaces is None


def test_a_fact_that_replaces_a_row_already_replaces_what_it_changes_too() -> None:
    old = row("Our gateway timeout is 30 seconds.")
    assert said("Our gateway timeout is 45 seconds now.", [old], replaces="mem_1").replaces == f"mem_1\n{old.id}"


def test_an_appointment_of_another_speaker_is_not_moved() -> None:
    ana = observation("Ana said: My dentist is on Tuesday.", category="fact")
    assert said("Tuesday is out, make it Thursday.", [ana], label="Ben said").replaces is None


def test_nothing_is_replaced_by_a_lower_trust_or_a_reservation() -> None:
    old = row("Our database is MySQL.")
    new = "Our database is Postgres now."
    assert said(new, [old]).replaces == old.id
    assert said(new, [old], tentative=True).replaces is None
    assert said(new, [old], trust="assistant").replaces is None
    assert said(new, [row("Our database is MySQL.", trust="tool")]).replaces


def test_speakers_do_not_replace_each_others_statements() -> None:
    ana = observation("Ana said: I live in Porto.", category="fact")
    assert said("I moved to Lisbon last month.", [ana], label="Ben said").replaces is None
    assert said("I moved to Lisbon last month.", [ana], label="Ana said").replaces == ana.id


def test_a_lone_value_belongs_to_the_latest_value_of_its_kind() -> None:
    rows = [row("The upload limit is 10 MB."), row("The gateway timeout is 30 seconds."), row("The theme is dark.")]
    assert said("Make it 45 seconds.", rows).replaces == rows[1].id
    assert said("Make it 25 MB.", rows).replaces == rows[0].id
    assert said("Make it blue.", rows).replaces is None


def test_of_two_things_in_one_row_a_change_of_one_replaces_neither() -> None:
    old = row("The launch is on 14 May and the beta is on 2 April.")
    fact = said("The launch moved to 21 May.", [old])
    assert fact.replaces is None
    assert labels.UNLIKE in fact.content


@pytest.mark.parametrize(
    ("order", "known", "changes"),
    [
        ("Set the gateway timeout to 45 seconds.", "User said: Our gateway timeout is 30 seconds.", True),
        ("Make the gateway timeout 45 seconds.", "User reported: The gateway timeout is 30 seconds.", True),
        ("Please raise the upload limit to 25 MB.", "User said: The upload limit is 10 MB.", True),
        ("Change the primary color to indigo.", "User said: The primary color is teal.", True),
        ("把网关超时改成45秒。", "User said: 网关超时是30秒。", True),
        ("Setz das Gateway-Timeout auf 45 Sekunden.", "User said: Das Gateway-Timeout beträgt 30 Sekunden.", True),
        ("Set the database timeout to 45 seconds.", "User said: Our gateway timeout is 30 seconds.", False),
        ("Set the gateway timeout to 30 seconds.", "User said: Our gateway timeout is 30 seconds.", False),
        ("Fix the gateway timeout.", "User said: Our gateway timeout is 30 seconds.", False),
        ("Run the tests again.", "User said: Our gateway timeout is 30 seconds.", False),
        ("Should we set the gateway timeout to 45 seconds?", "User said: Our gateway timeout is 30 seconds.", False),
    ],
)
def test_an_order_with_another_value_of_a_known_subject_is_a_change(order: str, known: str, changes: bool) -> None:
    assert changes_value(order, [known]) is changes


def test_an_agents_report_overtakes_what_was_told_only_in_the_same_words() -> None:
    told = row("Emails are sent in batches of 100.")
    report = "emails are sent in batches of 50{} now."
    assert said(report.format(""), [told], label=labels.OUTCOME, trust="assistant").replaces == told.id
    elsewhere = said(report.format(" in the newsletter job"), [told], label=labels.OUTCOME, trust="assistant")
    assert elsewhere.replaces is None
    decided = row("Emails are sent in batches of 100.", category="decision")
    assert said(report.format(""), [decided], label=labels.OUTCOME, trust="assistant").replaces is None
