"""Random letters and digits, and where they count as a secret though nothing names them."""

import pytest

from esker.server.core.redaction.randomness import is_random, is_random_in_one_case
from esker.server.core.redaction.scan import scanned
from esker.server.core.redaction.unnamed import unnamed

# In parts: these are tokens of nobody.
_MIXED = "".join(("q7Rm", "2XvB", "9tLz", "4KdW", "8nHc", "3JpY", "6sFg", "5TbN", "1wQk", "7ZcD", "4hV"))
_SHORT, _LONG = _MIXED[:20], _MIXED[:25]
_ONE_CASE = _MIXED[:30].lower()


def found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in unnamed(scanned(text))]


@pytest.mark.parametrize(
    ("word", "random"),
    [
        (_SHORT, True),
        ("".join(("aBBBxx", "KK99m", "QQQ77", "pLLvv2")), True),
        ("HttpServer2ConnectionPoolFactory", False),
        ("Cell3Icon4Left5Head6Body7Rows8", False),
        ("q7r2x9t4k8n3j6s5b1w7z4c2h9", False),
    ],
)
def test_mixed_letters_and_digits_are_random_unless_they_are_words(word: str, random: bool) -> None:
    assert is_random(word) is random


@pytest.mark.parametrize(
    ("word", "random"),
    [
        (_ONE_CASE, True),
        (_ONE_CASE.upper(), True),
        (_ONE_CASE[:27], False),
        ("abcdefghijklmnopqrstuvwxyz0123", False),
        ("085c08dc2ef443d2a040ec07339a94e4", False),
    ],
)
def test_one_case_and_digits_are_random_only_if_long_mixed_and_not_hexadecimal(word: str, random: bool) -> None:
    assert is_random_in_one_case(word) is random


@pytest.mark.parametrize(
    "line",
    [
        "connect with {} then", "that is the token {} here", "a senha disso {} vale", "пароль от него {} вот",
        "x_value={}", "use {} as the credential",
    ],
)  # fmt: skip
def test_a_short_random_word_is_a_secret_behind_a_name_or_beside_a_word_for_secrets(line: str) -> None:
    assert found(line.format(_SHORT)) == [_SHORT]


@pytest.mark.parametrize(
    "text",
    [
        f"see {_SHORT} here",  # too short
        f"see {_MIXED[:27]} here", f"see {_MIXED} here", f"x_value={_MIXED}=",  # as long as a hash
        f"see {_ONE_CASE} here",  # of one case
        f"_Z{_MIXED[:28]}", f"call_{_LONG}",  # names that a compiler or a server gave
        f"{_LONG}\n{_MIXED[5:30]}\n", f"{_MIXED[3:30]}\n{_LONG}",  # lines of base64
        f"x = \"{'08dc2ef4' * 4}\"",  # hexadecimal, and no client is made of it
    ],
)  # fmt: skip
def test_a_random_word_that_nothing_announces_is_spared_if_it_may_be_something_else(text: str) -> None:
    assert found(text) == []


def test_a_long_random_word_needs_no_name() -> None:
    assert found(f"see {_LONG} here") == [_LONG]
    assert found(f'x = Client("{"08dc2ef4" * 4}")') == ["08dc2ef4" * 4]
