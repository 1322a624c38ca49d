"""Questions made from texts: their words, and the same questions for the same texts."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.pool.known_answers import (
    MOST_FEW,
    KnownAnswer,
    MemoryText,
    in_one_line,
    known_answers,
    made_up_words,
    terms_of,
    unanswerable,
)
from esker.server.core.records import Tier
from esker.server.core.text.terms import index_terms, telling_words

SAID = datetime(2026, 5, 3, 23, 0, tzinfo=UTC)
FISH = "The harbour master Ottilie keeps trout, salmon, pike, perch and eel behind auth.ts:45 since the flood."


def told(content: str, text_id: str = "mem_1", tier: Tier = "memory") -> MemoryText:
    """Return a text that was said on a day in May."""
    return MemoryText(text_id, tier, content, SAID)


def asked_of(*texts: MemoryText, seed: int = 0, common: int = 0, limit: int = 100) -> list[KnownAnswer]:
    """Return the questions about texts of a pool in which each word occurs in one text and `common` others."""
    frequencies: dict[Tier, Mapping[str, int]] = {
        tier: dict.fromkeys(terms, 1 + common) for tier, terms in terms_of(texts).items()
    }
    return known_answers(texts, frequencies, {"memory": 100, "passage": 100}, limit=limit, seed=seed)


def words_of(text: str) -> set[str]:
    return {word.spelled for word in telling_words(text)}


@given(st.text(), st.integers(0, 50), st.sampled_from(["memory", "passage"]))
def test_a_question_is_at_most_half_of_the_words_of_its_text(content: str, seed: int, tier: Tier) -> None:
    for question in asked_of(told(content, tier=tier), seed=seed):
        asked = words_of(re.sub(r" on \d+ \w+ \d+$", "", question.query))
        assert asked <= words_of(content)
        assert 2 * len(asked) <= len(words_of(content))
        assert question.query.strip() != content.strip()


WORDS = st.lists(
    st.sampled_from([*FISH.split(), "Berlin", "ECONNRESET", "v1.2.3", "数据库", "7f3a9c01d2", "42", "不要"]),
    min_size=5,
)


@given(st.lists(WORDS, max_size=5), st.integers(0, 50))
def test_the_same_texts_and_the_same_seed_make_the_same_questions(texts: list[list[str]], seed: int) -> None:
    some = [told(" ".join(words), f"mem_{n}") for n, words in enumerate(texts)]
    assert asked_of(*some, seed=seed) == asked_of(*some, seed=seed)


@given(WORDS, st.integers(0, 50))
def test_a_question_contains_no_hash_or_bare_number(words: list[str], seed: int) -> None:
    for question in asked_of(told(" ".join(words)), seed=seed):
        assert not {"7f3a9c01d2", "42"} & set(re.sub(r" on \d+ \w+ \d+$", "", question.query).split())


def test_all_ways_are_used_equally_and_show_in_the_question() -> None:
    questions = asked_of(*(told(FISH, f"mem_{n}") for n in range(8)))
    assert Counter(question.way for question in questions) == dict.fromkeys(("identifier", "name", "date", "rare"), 2)
    for question in questions:
        assert ("auth.ts:45" in question.query) >= (question.way == "identifier")
        assert ("Ottilie" in question.query) >= (question.way == "name")
        assert question.query.endswith(" on 3 May 2026") == (question.way == "date")


def test_another_seed_makes_other_questions() -> None:
    texts = [told(FISH, f"mem_{n}") for n in range(8)]
    assert asked_of(*texts, seed=1) != asked_of(*texts, seed=2)


@pytest.mark.parametrize("content", ["", "Yes.", "Use trout now", "12 13 14 15 16 17"])
def test_a_text_that_is_too_short_makes_no_question(content: str) -> None:
    assert asked_of(told(content)) == []


def test_a_proper_name_is_a_capitalised_word_inside_a_sentence() -> None:
    text = "Berlin has trout, while the NATO clerk Ottilie keeps salmon, pike, perch and eel in the old harbour."
    named = [each.query for seed in range(40) for each in asked_of(told(text), seed=seed) if each.way == "name"]
    assert named
    assert all("Ottilie" in query for query in named)


def test_a_text_without_a_distinguishing_word_makes_no_question() -> None:
    assert asked_of(told(FISH), common=2)
    assert not asked_of(told(FISH), common=50)


def test_a_question_has_a_word_that_few_texts_contain() -> None:
    frequencies = dict.fromkeys(terms_of([told(FISH)])["memory"], 90) | {"eel": 1}
    for seed in range(20):
        [question] = known_answers([told(FISH)], {"memory": frequencies}, {"memory": 100}, limit=1, seed=seed)
        assert "eel" in question.query


def test_a_word_of_more_texts_than_are_counted_is_not_rare_in_a_pool_of_any_size() -> None:
    counted = dict.fromkeys(terms_of([told(FISH)])["memory"], MOST_FEW + 1)
    for size in (100_000, 100_000_000):
        assert not known_answers([told(FISH)], {"memory": counted}, {"memory": size}, limit=1, seed=0)
        [question] = known_answers([told(FISH)], {"memory": counted | {"eel": 1}}, {"memory": size}, limit=1, seed=0)
        assert "eel" in question.query


def test_a_question_contains_no_label_of_the_observer() -> None:
    content = "User decision: trout, salmon, pike, perch, eel"
    for seed in range(20):
        [question] = asked_of(told(content), seed=seed)
        assert "decision" not in question.query


def test_there_are_at_most_as_many_questions_as_asked_for() -> None:
    assert len(asked_of(*(told(FISH, f"mem_{n}") for n in range(8)), limit=3)) == 3


@given(st.text(), st.text())
def test_an_excerpt_is_one_line_with_the_words_of_the_question(before: str, after: str) -> None:
    content = f"{before * 9} {FISH} {after * 9}"
    shown = in_one_line(content, ["Ottilie", "perch"])
    assert "\n" not in shown
    assert len(shown) <= 162
    assert "Ottilie" in shown
    assert shown.strip("…") in " ".join(content.split())


def test_the_excerpt_of_a_dated_question_is_around_its_words_not_its_date() -> None:
    # The words of the date occur far earlier, alone and within others.
    text = told(f"{'Conversations of May 2026 went on and on for 33 days. ' * 6}Then Ottilie hid trout.")
    frequencies = dict.fromkeys(terms_of([text])["memory"], 900) | dict.fromkeys(("ottili", "hid", "trout"), 1)
    for seed in range(8):
        asked = known_answers([text] * 3, {"memory": frequencies}, {"memory": 1_000}, limit=3, seed=seed)
        [dated] = [question for question in asked if question.way == "date"]
        assert set(dated.query.removesuffix(" on 3 May 2026").split()) < {"Ottilie", "hid", "trout"}
        assert dated.text.endswith("Then Ottilie hid trout.")


def test_an_excerpt_is_found_by_whole_words_in_any_case() -> None:
    filling = "the conversation went along " * 12
    assert in_one_line(f"{filling}and ON it went", ["on"]).endswith("and ON it went")
    assert in_one_line(f"{filling}src/auth.ts:45 fails", ["auth.ts:45"]).endswith("src/auth.ts:45 fails")
    assert in_one_line(f"{filling}我们决定把数据库迁移", ["数据库"]).endswith("我们决定把数据库迁移")
    assert in_one_line(f"{filling}on it", ["convers"]).startswith("the conversation")


def test_a_short_text_is_shown_whole() -> None:
    assert in_one_line(f"{FISH}\n", ["nothing"]) == FISH
    assert not in_one_line("one two " * 60, []).startswith("…")


def test_a_question_in_chinese_is_a_few_characters() -> None:
    content = "我们决定把数据库迁移到法兰克福的新机房，因为延迟太高，而且费用更低"
    [question] = asked_of(told(content))
    assert 2 <= len(question.query.split(" on ")[0].replace(" ", "")) < len(content) / 2


@given(st.integers())
def test_a_seed_makes_the_same_made_up_questions_each_with_a_made_up_word(seed: int) -> None:
    words = list(islice(made_up_words(seed), 24))
    assert words == list(islice(made_up_words(seed), 24))
    questions = unanswerable(words, seed)
    assert questions == unanswerable(words, seed)
    assert len(questions) == 12
    for n, question in enumerate(questions):
        assert words[2 * n] in question.casefold() or words[2 * n + 1] in question.casefold()


def test_made_up_words_are_one_term_each() -> None:
    assert all(len(index_terms(word)) == 1 for word in islice(made_up_words(0), 500))
