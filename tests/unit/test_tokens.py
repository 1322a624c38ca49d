"""Token estimates, and trimming with the same estimator."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.text.tokens import (
    _PIECE,
    IMAGE_TOKENS,
    _cost,
    estimate_tokens,
    trim_tail_to_tokens,
    trim_to_tokens,
)

budgets = st.integers(min_value=0, max_value=60)


@given(st.text(), budgets)
def test_trimmed_text_is_within_its_budget(text: str, budget: int) -> None:
    assert estimate_tokens(trim_to_tokens(text, budget)) <= budget
    assert estimate_tokens(trim_tail_to_tokens(text, budget)) <= budget


@given(st.text(), budgets)
def test_trimming_only_cuts(text: str, budget: int) -> None:
    assert text.startswith(trim_to_tokens(text, budget))
    assert text.endswith(trim_tail_to_tokens(text, budget))


@given(st.text())
def test_text_that_fits_is_not_cut(text: str) -> None:
    budget = estimate_tokens(text) + 1
    assert trim_to_tokens(text, budget) == text
    assert trim_tail_to_tokens(text, budget) == text


@given(st.text(min_size=1), st.text(min_size=1))
def test_more_text_never_costs_less(one: str, other: str) -> None:
    assert estimate_tokens(one + "\n" + other) >= max(estimate_tokens(one), estimate_tokens(other))


@pytest.mark.parametrize("character", [*"\r\v\f\xa0\u2028 \t\na🙂-é部", "\r\n", "a b"])
def test_no_text_takes_more_than_linear_time(character: str) -> None:
    def seconds(length: int) -> float:
        began = time.process_time()
        text = character * length
        trim_to_tokens(text, estimate_tokens(text) - 1)
        trim_tail_to_tokens(text, 1_000)
        return time.process_time() - began

    # Sixteen times the text would take 256 times as long if it were quadratic. A slow run is measured again.
    bound = 60 * max(seconds(10_000), 0.002)
    assert any(seconds(160_000) < bound for _ in range(3))


@settings(max_examples=25)
@given(st.text(min_size=1, max_size=12), st.integers(min_value=65_000, max_value=66_000))
def test_a_text_costs_the_same_however_it_is_split(piece: str, size: int) -> None:
    text = (piece * (size // len(piece) + 1))[:size]
    whole = sum(map(_cost, _PIECE.findall(text)))
    assert estimate_tokens(text) == whole


def test_each_script_has_its_own_ratio() -> None:
    prose = "The quick brown fox jumps over the lazy dog and considers what to do about it. " * 10
    code = "for (const item of items) { total += item.price * item.count; }\n" * 10
    assert 3.5 <= len(prose) / estimate_tokens(prose) <= 4.5
    assert 2.0 <= len(code) / estimate_tokens(code) <= 3.5
    assert estimate_tokens("部署容器失败了") == 7
    assert estimate_tokens("🙂🙂🙂") == 6
    assert estimate_tokens("1234567890") == 4


def test_an_image_costs_a_flat_rate_in_any_position() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 100_000}}
    assert content_tokens([image]) == IMAGE_TOKENS
    assert content_tokens([{"type": "tool_result", "tool_use_id": "t", "content": [image, image]}]) == 2 * IMAGE_TOKENS


def test_every_message_costs_something() -> None:
    assert content_tokens([]) == 1
    assert content_tokens([{"type": "text", "text": "   "}]) == 1
