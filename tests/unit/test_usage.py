"""Usage of an agent's own calls: whether the prefix stays cached, and the savings at the provider's prices."""

from datetime import timedelta

import pytest

from esker.server.core.config.prices import Price
from esker.server.core.context.usage import UNCHANGED, ModelCall, RequestChange, Usage, report_of, with_call
from esker.server.core.records import TokenUse
from tests.support.records import NOON

PRICE = Price(10, 50)
MILLION = 1_000_000


def reported(*calls: ModelCall, price: Price | None = PRICE) -> Usage:
    """Return the usage after some calls."""
    usage: Usage | None = None
    for call in calls:
        usage = with_call(usage, call, price)
    assert usage is not None
    return usage


def call(
    fresh: int, written: int, read: int, *, raw: int = 0, minute: float = 0, pack: int = 1, model: str | None = "m"
) -> ModelCall:
    """Return a call without output tokens."""
    used = TokenUse(input_tokens=fresh, cache_write_tokens=written, cache_read_tokens=read)
    return ModelCall(used, NOON + timedelta(minutes=minute), model, raw, pack)


def test_the_cached_share_is_relative_to_all_input_tokens() -> None:
    report = report_of(reported(call(100, 300, 0), call(100, 0, 500)))
    assert report.cache_hit_share == pytest.approx(500 / 1_000)
    assert (report.calls, report.input_tokens, report.cache_write_tokens, report.cache_read_tokens) == (
        2,
        200,
        300,
        500,
    )
    assert report.last.cache_read_tokens == 500
    assert report_of(reported(call(0, 0, 0))).cache_hit_share is None


@pytest.mark.parametrize(
    ("second", "lost"),
    [
        (call(10, 0, 300), 0),
        (call(310, 0, 0), 1),
        (call(10, 300, 0), 1),
        (call(10, 300, 0, pack=2), 0),
        (call(10, 300, 0, model="another"), 0),
        (call(10, 300, 0, model=None), 1),
    ],
)
def test_a_prefix_is_lost_if_pack_and_model_are_unchanged_and_nothing_was_read_from_cache(
    second: ModelCall, lost: int
) -> None:
    assert reported(call(10, 300, 0), second).prefix_lost == lost
    assert reported(second).prefix_lost == 0, "the first call has nothing to read"


def test_a_session_without_a_pack_has_no_prefix_to_lose() -> None:
    assert reported(call(10, 0, 0, pack=0), call(10, 0, 0, pack=0)).prefix_lost == 0


def test_saved_tokens_are_the_raw_history_minus_the_input_and_may_be_negative() -> None:
    saved = report_of(reported(call(100, 0, 0, raw=40), call(100, 50, 50, raw=1_000))).savings
    assert (saved.raw_tokens, saved.sent_tokens, saved.left_out_tokens) == (1_040, 300, 740)
    assert report_of(reported(call(100, 0, 0, raw=40))).savings.left_out_tokens == -60


def test_savings_are_relative_to_an_ideally_cached_raw_history() -> None:
    first, second = call(MILLION, 0, 0, raw=2 * MILLION), call(0, 0, MILLION, raw=3 * MILLION, minute=5)
    saved = report_of(reported(first, second)).savings
    # Sent: a million tokens as they are, then a million from the cache at a tenth.
    assert saved.cost_usd == pytest.approx(10 + 1)
    # Raw: two million written at 1.25, then those read at a tenth and one more million written.
    assert saved.raw_cost_usd == pytest.approx(25 + 2 + 12.5)
    assert saved.saved_usd == pytest.approx(25 + 2 + 12.5 - 11)


def test_after_five_minutes_or_with_another_model_the_raw_history_is_written_to_cache_again() -> None:
    first = call(0, 0, 0, raw=MILLION)
    for second in (call(0, 0, 0, raw=MILLION, minute=5.1), call(0, 0, 0, raw=MILLION, model="another")):
        assert reported(first, second).raw_cost_usd == pytest.approx(12.5 + 12.5)
    assert reported(first, call(0, 0, 0, raw=MILLION, minute=4.9)).raw_cost_usd == pytest.approx(12.5 + 1)


def test_a_shrunk_raw_history_is_read_from_the_cache_and_writes_nothing() -> None:
    first, second = call(0, 0, 0, raw=2 * MILLION), call(0, 0, 0, raw=MILLION)
    assert reported(first, second).raw_cost_usd == pytest.approx(25 + 1)


def test_output_tokens_cost_the_same_with_and_without_memory() -> None:
    written = ModelCall(TokenUse(output_tokens=MILLION), NOON, "m", 0, 1)
    assert report_of(reported(written)).savings.saved_usd == pytest.approx(0)
    assert reported(written).cost_usd == pytest.approx(50)


def test_without_a_price_savings_are_unknown() -> None:
    saved = report_of(reported(call(1, 2, 3, raw=100), price=None)).savings
    assert (saved.priced_calls, saved.cost_usd, saved.raw_cost_usd, saved.saved_usd) == (0, None, None, None)
    assert saved.left_out_tokens == 94


# Requests of the gateway ---------------------------------------------------------------------------------------------


def through_gateway(fresh: int, written: int, read: int, change: RequestChange) -> ModelCall:
    """Return a call that passed through the gateway, without output tokens."""
    used = TokenUse(input_tokens=fresh, cache_write_tokens=written, cache_read_tokens=read)
    return ModelCall(used, NOON, "m", change.raw_tokens(used), 1, change)


def test_a_request_that_the_gateway_did_not_change_saved_nothing_however_it_was_cached() -> None:
    report = report_of(reported(*(through_gateway(MILLION, 0, 0, UNCHANGED) for _ in range(3))))
    saved = report.savings
    assert (report.gateway_calls, saved.sent_tokens, saved.raw_tokens) == (3, 3 * MILLION, 3 * MILLION)
    assert (saved.cost_usd, saved.saved_usd) == (pytest.approx(30), 0)


def test_the_raw_history_of_a_changed_request_has_what_was_left_out_and_no_pack() -> None:
    change = RequestChange(omitted_tokens=3 * MILLION, pack_tokens=MILLION)
    first = through_gateway(0, 2 * MILLION, 0, change)
    saved = report_of(reported(first, through_gateway(0, 0, 2 * MILLION, change))).savings
    assert (saved.raw_tokens, saved.left_out_tokens) == (8 * MILLION, 4 * MILLION)
    # Written and read alike, once with two and once with four million tokens.
    assert (saved.cost_usd, saved.raw_cost_usd) == (pytest.approx(25 + 2), pytest.approx(50 + 4))
    larger = RequestChange(pack_tokens=9 * MILLION)
    assert larger.raw_tokens(TokenUse(input_tokens=MILLION)) == 0


def test_where_a_provider_writes_its_cache_for_nothing_the_raw_history_does_not_pay_for_it() -> None:
    change = RequestChange(omitted_tokens=MILLION)
    assert reported(through_gateway(MILLION, 0, 0, change)).raw_cost_usd == pytest.approx(20)
    assert reported(through_gateway(0, MILLION, 0, change)).raw_cost_usd == pytest.approx(25)


def test_calls_of_the_gateway_and_those_that_a_client_reports_are_told_apart() -> None:
    report = report_of(reported(through_gateway(1, 0, 0, UNCHANGED), call(1, 0, 0)))
    assert (report.calls, report.gateway_calls) == (2, 1)
