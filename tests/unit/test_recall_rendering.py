"""The text of an answer: a line for each hit, and notes that say what is missing and why."""

from typing import Any

import pytest

from esker.server.core.recall.answer import Hit, Recalled
from esker.server.core.recall.rendering import recalled_text
from esker.server.core.similar_projects import UnknownProject
from tests.support.records import hit

HIT = hit()
NOTHING = "Nothing in memory is about this."
NOT_YET = "(The latest messages have not been turned into memories yet.)"
KNOWN = "You already have everything that memory knows about this."


def lines(hits: list[Hit], **changes: Any) -> list[str]:
    """Return the lines of an answer with these hits, without the element around them."""
    values: dict[str, Any] = {"semantic": "ok", "reason": None, "abstained": False, "omitted": 0, "pending": 0}
    found = Recalled(hits, **{**values, "unobserved_tokens": 0, **changes})
    first, *inner, last = recalled_text(found).splitlines()
    assert (first, last) == ("<recalled_memories>", "</recalled_memories>")
    return inner


def test_a_hit_is_one_line_and_a_good_search_needs_no_note() -> None:
    [line] = lines([HIT])
    assert "The port is 8080." in line
    assert "mem_1" in line


@pytest.mark.parametrize(
    ("changes", "notes"),
    [
        ({"abstained": True}, [NOTHING]),
        ({"abstained": True, "unobserved_tokens": 9}, [NOTHING, NOT_YET]),
        ({"seen": 2}, [KNOWN]),
        ({"semantic": "off"}, []),
    ],
)
def test_an_answer_without_hits_says_why(changes: dict[str, Any], notes: list[str]) -> None:
    assert lines([], **changes) == notes


@pytest.mark.parametrize(
    ("changes", "note"),
    [
        ({"omitted": 1}, "(1 more is not shown; raise limit or be more specific.)"),
        ({"omitted": 2, "seen": 1}, "(2 more are not shown; raise limit or be more specific.)"),
        ({"semantic": "degraded", "reason": "it loads"}, "(Searched by keyword only: it loads.)"),
        ({"semantic": "weak", "reason": "it is Chinese"}, "(Found mostly by keyword: it is Chinese.)"),
    ],
)
def test_a_note_after_the_hits_says_what_is_missing(changes: dict[str, Any], note: str) -> None:
    _, *notes = lines([HIT], **changes)
    assert notes == [note]


def test_hits_for_an_unknown_project_are_said_to_belong_to_none() -> None:
    unknown = UnknownProject("acme/ferri", ["acme/ferry"])
    [_, note] = lines([HIT], unknown_project=unknown)
    assert "acme/ferry" in note
    assert note.endswith("These belong to no project.)")
    assert lines([], unknown_project=unknown, abstained=True)[-1] == NOTHING
