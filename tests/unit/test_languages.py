"""Languages: an everyday sentence shows its language. If a text is too short to show it, no language is guessed."""

import pytest

from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of, without_accents
from esker.server.core.text.terms import index_terms

SENTENCES = {
    "english": (
        "Please move the meeting to Thursday because the customer is still on a train.",
        "Grandma planted tomatoes and beans behind the old garage this spring.",
        "The build was red for an hour, then somebody restarted it.",
    ),
    "german": (
        "Bitte verschiebe das Treffen auf Donnerstag, weil der Kunde noch unterwegs ist.",
        "Oma hat Tomaten und Bohnen hinter der alten Garage gepflanzt.",
        "Der Zug fuhr pünktlich ab, doch in Kassel standen wir eine Stunde.",
    ),
    "french": (
        "Déplace la réunion à jeudi, parce que le client est encore dans le train.",
        "Mamie a planté des tomates et des haricots derrière le vieux garage.",
        "Il pleut depuis ce matin et nous ne sortirons pas avec les enfants.",
    ),
    "spanish": (
        "Mueve la reunión al jueves porque el cliente todavía está en el tren.",
        "La abuela plantó tomates y judías detrás del viejo garaje.",
        "Ayer llovió mucho, así que los niños jugaron en la cocina.",
    ),
    "italian": (
        "Sposta la riunione a giovedì perché il cliente è ancora sul treno.",
        "La nonna ha piantato pomodori e fagioli dietro il vecchio garage.",
        "Ieri pioveva forte, quindi i bambini hanno giocato nella cucina con gli zii.",
    ),
    "portuguese": (
        "Muda a reunião para quinta-feira porque o cliente ainda está no comboio.",
        "A avó plantou tomates e feijões atrás da garagem com os netos.",
        "Ontem choveu muito, mas as crianças não ficaram tristes na cozinha.",
    ),
    "dutch": (
        "Verplaats de vergadering naar donderdag, want de klant zit nog in de trein.",
        "Oma heeft tomaten en bonen achter de oude schuur geplant.",
        "Gisteren regende het hard, dus speelden de kinderen in de keuken met hun neef.",
    ),
    "swedish": (
        "Flytta mötet till torsdag eftersom kunden inte har kommit med tåget.",
        "Mormor har planterat tomater och bönor bakom det gamla garaget.",
        "Igår regnade det mycket och barnen lekte i köket med en katt.",
    ),
    "russian": (
        "Перенеси встречу на четверг, потому что клиент ещё едет в поезде.",
        "Бабушка посадила помидоры и фасоль за старым гаражом.",
        "Вчера шёл сильный дождь, и дети играли на кухне с кошкой.",
    ),
}


@pytest.mark.parametrize(
    ("language", "sentence"), [(language, text) for language, texts in SENTENCES.items() for text in texts]
)
def test_an_everyday_sentence_shows_its_language(language: str, sentence: str) -> None:
    assert language_of(sentence) == language
    assert language_of(sentence.upper()) == language


@pytest.mark.parametrize("text", ["Сборка идёт на Jenkins.", "сборка", "Сборки"])
def test_a_script_of_one_language_shows_it_in_a_short_text(text: str) -> None:
    assert language_of(text) == "russian"
    assert index_terms(text)[0] == "сборк"


def test_a_name_has_one_stem_in_texts_of_two_scripts() -> None:
    assert index_terms("Сборка идёт на Jenkins.")[-1] == index_terms("The build runs on Jenkins.")[-1]


def test_every_language_is_tried() -> None:
    assert SENTENCES.keys() == STOP_WORDS.keys()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "docker",
        "ECONNRESET auth.ts:45",
        "用 docker 部署容器",
        "1 2 3 …",
        "der Rhein",
        "le, le, le",
        "файл ECONNRESET",
    ],
)
def test_the_language_of_a_short_text_is_not_guessed(text: str) -> None:
    assert language_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "We read Der Spiegel and Le Monde on the train, because the wifi is down.",
        "The error is 'Datei nicht gefunden', and it comes from the import.",
        "She has been to La Paz and to El Paso, as far as we know.",
    ],
)
def test_a_few_foreign_words_do_not_make_an_english_text_foreign(text: str) -> None:
    assert language_of(text) == ENGLISH


def test_in_a_mixed_text_the_language_of_most_small_words_counts() -> None:
    german, english = SENTENCES["german"][0], SENTENCES["english"][0]
    assert language_of(f"{german} {german} {english}") == "german"
    assert language_of(f"{german} {english} {english}") == ENGLISH


def test_stop_words_have_no_accents() -> None:
    for small in STOP_WORDS.values():
        assert {word for word in small if without_accents(word) != word or word != word.casefold()} == set()
    assert without_accents("Grüße à São") == "Gruße a Sao"


def test_a_text_is_indexed_by_its_stems_without_stop_words() -> None:
    assert {"plant", "tomato"} <= set(index_terms(SENTENCES["english"][1]))
    for language, texts in SENTENCES.items():
        for text in texts:
            assert STOP_WORDS[language].isdisjoint(index_terms(text)), language
