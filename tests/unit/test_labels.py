"""Labels and notes of rows: which words a note quotes of another row."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.text.labels import REPLACES, UNLIKE, note_quotes

PORT = "User said: The admin API runs on port 9090."


def noted(words: str, mark: str = UNLIKE) -> str:
    """Return a row with a note."""
    return f"User said: It is 8080 now.{mark}{words})"


@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        ("The admin API runs on port …", True),
        ("admin API … on port", True),
        ("The checkout service …; The admin API runs on port …", True),
        ("The admin API runs on port … today", False),
        ("on port … admin API", False),
        ("The public API runs on port …", False),
        ("…", False),
        ("", False),
    ],
)
def test_a_note_quotes_a_row_that_has_all_its_words_in_their_order(words: str, quoted: bool) -> None:
    assert note_quotes(UNLIKE, noted(words), PORT) == quoted
    assert not note_quotes(REPLACES, noted(words), PORT), "the note behind another mark"


@pytest.mark.parametrize(("gap", "quoted"), [(0, False), (1, True), (80, True), (81, False)])
def test_a_quotation_leaves_out_one_to_eighty_characters(gap: int, quoted: bool) -> None:
    assert note_quotes(UNLIKE, noted("port…now"), f"port{'x' * gap}now") == quoted


@given(st.lists(st.text("ab", max_size=2), min_size=1, max_size=4), st.text("ab", max_size=12))
def test_words_are_quoted_as_the_regular_expression_for_them_matches(parts: list[str], text: str) -> None:
    expected = any("".join(parts)) and re.search(".{1,80}".join(parts), text)
    assert note_quotes(UNLIKE, noted("…".join(parts)), text) == bool(expected)


def test_a_hostile_note_is_compared_in_linear_time() -> None:
    # A regular expression would try more places than there are atoms.
    assert not note_quotes(UNLIKE, noted("a…" * 70 + "z"), "a" * 100_000)
    assert not note_quotes(UNLIKE, noted("a" * 10_000), "a" * 100_000), "the observer writes no note of this length"
