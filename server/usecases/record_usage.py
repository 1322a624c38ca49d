"""Record the tokens that a call of a client's model used, as the client reports them or the gateway reads them."""

from dataclasses import dataclass

from esker.server.core.context.usage import ModelCall, RequestChange, Usage, UsageReport, report_of, with_call
from esker.server.core.records import TokenUse
from esker.server.core.redaction import redact_name
from esker.server.store import sessions, usage
from esker.server.usecases.parts import Parts

_EVENT = "usage"


@dataclass(frozen=True, slots=True)
class UsageRequest:
    """The usage of one model call. With the provider's `request_id`, the call is counted once.

    `change` is what the gateway changed in the request; None for a call that a client reports.
    """

    used: TokenUse
    model: str | None = None
    request_id: str | None = None
    change: RequestChange | None = None


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """The usage of the session so far. `repeated`: this call was reported before and is not counted again."""

    repeated: bool
    usage: UsageReport


async def record_usage(parts: Parts, pool_id: str, session_id: str, asked: UsageRequest) -> UsageAnswer:
    """Count a call. Raises NotFound."""
    now = parts.clock()
    model = redact_name(asked.model) if asked.model else None
    price = parts.settings.price(model) if model else None
    async with parts.database.tenant(pool_id) as connection:
        session = await sessions.lock(connection, session_id)
        before = await usage.get(connection, session_id)
        key = redact_name(asked.request_id) if asked.request_id else None
        if key and not await sessions.add_event(connection, session_id, key, _EVENT, now) and before:
            return UsageAnswer(True, report_of(before))
        raw_tokens = asked.change.raw_tokens(asked.used) if asked.change else session.total_tokens
        call = ModelCall(asked.used, now, model, raw_tokens, session.pack_version, asked.change)
        after = with_call(before, call, price)
        await usage.put(connection, session_id, after)
        parts.instruments.client_call(asked.used)
        if asked.change:
            _count(parts, session.client, asked.used, before, after)
        return UsageAnswer(False, report_of(after))


def _count(parts: Parts, client: str, used: TokenUse, before: Usage | None, after: Usage) -> None:
    """Count a call of the gateway in the metrics."""
    parts.instruments.gateway_call(
        client,
        used,
        raw_tokens=after.raw_tokens - (before.raw_tokens if before else 0),
        cost_usd=after.cost_usd - (before.cost_usd if before else 0.0),
        raw_cost_usd=after.raw_cost_usd - (before.raw_cost_usd if before else 0.0),
    )
