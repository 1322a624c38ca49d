"""Token use of a session's model calls, as its client reports it, and what the context builder saved.

Sent tokens are the provider's figures; raw history tokens contain our estimate. Prices are multiples of the price of an
input token (`server/core/config/prices.py`): 1.25 for a cache write, 0.1 for a cache read. A text stays in the cache
for five minutes after its last use (Anthropic's documentation of prompt caching).
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from esker.server.core.config.prices import Price, cost
from esker.server.core.records import TokenUse

CACHE_LIFE = timedelta(minutes=5)
"""How long the provider caches a text after its last use."""


@dataclass(frozen=True, slots=True)
class RequestChange:
    """A change that the gateway made to a request, in tokens by our estimate: turns left out, and the pack put in."""

    omitted_tokens: int = 0
    pack_tokens: int = 0

    def raw_tokens(self, used: TokenUse) -> int:
        """Return the input tokens that the request had before the change, given what the provider counted after it."""
        return max(0, used.sent_tokens + self.omitted_tokens - self.pack_tokens)


UNCHANGED = RequestChange()


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One call of a model. `raw_tokens` are those of all messages of the session at that time.

    `pack_version` is 0 if the session had no pack. `change` is None for a call that did not pass through the gateway.
    """

    used: TokenUse
    at: datetime
    model: str | None
    raw_tokens: int
    pack_version: int
    change: RequestChange | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Sums over the calls of a session, and the last call.

    `prefix_lost` counts calls that read nothing from the cache although pack and model were those of the call before.
    `raw_tokens` and `raw_cost_usd` are the totals if each call had sent all messages; costs cover the `priced_calls`,
    those with a known price. `gateway_calls` passed through the gateway.
    """

    calls: int
    gateway_calls: int
    input_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int
    raw_tokens: int
    prefix_lost: int
    priced_calls: int
    cost_usd: float
    raw_cost_usd: float
    last_at: datetime
    last_model: str | None
    last_input_tokens: int
    last_cache_write_tokens: int
    last_cache_read_tokens: int
    last_output_tokens: int
    last_raw_tokens: int
    last_pack_version: int

    @property
    def sent_tokens(self) -> int:
        """All input tokens sent: uncached, written to and read from the cache."""
        return self.input_tokens + self.cache_write_tokens + self.cache_read_tokens


def with_call(before: Usage | None, call: ModelCall, price: Price | None) -> Usage:
    """Return the usage of a session after one more call."""
    return _with_last(_summed(before or _none_yet(call), before, call, price), call)


def _none_yet(call: ModelCall) -> Usage:
    return Usage(0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, call.at, None, 0, 0, 0, 0, 0, 0)


def _summed(sums: Usage, before: Usage | None, call: ModelCall, price: Price | None) -> Usage:
    used = call.used
    return replace(
        sums,
        calls=sums.calls + 1,
        gateway_calls=sums.gateway_calls + (call.change is not None),
        input_tokens=sums.input_tokens + used.input_tokens,
        cache_write_tokens=sums.cache_write_tokens + used.cache_write_tokens,
        cache_read_tokens=sums.cache_read_tokens + used.cache_read_tokens,
        output_tokens=sums.output_tokens + used.output_tokens,
        raw_tokens=sums.raw_tokens + call.raw_tokens,
        prefix_lost=sums.prefix_lost + _lost_prefix(before, call),
        priced_calls=sums.priced_calls + (price is not None),
        cost_usd=sums.cost_usd + (cost(used, price) if price else 0.0),
        raw_cost_usd=sums.raw_cost_usd + (cost(_raw_use(before, call), price) if price else 0.0),
    )


def _lost_prefix(before: Usage | None, call: ModelCall) -> bool:
    """Return whether a call read nothing from the cache although its pack is that of the call before."""
    if before is None or call.used.cache_read_tokens or not call.pack_version:
        return False
    return before.last_pack_version == call.pack_version and not _changed_model(before, call)


def _changed_model(before: Usage, call: ModelCall) -> bool:
    """Return whether a call went to another model, which has another cache; an unnamed one counts as the same."""
    return None not in (before.last_model, call.model) and before.last_model != call.model


def _raw_use(before: Usage | None, call: ModelCall) -> TokenUse:
    """Return the tokens of a call with all messages and the best possible caching.

    The messages of the call before are read from the cache while it lasts, and the rest is written. A request that the
    gateway did not change keeps its own figures. If a changed request wrote nothing to the cache, its new tokens count
    at the normal price.
    """
    if call.change == UNCHANGED:
        return call.used
    kept = before is not None and call.at - before.last_at <= CACHE_LIFE and not _changed_model(before, call)
    read = min(before.last_raw_tokens, call.raw_tokens) if before and kept else 0
    fresh = call.raw_tokens - read
    is_written = call.change is None or call.used.cache_write_tokens > 0
    return TokenUse(
        input_tokens=0 if is_written else fresh,
        output_tokens=call.used.output_tokens,
        cache_write_tokens=fresh if is_written else 0,
        cache_read_tokens=read,
    )


def _with_last(sums: Usage, call: ModelCall) -> Usage:
    return replace(
        sums,
        last_at=call.at,
        last_model=call.model,
        last_input_tokens=call.used.input_tokens,
        last_cache_write_tokens=call.used.cache_write_tokens,
        last_cache_read_tokens=call.used.cache_read_tokens,
        last_output_tokens=call.used.output_tokens,
        last_raw_tokens=call.raw_tokens,
        last_pack_version=call.pack_version,
    )


@dataclass(frozen=True, slots=True)
class Savings:
    """Savings compared with sending every message in every call; negative if that would have been cheaper.

    `left_out_tokens` are `raw_tokens` minus `sent_tokens`. Costs are None if no price is known.
    """

    raw_tokens: int
    sent_tokens: int
    left_out_tokens: int
    priced_calls: int
    cost_usd: float | None
    raw_cost_usd: float | None
    saved_usd: float | None


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """Sums over the sessions whose calls are known. Costs cover the `priced_calls`."""

    sessions: int
    calls: int
    gateway_calls: int
    sent_tokens: int
    raw_tokens: int
    priced_calls: int
    cost_usd: float
    raw_cost_usd: float

    @property
    def left_out_tokens(self) -> int:
        """Tokens that sending every message would have added; negative if that would have been fewer."""
        return self.raw_tokens - self.sent_tokens

    @property
    def saved_usd(self) -> float | None:
        """Dollars that sending every message would have added; None if no price is known."""
        return self.raw_cost_usd - self.cost_usd if self.priced_calls else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSums:
    """Sums over calls, as they are shown. `left_out_tokens` are `raw_tokens` minus `sent_tokens`.

    Costs cover the `priced_calls`, and are None if there are none.
    """

    calls: int
    gateway_calls: int
    sent_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    output_tokens: int
    raw_tokens: int
    left_out_tokens: int
    priced_calls: int
    cost_usd: float | None
    raw_cost_usd: float | None
    saved_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientUsage(UsageSums):
    """The usage of a client's sessions."""

    client: str
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUsage(UsageSums):
    """The usage of a session; `model` is that of its last call."""

    session_id: str
    client: str
    external_id: str
    project: str | None
    model: str | None
    last_at: datetime


@dataclass(frozen=True, slots=True)
class LastCall:
    """The last call of a session."""

    at: datetime
    model: str | None
    input_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The total use of a session's calls, whether its prefix stays cached, and the savings.

    `gateway_calls` passed through the gateway; the client reported the others. `cache_hit_share` (0 to 1) is the cached
    share of the sent tokens; None if nothing was sent. `prefix_lost` calls read nothing from it although pack and model
    were those of the call before.
    """

    calls: int
    gateway_calls: int
    input_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int
    cache_hit_share: float | None
    prefix_lost: int
    last: LastCall
    savings: Savings


def report_of(usage: Usage) -> UsageReport:
    """Return the report on the calls of a session."""
    return UsageReport(
        calls=usage.calls,
        gateway_calls=usage.gateway_calls,
        input_tokens=usage.input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
        cache_hit_share=usage.cache_read_tokens / usage.sent_tokens if usage.sent_tokens else None,
        prefix_lost=usage.prefix_lost,
        last=LastCall(
            usage.last_at,
            usage.last_model,
            usage.last_input_tokens,
            usage.last_cache_write_tokens,
            usage.last_cache_read_tokens,
            usage.last_output_tokens,
        ),
        savings=_savings(usage),
    )


def _savings(usage: Usage) -> Savings:
    priced = usage.priced_calls > 0
    return Savings(
        raw_tokens=usage.raw_tokens,
        sent_tokens=usage.sent_tokens,
        left_out_tokens=usage.raw_tokens - usage.sent_tokens,
        priced_calls=usage.priced_calls,
        cost_usd=usage.cost_usd if priced else None,
        raw_cost_usd=usage.raw_cost_usd if priced else None,
        saved_usd=usage.raw_cost_usd - usage.cost_usd if priced else None,
    )
