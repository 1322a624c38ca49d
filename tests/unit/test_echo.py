"""Texts that repeat a fact are told from those that state another one about the same thing."""

import pytest

from esker.server.core.facts.echo import names_in, other_words, repeats, repeats_somewhere
from esker.server.core.facts.same_fact import fingerprint, same_fact
from esker.server.core.text.phrases import Phrases

VAULT = "User said: Our vault is called Xanadu and its door is green."
REDIS = "User decided to keep the sessions in Redis."


@pytest.mark.parametrize(
    ("fact", "names"),
    [
        (VAULT, {"Xanadu"}),
        ("User wants auth.ts:45 fixed before Monday.", {"auth.ts:45"}),
        ("The backup key is called zulu-7731.", {"zulu-7731"}),
        ("The door is green.", set[str]()),
    ],
)
def test_names_are_told_from_ordinary_words(fact: str, names: set[str]) -> None:
    assert names_in([fact]) == names


def test_a_word_that_is_not_ordinary_can_be_taken_up_by_a_reply() -> None:
    assert "zyqualdor" in other_words(["our vault is called zyqualdor"])


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Understood, Xanadu it is.", VAULT),
        ("The vault is called Xanadu.", VAULT),
        ("Noted! I'll get going. OK, sessions in Redis.", REDIS),
        ("Verstanden, der Tresor heißt Xanadu.", "Unser Tresor heißt Xanadu."),
        ("Entendido, la bóveda se llama Xanadu.", "Nuestra bóveda se llama Xanadu."),
    ],
)
def test_a_sentence_that_says_only_the_fact_repeats_it(text: str, fact: str) -> None:
    assert repeats_somewhere(text, [fact])


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Redis listens on port 6380.", REDIS),
        ("User likes Redis.", REDIS),
        ("User decided not to keep the sessions in Redis.", REDIS),
        ("User decided to keep the sessions in Postgres.", REDIS),
        ("The door is heavy.", "The door is green."),
        ("Xanadu's hinge needs oil.", VAULT),
        ("Understood.", VAULT),
        ("Changed api.py.", "Assistant changed api.py, web.py and cli.py."),
    ],
)
def test_another_statement_about_the_same_thing_does_not_repeat_the_fact(text: str, fact: str) -> None:
    assert not repeats(text, [fact])


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("Xanadu", "the XANADU\nvault", True),
        ("Xanadu", "XanaduVault and Xanadus", True),
        ("green  vault", "a Green\nvault", True),
        ("Ann", "the channel", False),
        ("Ann", "ask Ann, please", True),
        ("金庫", "青い金庫です", True),
        ("50%", "it grew 50% there", True),
        ("50%", "it grew 500 there", False),
    ],
)
def test_short_words_are_found_whole_and_longer_ones_anywhere(phrase: str, text: str, found: bool) -> None:
    assert Phrases.of([phrase]).found_in(text) is found


def test_words_are_found_in_the_texts_and_keys_of_json() -> None:
    phrases = Phrases.of(["Xanadu", " "])
    assert phrases.found_in_json([{"input": {"name": ["the xanadu vault"]}}])
    assert phrases.found_in_json({"xanadu": 1})
    assert not phrases.found_in_json([{"input": {"name": ["the other vault"], "size": 3, "on": True}}])


def test_a_text_that_says_a_little_more_than_a_fact_in_the_same_words_repeats_it() -> None:
    fact = "The nightly backup of the orders database runs in Oslo on Fridays and copies invoices, receipts and labels."
    longer = fact.replace("nightly backup", "nightly encrypted backup")
    assert same_fact(fingerprint(longer), fingerprint(fact))
    assert repeats(longer, [fact])
    assert not repeats("The nightly backup of the orders database failed in Bergen because a disk was full.", [fact])
