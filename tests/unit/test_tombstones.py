"""A forgotten fact is known by keyed hashes when it comes back in nearly the same words."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest

from esker.server.core.conversation.records import Block
from esker.server.core.facts import tombstones
from esker.server.core.facts.tombstones import (
    EVERYWHERE,
    Digests,
    Tombstone,
    holding,
    is_one_of_its_kind,
)

KEY = b"k" * 32


def digests_of(*words: str, key: bytes = KEY) -> Digests:
    """Return the hashes of a pool in which some words were forgotten."""
    return Digests.stored(key, Digests(key, {}).starts_of(words))


DIGESTS = digests_of("green vault", "the")
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
FACT = "User decided to keep the sessions in Redis on port 6380."


@pytest.mark.parametrize(
    "text",
    [
        FACT,
        "User decision: user decided  to KEEP the sessions in Redis on port 6380.",
        "On port 6380 in Redis, the user decided to keep sessions.",
    ],
)
def test_a_row_in_other_order_case_or_label_is_known_again(text: str) -> None:
    assert DIGESTS.of_row(text, EVERYWHERE) & DIGESTS.of_row(FACT, EVERYWHERE)


@pytest.mark.parametrize(
    "text",
    [
        "User decided not to keep the sessions in Redis on port 6380.",
        "User decided to keep the sessions in Redis on port 6381.",
        "User decided to keep the sessions in Postgres on port 6380.",
    ],
)
def test_a_row_that_states_something_else_is_not(text: str) -> None:
    assert not DIGESTS.of_row(text, EVERYWHERE) & DIGESTS.of_row(FACT, EVERYWHERE)


def test_a_row_that_was_forgotten_in_one_project_is_another_row_in_the_next() -> None:
    assert not DIGESTS.of_row(FACT, "shop") & DIGESTS.of_row(FACT, "bank")


def test_rows_of_two_words_are_known_by_their_words_alone() -> None:
    assert not DIGESTS.of_row("door green", EVERYWHERE) & DIGESTS.of_row("green door", EVERYWHERE)


def test_words_are_found_in_a_text_in_any_form_and_in_their_order() -> None:
    assert DIGESTS.of_words("green vault") in DIGESTS.in_text("We painted the Green Vaults, twice.")
    assert DIGESTS.of_words("green vault") not in DIGESTS.in_text("We painted the vault green.")
    assert DIGESTS.of_words("the") is None


def test_of_a_text_only_words_that_begin_like_forgotten_ones_and_are_as_long_are_hashed() -> None:
    sentence = "Xanadu guards nineteen copper kettles, eleven brass lamps, seven iron doors and one quiet river."
    digests = digests_of(sentence, "brass lamps")
    assert digests.in_text(" ".join(f"word{number}" for number in range(1_000))) == set()
    assert len(digests.in_text("brass doors, brass bells, brass lamps")) == 3
    assert digests.in_text(f"He said: {sentence}") == {digests.of_words(sentence), digests.of_words("brass lamps")}


def test_words_of_many_thousand_terms_are_known_again() -> None:
    long = " ".join(f"word{number}" for number in range(70_000))
    digests = digests_of(long)
    assert digests.of_words(long) in digests.in_text(long)


def test_a_row_is_read_once_for_all_projects(monkeypatch: pytest.MonkeyPatch) -> None:
    one_by_one = DIGESTS.of_row(FACT, "shop") | DIGESTS.of_row(FACT, None) | DIGESTS.of_row(FACT, EVERYWHERE)
    reading = Mock(wraps=tombstones.fingerprint)
    monkeypatch.setattr(tombstones, "fingerprint", reading)
    assert DIGESTS.of_row_in(FACT, ["shop", "", EVERYWHERE]) == one_by_one
    assert reading.call_count == 1


def test_another_pool_has_other_hashes() -> None:
    other = Digests(b"o" * 32, {})
    assert not other.of_row(FACT, EVERYWHERE) & DIGESTS.of_row(FACT, EVERYWHERE)
    assert other.of_message(b"\1") != DIGESTS.of_message(b"\1")


@pytest.mark.parametrize(("until", "later", "holds"), [(NOON, 0, True), (NOON, 1, False), (None, 1, True)])
def test_a_tombstone_holds_for_what_was_said_before_it(until: datetime | None, later: int, holds: bool) -> None:
    known = {b"1": Tombstone(until, blanks=True)}
    assert bool(list(holding([b"0", b"1"], known, NOON + timedelta(seconds=later)))) is holds


@pytest.mark.parametrize(
    ("text", "blocks", "alone"),
    [
        ("continue", [], False),
        ("Yes, please do that, and then run all of the tests.", [], False),
        ("Rename the harbour crane controller, then rebuild its gearbox with brass bearings and report.", [], True),
        ("", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}], True),
        ("", [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}], True),
    ],
)
def test_only_a_message_that_nobody_writes_twice_is_known_by_its_content(
    text: str, blocks: list[Block], alone: bool
) -> None:
    assert is_one_of_its_kind(text, blocks) is alone


def test_the_same_words_under_another_id_are_another_message() -> None:
    assert DIGESTS.of_sent(b"1", "m1") not in {DIGESTS.of_sent(b"1", "m2"), DIGESTS.of_message(b"1")}
