"""Keyword terms: what a text is found by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.core.terms import MAX_TERM, terms


def shares(text: str, query: str) -> bool:
    """Tell whether every term of the query stands in the text."""
    asked = set(terms(query))
    return bool(asked) and asked <= set(terms(text))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The deployments were failing", "deployment fails"),
        ("see src/auth.ts:45 for the check", "auth.ts:45"),
        ("see src/auth.ts:45 for the check", "auth.ts"),
        ("see src/auth.ts:45 for the check", "auth"),
        ("read ECONNRESET while connecting", "ECONNRESET"),
        ("released v0.8.6 today", "v0.8.6"),
        ("重跑gen-itgc后才发现", "gen-itgc"),
        ("用 docker 部署容器的时候失败了", "docker 部署"),
        ("東京タワーの近くに住んでいる", "タワー"),
        ("서울에서 배포했다", "배포했다"),
        ("call getUserName() first", "user name"),
        ("Grüße aus München", "munchen"),
        ("café am See", "CAFE"),
        ("the 50-tablet pilot", "tablet"),
        ("snake_case_name is set", "case"),
    ],
)
def test_what_is_there_is_found(text: str, query: str) -> None:
    assert shares(text, query)


@pytest.mark.parametrize(("text", "query"), [("a cat", "catalogue"), ("部署容器", "容部"), ("version 1.2", "2.1")])
def test_what_is_not_there_is_not_found(text: str, query: str) -> None:
    assert not shares(text, query)


def test_words_without_meaning_are_no_terms() -> None:
    assert terms("What is it that we do with this?") == []


@given(st.text())
def test_any_text_has_terms_that_an_index_can_hold(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM
        assert term == term.casefold() or not term.isascii()


@given(st.text(), st.text())
def test_terms_of_a_text_do_not_depend_on_what_stands_behind_it(text: str, other: str) -> None:
    assert terms(text + "\n\n" + other)[: len(terms(text))] == terms(text)
