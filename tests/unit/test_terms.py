"""Keyword terms, by which a text is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.text.languages import STOP_WORDS
from esker.server.core.text.terms import (
    MAX_TERM,
    asked_names,
    asked_terms,
    asks_of_names_alone,
    asks_of_something,
    index_terms,
    terms,
)


def shares(text: str, query: str) -> bool:
    """Whether the text has every term of the query."""
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
def test_a_contained_query_is_found(text: str, query: str) -> None:
    assert shares(text, query)


@pytest.mark.parametrize(("text", "query"), [("a cat", "catalogue"), ("部署容器", "容部"), ("version 1.2", "2.1")])
def test_a_query_that_is_not_contained_is_not_found(text: str, query: str) -> None:
    assert not shares(text, query)


def test_stop_words_are_not_terms() -> None:
    assert terms("What is it that we do with this?") == []


@given(st.text())
def test_any_text_has_terms_that_an_index_can_hold(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM
        assert term == term.casefold() or not term.isascii()


@given(st.text(), st.text())
def test_the_terms_of_a_text_do_not_depend_on_the_text_after_it(text: str, other: str) -> None:
    assert terms(text + "\n\n" + other)[: len(terms(text))] == terms(text)


# Queries --------------------------------------------------------------------------------------------------------------

# Two forms of a word; the text is long enough to show its language, the query is one word.
FORMS = {
    "english": ("The deployments were failing because of a typo in it.", ("deployment", "fails", "typos")),
    "german": ("Die Lieferungen nach Köln sind verspätet, und das ist nicht gut.", ("Lieferung", "Verspätete")),
    "french": (
        "Les réunions avec la cliente sont annulées pour des raisons de santé.",
        ("réunion", "annulée", "raison"),
    ),
    "spanish": (
        "Las reuniones con la clienta están canceladas por una tormenta.",
        ("reunión", "cancelada", "tormentas"),
    ),
    "italian": ("Le riunioni con la cliente sono cancellate per una tempesta.", ("riunione", "cancellata", "tempeste")),
    "portuguese": (
        "As reuniões com a cliente foram canceladas por uma tempestade.",
        ("cliente", "cancelada", "tempestades"),
    ),
    "dutch": ("De vergaderingen met de klanten zijn afgelast en dat is jammer.", ("vergadering", "klant")),
    "swedish": ("Mötena med kunderna är inställda och det är synd om dem.", ("kunder", "inställd")),
    "russian": ("Встречи с клиентами отменены, и это не шутка, а буря на реке.", ("встреча", "клиенты", "бури")),
}


def finds(query: str, text: str) -> bool:
    """Whether the text is found by every word of the query."""
    there = set(index_terms(text))
    words = asked_terms(query)
    return bool(words) and all(there.intersection(forms) for forms in words)


@pytest.mark.parametrize(("text", "word"), [(text, word) for text, words in FORMS.values() for word in words])
def test_any_form_of_a_word_finds_the_others_in_any_language(text: str, word: str) -> None:
    assert finds(word, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("koln lieferung", FORMS["german"][0]),
        ("reunioes cancelada", FORMS["portuguese"][0]),
        ("reunion raison sante", FORMS["french"][0]),
        ("MÖTENA KUNDERNA", FORMS["swedish"][0]),
    ],
)
def test_accents_and_case_do_not_matter_in_a_query(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.parametrize("language", FORMS)
def test_the_words_of_a_sentence_find_it(language: str) -> None:
    assert finds(FORMS[language][0], FORMS[language][0])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("auth.ts:45", "Die Prüfung ist in src/auth.ts:45 und nicht in der Datei."),
        ("auth", "see src/auth.ts:45"),
        ("ECONNRESET", "la suite s'arrête avec ECONNRESET dans les tests de la nuit"),
        ("v0.8.6", "wir haben die Version v0.8.6 am Montag"),
        ("gen-itgc", "重跑gen-itgc后才发现"),
        ("docker 部署", "用 docker 部署容器的时候失败了"),
        ("タワー", "東京タワーの近くに住んでいる"),
        ("user name", "call getUserName() first"),
    ],
)
def test_identifiers_and_other_scripts_are_found_in_text_of_any_language(query: str, text: str) -> None:
    assert finds(query, text)


def test_a_word_is_queried_once_with_all_its_forms() -> None:
    [forms] = asked_terms("running")
    assert "run" in forms
    assert len(asked_terms("river River RIVER")) == 1
    assert asked_terms("What is it that we do with this?") == []
    assert len({form for forms in asked_terms("Tests laufen")[1:] for form in forms}) > 1


def test_a_query_in_a_recognised_language_has_the_forms_of_it_and_of_english() -> None:
    for forms in asked_terms("Wann sind die Lieferungen nach Köln da gewesen?"):
        assert len(forms) <= 2


@given(st.text())
def test_any_query_gives_terms_that_fit_the_index(query: str) -> None:
    for forms in asked_terms(query):
        assert forms
        assert len(set(forms)) == len(forms)
        assert all(0 < len(form) <= MAX_TERM for form in forms)


@given(st.sampled_from([text for text, _ in FORMS.values()]), st.data())
def test_any_words_of_a_text_find_it(text: str, data: st.DataObject) -> None:
    words = data.draw(st.lists(st.sampled_from(text.split()), min_size=1, max_size=3))
    there = set(index_terms(text))
    for forms in asked_terms(" ".join(words)):
        assert there.intersection(forms) or set(forms) & set().union(*STOP_WORDS.values()), words


# Names ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("Why was T-16981 closed?", ["t-16981"]),
        ("compare auth.ts:45 with v0.8.6 and max_connections", ["auth.ts:45", "v0.8.6", "max_connections"]),
        ("重跑gen-itgc2后", ["gen-itgc2"]),
        ("a well-known and/or long-lived thing at 5pm on the 2nd of 2024-01-05, 100 times", []),
    ],
)
def test_identifiers_are_names(query: str, names: list[str]) -> None:
    assert asked_names(query) == names


@pytest.mark.parametrize(
    ("query", "alone"),
    [("T-16981", True), ("what is T-16981?", True), ("T-1 closed", False), ("what is it?", False), ("river", False)],
)
def test_a_query_of_identifiers_and_stop_words_is_about_names_alone(query: str, alone: bool) -> None:
    assert asks_of_names_alone(query) is alone


def test_the_numbers_of_an_identifier_are_not_queried_alone() -> None:
    asked = {term for forms in asked_terms("T-5265 v30.42.25 ojihvzpn5265 port 5432") for term in forms}
    assert {"t-5265", "v30.42.25", "ojihvzpn5265", "5432"} <= asked
    assert not {"5265", "42", "25"} & asked


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("What happened?", False),
        ("Was haben wir gemacht?", False),
        ("¿Qué hicimos?", False),
        ("что было сделано", False),
        ("Was sagte Anna?", True),
        ("decisions about the database", True),
    ],
)
def test_a_query_of_stop_words_and_general_words_is_empty(query: str, asks: bool) -> None:
    assert asks_of_something(query) is asks


@pytest.mark.parametrize(
    ("question", "subjects"),
    [
        ("변경 사항은 몇 사람이 검토해야 하나요?", ["변경", "사항", "사람", "검토"]),
        ("서버에서는 로그가 언제까지 보관되나요?", ["서버", "로그", "보관"]),
        # One character before an ending is in no pair, so the ending stays.
        ("집은 어디에 있나요?", ["집은"]),
        # A question of small words alone is searched for as it is.
        ("언제?", ["언제"]),
    ],
)
def test_a_korean_question_is_searched_for_without_endings_and_small_words(question: str, subjects: list[str]) -> None:
    assert [form for forms in asked_terms(question) for form in forms] == subjects
