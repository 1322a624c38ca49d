"""Prices of language models, in dollars for a million tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from esker.server.core.records import TokenUse

_MILLION = 1_000_000
# The price of a token written into the provider's cache (for five minutes), or read from it, as a multiple of an input
# token's price.
_CACHE_WRITE = 1.25
_CACHE_READ = 0.1


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million input tokens and for a million output tokens."""

    input: float
    output: float


# Anthropic's list of November 2026. Haiku 5.5 costs more for prompts above 100,000 tokens. Esker's prompts rarely reach
# that; those that do are counted at the lower price.
KNOWN: Mapping[str, Price] = {
    "claude-haiku-4-5": Price(1, 5),
    "claude-haiku-5-5": Price(0.10, 0.50),
    "claude-sonnet-5": Price(2, 10),
    "claude-sonnet-5-5": Price(2, 10),
    "claude-opus-5": Price(5, 25),
    "claude-opus-5-5": Price(4, 20),
    "claude-fable-5-1": Price(10, 50),
}


def read_prices(text: str) -> dict[str, Price]:
    """Read "model=in/out, …" in dollars for a million tokens. Raises ValueError."""
    prices: dict[str, Price] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        model, _, price = (part.strip() for part in entry.rpartition("="))
        price_in, _, price_out = price.partition("/")
        try:
            prices[model] = Price(_dollars(price_in), _dollars(price_out))
        except ValueError:
            model = ""
        if not model:
            raise ValueError(f"{entry!r} is not a price such as claude-haiku-5-5=0.10/0.50")
    return prices


def _dollars(text: str) -> float:
    """Return a price. Raises ValueError, also for NaN and for one out of range."""
    dollars = float(text)
    if not 0 <= dollars < _MILLION:
        raise ValueError
    return dollars


def cost(used: TokenUse, price: Price) -> float:
    """Return the cost of a call in dollars."""
    billed = used.input_tokens + _CACHE_WRITE * used.cache_write_tokens + _CACHE_READ * used.cache_read_tokens
    return (billed * price.input + used.output_tokens * price.output) / _MILLION


def add_up(uses: Sequence[TokenUse]) -> TokenUse:
    """Return the tokens of several calls together."""
    return TokenUse(
        sum(used.input_tokens for used in uses),
        sum(used.output_tokens for used in uses),
        sum(used.cache_write_tokens for used in uses),
        sum(used.cache_read_tokens for used in uses),
    )
