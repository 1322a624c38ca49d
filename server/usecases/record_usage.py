"""Record the tokens that a call of a client's model used, as the client reports them."""

from dataclasses import dataclass

from esker.server.core.context.usage import ModelCall, UsageReport, report_of, with_call
from esker.server.core.records import TokenUse
from esker.server.core.redaction import redact_name
from esker.server.store import sessions, usage
from esker.server.usecases.parts import Parts

_EVENT = "usage"


@dataclass(frozen=True, slots=True)
class UsageRequest:
    """The usage of one model call. With the provider's `request_id`, the call is counted once."""

    used: TokenUse
    model: str | None = None
    request_id: str | None = None


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
        call = ModelCall(asked.used, now, model, session.total_tokens, session.pack_version)
        after = with_call(before, call, price)
        await usage.put(connection, session_id, after)
        parts.instruments.client_call(asked.used)
        return UsageAnswer(False, report_of(after))
