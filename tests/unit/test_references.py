"""Prompts that refer to earlier work, in every language."""

import pytest

from esker.server.agents.references import refers_to_earlier_work
from esker.server.core.words.lists import LANGUAGES

REFERRING = {
    "en": "Why did we choose Redis?",
    "de": "Wie hatten wir das mit dem Cache gelöst?",
    "fr": "Fais comme d’habitude pour la version.",
    "es": "¿Cómo lo hicimos la última vez?",
    "it": "L'ultima volta abbiamo cambiato la porta.",
    "pt": "Faz o deploy como combinado.",
    "nl": "Weet je nog welke poort het was?",
    "sv": "Kommer du ihåg vilken port det var?",
    "ru": "Какой порт мы взяли в прошлый раз?",
    "pl": "Zrób to tak, jak zwykle.",
    "zh": "上次的端口是多少？",
    "ja": "前回のポートは何番ですか？",
    "ko": "지난번 포트가 뭐였지?",
    "ar": "هل تتذكر رقم المنفذ؟",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_prompt_that_refers_to_an_earlier_session_is_recognized(language: str) -> None:
    assert refers_to_earlier_work(REFERRING[language])


@pytest.mark.parametrize(
    "prompt",
    [
        "Do you still remember the port?",
        "What was the decision in our last session?",
        "Have we ever used Valkey before?",
        "Continue where we left off.",
        "Some weeks ago it was a different port.",
        "Use my preferred editor.",
        "Was haben wir beschlossen?",
    ],
)
def test_many_words_refer_to_earlier_work(prompt: str) -> None:
    assert refers_to_earlier_work(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Fix the make ship target.",
        "Remember to run the linter.",
        "Rename last_session to previous.",
        "We use pnpm here.",
        "Benutze pnpm.",
        "把端口改成 8080",
    ],
)
def test_an_ordinary_prompt_does_not_refer_to_earlier_work(prompt: str) -> None:
    assert not refers_to_earlier_work(prompt)
