"""Rows of a pack that are not worth their tokens: orders of the moment, and rows without a subject."""

import pytest

from esker.server.core.pool.row_worth import Worthless, worthless


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("User asked: can you run the linter once more?", "order"),
        ("User asked: führe die Tests aus", "order"),
        ("User asked for a run of the linter", "order"),
        ("User said: remove the dictation server", "order"),
        ("User asked that every commit is signed", None),
        ("User decision: make it 45", "no subject"),
        ("User preference: it should not do that", "no subject"),
        ("User decision: both", "no subject"),
        ("User decision: the second one", "no subject"),
        ("User said: the linter of billing takes 40 s", None),
        ("User decision: set max_retries to 45", None),
        ("User decision: the second one (in answer to: “Redis or Valkey for the checkout cache?”)", None),
        ("User preference: always run the linter before a commit", None),
        ("It is Lighthouse that owns the port 8377.", None),
        ("Outcome: der Export schreibt jetzt CSV", None),
        ("ユーザーはPostgreSQLを使う", None),
    ],
)
def test_an_order_and_a_row_without_a_subject_are_not_worth_their_tokens(
    content: str, reason: Worthless | None
) -> None:
    assert worthless(content, "observation") == reason


def test_a_note_is_never_an_order() -> None:
    order = "User asked: run the linter of billing"
    assert (worthless(order, "observation"), worthless(order, "manual")) == ("order", None)
