"""Prices of models, and the cost of calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.config.prices import KNOWN, Price, add_up, cost, read_prices
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured
from esker.server.core.records import TokenUse

TOKENS = st.integers(0, 10**9)
USES = st.builds(TokenUse, TOKENS, TOKENS, TOKENS, TOKENS)
DOLLARS = st.floats(0, 1000, allow_nan=False)
PRICES = st.builds(Price, DOLLARS, DOLLARS)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9.:/_-]{0,30}", fullmatch=True)


def test_a_price_is_for_a_million_tokens() -> None:
    price = Price(input=3, output=15)
    million = 1_000_000
    assert cost(TokenUse(million, 0), price) == 3
    assert cost(TokenUse(0, million), price) == 15
    assert cost(TokenUse(0, 0, cache_write_tokens=million), price) == pytest.approx(3.75)
    assert cost(TokenUse(0, 0, cache_read_tokens=million), price) == pytest.approx(0.3)


@given(USES, USES, PRICES)
def test_two_calls_together_cost_the_sum_of_both(one: TokenUse, other: TokenUse, price: Price) -> None:
    assert cost(add_up([one, other]), price) == pytest.approx(cost(one, price) + cost(other, price))
    assert cost(one, price) >= 0


def test_kinds_of_tokens_are_added_up_separately() -> None:
    assert add_up([]) == TokenUse(0, 0, 0, 0)
    assert add_up([TokenUse(1, 20, 300, 4000), TokenUse(5, 60, 700, 8000)]) == TokenUse(6, 80, 1000, 12000)


@given(st.dictionaries(NAMES, PRICES, max_size=5))
def test_written_prices_are_read_back(prices: dict[str, Price]) -> None:
    text = " , ".join(f"{model} = {price.input!r}/{price.output!r}" for model, price in prices.items())
    assert read_prices(text) == prices


def test_a_name_may_contain_an_equals_sign_and_its_last_price_wins() -> None:
    assert read_prices("org/m=x:8b=1/2, m=1/2, m=3/4") == {"org/m=x:8b": Price(1, 2), "m": Price(3, 4)}


@pytest.mark.parametrize("text", ["m", "m=", "m=1", "m=1/", "m=/2", "=1/2", "m=a/b", "m=-1/2", "m=1/-2", "m=nan/1"])
def test_a_malformed_price_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a price such as claude-haiku-5-5="):
        read_prices(text)
    with pytest.raises(Misconfigured, match="ESKER_LLM_PRICES"):
        Settings.from_environment({"ESKER_LLM_PRICES": text})


@pytest.mark.parametrize("text", ["m=inf/1", "m=1/inf", "m=1/nan"])
def test_an_infinite_price_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a price"):
        read_prices(text)


def test_a_configured_price_replaces_the_built_in_one_and_may_be_zero() -> None:
    settings = Settings.from_environment({"ESKER_LLM_PRICES": "claude-haiku-5-5=7/8,local=0/0"})
    assert settings.price("claude-haiku-5-5") == Price(7, 8)
    assert settings.price("local") == Price(0, 0)
    assert settings.price("claude-opus-5-5") == KNOWN["claude-opus-5-5"]
    assert settings.price("unheard-of") is None


def test_the_default_models_have_a_price() -> None:
    settings = Settings()
    assert settings.price(settings.model_of("observer") or "")
    assert settings.price(settings.model_of("reflector") or "")


def test_a_negative_cap_is_refused() -> None:
    with pytest.raises(Misconfigured, match="ESKER_DAILY_CAP_USD"):
        Settings.from_environment({"ESKER_DAILY_CAP_USD": "-1"})
