"""Chats of people: a row names its speaker, courtesy is left out, and work with an assistant is not a chat."""

from datetime import date

import pytest

from esker.server.core.conversation.records import Role
from esker.server.core.facts.records import Fact
from esker.server.core.text import labels
from esker.server.providers.extractive.observer import observe
from tests.support.records import call, conversation, result


def chat(*said: tuple[Role, str]) -> list[Fact]:
    """Return the facts of a chat."""
    return list(observe(conversation(*said)).facts)


def test_every_sentence_of_a_message_keeps_its_speaker() -> None:
    facts = chat(
        ("user", "Ines: I adopted a cat on 3 May. My sister thinks that I work too much. I moved to Porto in June."),
        ("user", "Karl: My brother bought a boat. He keeps it in Kiel."),
    )
    assert [fact.content.partition(" said: ")[0] for fact in facts] == ["Ines", "Ines", "Ines", "Karl"]


@pytest.mark.parametrize(
    "prefix", ["{}: ", "**{}**: ", "**{}:** ", "[{}] ", "[{}]: ", "{} (2:30 pm): ", "[14:30] {}: "]
)
def test_a_name_is_read_in_each_form_and_is_not_part_of_the_statement(prefix: str) -> None:
    facts = chat(
        ("user", prefix.format("Ines") + "I adopted a cat."), ("user", prefix.format("Karl") + "I bought a boat.")
    )
    assert [fact.content for fact in facts] == ["Ines said: I adopted a cat.", "Karl said: I bought a boat."]


def test_a_message_without_a_name_has_the_name_of_its_role() -> None:
    facts = chat(
        ("user", "Ines: I adopted a cat."),
        ("assistant", "Karl: I bought a boat."),
        ("user", "My sister lives in Porto."),
        ("assistant", "My brother lives in Kiel."),
        ("user", "Ines: I sold my old bike."),
        ("assistant", "Karl: I broke my left arm."),
    )
    said = [fact.content for fact in facts]
    assert "Ines said: My sister lives in Porto." in said
    assert "Karl said: My brother lives in Kiel." in said


@pytest.mark.parametrize(
    "courtesy",
    ["Hey Karl, good to see you!", "That sounds amazing!", "I'm so sorry to hear that.", "You must be thrilled.",
     "Congratulations, Karl!", "What did you paint?", "Take care!", "I'm so proud of you.", "Huge!",
     "Oh Karl, I'm so sorry."],
)  # fmt: skip
def test_greetings_praise_pity_and_questions_are_not_kept(courtesy: str) -> None:
    facts = chat(("user", f"Ines: {courtesy}"), ("user", "Karl: I bought a boat."))
    assert [fact.content for fact in facts] == ["Karl said: I bought a boat."]


def test_an_answer_that_cannot_be_understood_alone_quotes_the_question_of_the_other() -> None:
    facts = chat(("user", "Ines: When does the pottery class start?"), ("user", "Karl: In August."))
    assert [fact.content for fact in facts] == [
        f"Karl said: In August.{labels.IN_ANSWER}“When does the pottery class start?”)"
    ]
    assert facts[0].source_seqs == (1, 2)


def test_a_statement_with_a_question_at_its_end_is_kept() -> None:
    [fact] = chat(("user", "Ines: I sold my old bike yesterday, can you believe it?"), ("user", "Karl: Huge!"))
    assert fact.content == "Ines said: I sold my old bike yesterday."


# The records' first message is of Monday, 2 March 2026.
@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("I am meeting my lawyer on Friday.", date(2026, 3, 6)),
        ("I met my lawyer on Friday.", date(2026, 2, 27)),
        ("I met my lawyer last weekend.", date(2026, 2, 28)),
        ("I met my lawyer two weekends ago.", date(2026, 2, 21)),
        ("I met my lawyer on December 20.", date(2025, 12, 20)),
        ("I have known my lawyer since 2019.", date(2019, 1, 1)),
    ],
)
def test_a_day_that_a_person_names_loosely_is_dated(said: str, day: date) -> None:
    [fact] = chat(("user", f"Ines: {said}"), ("user", "Karl: Wow!"))
    assert fact.refers_from
    assert fact.refers_from.date() == day


LIVES: tuple[tuple[Role, str], ...] = (
    ("user", "How was the wedding?"),
    ("assistant", "My cousin cried all through the vows. I danced until three."),
    ("user", "I was home with the flu all week."),
    ("assistant", "My husband had the flu too."),
)


def test_an_assistant_that_tells_of_its_life_is_a_person() -> None:
    facts = chat(*LIVES)
    by_trust = {fact.content.partition(" said: ")[0]: fact.trust for fact in facts}
    assert by_trust == {labels.OTHER: "assistant", labels.USER: "user"}
    assert any("danced until three" in fact.content for fact in facts)


@pytest.mark.parametrize(
    "work",
    [
        [("assistant", "How can I help you today?")],
        [("assistant", "As an AI, I cannot go to weddings.")],
        [("assistant", "Run `npm test` first.")],
        [("assistant", call("bash", command="ls")), ("user", result("a.py"))],
    ],
)
def test_an_assistant_that_works_or_offers_help_is_not_a_person(work: list[tuple[Role, str]]) -> None:
    assert not any(fact.content.startswith(labels.OTHER) for fact in chat(*LIVES, *work))
