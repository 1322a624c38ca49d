"""Excerpts of long texts: within their token limit, and about the question."""

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.text.excerpts import excerpt
from esker.server.core.text.terms import asked_terms, index_terms, terms
from esker.server.core.text.tokens import estimate_tokens

LINES = st.lists(
    st.sampled_from(["", "The river rises.", "The vault is in Xanadu.", "word " * 90, "河" * 200, "a-b " * 9])
)


@given(LINES, st.integers(5, 200))
def test_an_excerpt_keeps_its_limit_and_is_taken_from_the_text(lines: list[str], tokens: int) -> None:
    text = "\n".join(lines)
    shown = excerpt(text, ["xanadu", "vault"], tokens)
    assert estimate_tokens(shown) <= tokens or shown == text == ""
    assert shown in text


@given(st.integers(0, 60), st.integers(0, 60))
def test_an_excerpt_holds_the_words_that_were_asked_for(before: int, behind: int) -> None:
    filler = "Line is about nothing in particular, as far as anybody can tell."
    text = "\n".join([filler] * before + ["The vault is in Xanadu."] + [filler] * behind)
    asked = [form for forms in asked_terms("Where is the vault Xanadu?") for form in forms]
    assert "The vault is in Xanadu." in excerpt(text, asked, 60)


def test_the_earliest_place_with_most_of_the_words_is_shown() -> None:
    lines = ["The vault.", *["Nothing."] * 40, "The vault is in Xanadu.", *["Nothing."] * 40, "Xanadu has a vault."]
    assert "The vault is in Xanadu." in excerpt("\n".join(lines), index_terms("vault Xanadu"), 40)


def test_a_text_that_fits_is_shown_whole() -> None:
    assert excerpt("A\n\nB", ["x"], 50) == "A\n\nB"


def test_a_line_that_is_too_long_is_cut() -> None:
    shown = excerpt("word " * 900 + "Xanadu", ["xanadu"], 50)
    assert 40 <= estimate_tokens(shown) <= 50


def test_a_short_line_is_read_in_the_language_of_the_whole_text() -> None:
    said = "Wir haben das mit den anderen besprochen, und es ist noch nicht für alle klar, was daraus wird."
    text = "\n".join([*[said] * 6, "Rechnungen: geprüft.", *[said] * 6])
    assert "Rechnungen" in excerpt(text, terms("Rechnung", "german"), 40)
