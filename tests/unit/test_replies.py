"""A reply is kept with what it replies to: a choice, a limited yes, a known value, a ruling taken back."""

import pytest

from esker.server.core.conversation.records import Role
from esker.server.core.facts.records import Fact
from esker.server.providers.extractive.observer import observe
from esker.server.providers.extractive.weighing import leans, names, stands_alone, weight
from tests.support.records import conversation


def facts(*said: tuple[Role, str]) -> list[Fact]:
    """Return the facts of a conversation."""
    return list(observe(conversation(*said)).facts)


def replied(question: str, reply: str) -> list[str]:
    """Return the contents of the rows made of a reply."""
    return [fact.content for fact in facts(("user", "Plan it."), ("assistant", question), ("user", reply))]


def test_a_choice_of_one_word_is_kept_with_its_question() -> None:
    [chosen] = replied("Should we use Redis or Postgres for the sessions?", "Postgres")
    assert chosen == "Asked “Should we use Redis or Postgres for the sessions?”, user answered: Postgres"


def test_a_yes_keeps_its_conditions() -> None:
    [agreed] = replied("Should I book a hotel room in Lisbon for May?", "Yes. Not a hotel, a small cabin near the sea.")
    assert "Lisbon for May" in agreed
    assert "Not a hotel, a small cabin near the sea." in agreed


@pytest.mark.parametrize("reply", ["no idea yet", "I don't know"])
def test_a_reply_that_avoids_the_answer_is_not_kept(reply: str) -> None:
    assert replied("Where should we stay in Lisbon?", reply) == []


def test_a_ruling_that_takes_back_another_replaces_it() -> None:
    found = facts(
        ("user", "We decided to keep the ledger in Postgres."),
        ("assistant", "All right."),
        ("user", "Scratch that. We decided to keep the ledger in SQLite."),
    )
    [latest] = [fact for fact in found if "SQLite" in fact.content]
    assert latest.replaces == "User decision: We decided to keep the ledger in Postgres."


def test_an_order_that_sets_a_known_value_is_kept_and_replaces_it() -> None:
    order = "set the queue limit in the worker to 45 jobs"
    found = facts(("user", "Our queue limit in the worker is 30 jobs."), ("assistant", "All right."), ("user", order))
    [latest] = [fact for fact in found if "45 jobs" in fact.content]
    assert (latest.category, latest.replaces) == ("decision", "User said: Our queue limit in the worker is 30 jobs.")
    assert not [fact for fact in facts(("user", "run the tests again")) if fact.category == "decision"]


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("The token in `auth.ts:45` expires.", "The token expires."),
        ("The token expires after 30 minutes.", "The token expires after some minutes."),
        ("The login fails because the token expired.", "The login fails and the token expired."),
        ("The ledger is kept by Ada in Rotterdam.", "The ledger is kept by somebody in some town."),
    ],
)
def test_names_figures_and_causes_make_a_statement_tell_more(more: str, less: str) -> None:
    assert weight(more) > weight(less)


def test_names_are_words_that_can_be_looked_up() -> None:
    assert names("Set `max tries` in src/auth.ts for ECONNRESET with --strict, please.") == [
        "max tries",
        "src/auth.ts",
        "ECONNRESET",
        "--strict",
    ]


@pytest.mark.parametrize("said", ["It is slow.", "That works.", "The reason is the clock.", "ok"])
def test_a_statement_that_points_back_or_is_empty_is_not_understood_alone(said: str) -> None:
    assert not stands_alone(said)


@pytest.mark.parametrize("said", ["The importer reads 500 rows per batch.", "`auth.ts` checks the clock."])
def test_a_statement_with_a_subject_is_understood_alone(said: str) -> None:
    assert stands_alone(said)
    assert not leans(said)


@pytest.mark.parametrize(
    ("options", "reply", "chosen"),
    [
        ("- **Variante 1**: Redis, TTL 60 s\n- **Variante 2**: Postgres", "Variante 1", "Variante 1: Redis, TTL 60 s"),
        ("Option A: Redis\n\nOption B: Postgres with an index", "b", "Option B: Postgres with an index"),
        ("1. Redis with a TTL\n2. Postgres with an index", "2", "Postgres with an index"),
        ("1. Redis with a TTL\n2. Postgres with an index", "go with 2.", "Postgres with an index"),
    ],
)
def test_a_number_or_letter_chooses_the_item_that_it_names(options: str, reply: str, chosen: str) -> None:
    asked = f"Two ways to store sessions:\n\n{options}\n\nWhich one?"
    [picked] = [row for row in replied(asked, reply) if not row.startswith("Assistant")]
    assert picked == f"User decision: {reply} (in answer to: “{chosen}”)"


def test_a_number_that_is_a_quantity_chooses_no_item() -> None:
    asked = "Two ways to store sessions:\n\n1. Redis with a TTL\n2. Postgres with an index\n\nWhich one?"
    assert not [row for row in replied(asked, "wait 2") if row.endswith("(in answer to: “Postgres with an index”)")]


def test_a_short_question_behind_a_list_is_quoted_with_all_its_items() -> None:
    asked = "We can store sessions in:\n\n- Redis with a TTL\n- Postgres with an index\n\nWhich one?"
    assert replied(asked, "the Redis one")[-1] == (
        "Asked “Redis with a TTL; Postgres with an index Which one?”, user answered: the Redis one"
    )


@pytest.mark.parametrize("reply", ["/review please audit the whole page", "@app.py please audit the whole page"])
def test_a_command_is_not_an_answer(reply: str) -> None:
    assert not [row for row in replied("Could you open the page of the shop?", reply) if "Could you" in row]


@pytest.mark.parametrize("reply", ["...", "- \r0", "!"])
def test_a_reply_without_words_is_read_without_an_error(reply: str) -> None:
    rows = replied("1. Redis with a TTL\n2. Postgres\n\nWhich one?", reply)
    assert not [row for row in rows if row.startswith("User decision")]


def test_an_order_with_an_uncommon_verb_is_not_a_report() -> None:
    order = "formalize a higher timeout for coverage runs to avoid the error after 60 s"
    [fact] = facts(("user", order))
    assert (fact.category, fact.content) == ("decision", f"User decision: {order}")
    [report] = facts(("user", "Added the higher timeout and the error after 60 s is gone."))
    assert report.category != "decision"
