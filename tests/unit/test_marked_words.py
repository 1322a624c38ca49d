"""The words of a question are marked in an answer, in any of their forms, and nothing of the answer is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.web.marked_words import marked_words


@pytest.mark.parametrize(
    ("question", "text", "marked"),
    [
        ("how do migrations get numbers", "Migrations: a number (0012).", ["Migrations", "number"]),
        ("auth.ts:45 ECONNRESET", "At auth.ts:45, econnreset!", ["auth.ts:45", "econnreset"]),
        ("the boat", "The cart is the one.", []),
        ("デプロイはいつですか", "決定:デプロイは火曜日です。", ["デプロイ"]),
        ("部署是什么时候", "我们每周二部署到生产环境。", ["部署"]),
        ("배포는 언제인가요", "화요일에 배포를 한다.", ["배포"]),
        ("サーバーのポート", "サーバーはPostgresのポート5432を使う。", ["サーバー", "ポート"]),
        ("Postgresのポート", "Postgresを使う。", ["Postgres"]),
        ("", "The cart.", []),
    ],
)
def test_words_of_the_question_are_marked(question: str, text: str, marked: list[str]) -> None:
    assert [part for is_asked, part in marked_words(text, question) if is_asked] == marked


@given(st.text(max_size=60), st.text(max_size=20))
def test_no_character_of_a_text_is_lost(text: str, question: str) -> None:
    assert "".join(part for _, part in marked_words(text, question + " " + text[:9])) == text
