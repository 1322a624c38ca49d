"""Keep the calls of `recall_memory` that clients of the gateway have not seen, and find them for later requests."""

import asyncio
import json
from collections.abc import Collection, Sequence

from esker.server.core.conversation.hidden_calls import EarlierCalls, HiddenCalls
from esker.server.core.redaction import redact_json
from esker.server.db.pipeline import send
from esker.server.store import hidden_calls, packs, sessions
from esker.server.usecases.parts import Parts


async def keep_hidden_calls(parts: Parts, pool_id: str, session_id: str, hidden: HiddenCalls) -> bool:
    """Store hidden calls; return False for those that must not be sent again. Raises NotFound, Unavailable.

    These are calls with a secret, which is never stored, and all whose request came before a forgetting, or that show
    what is gone since.
    """
    if not await asyncio.to_thread(_is_clean, hidden.items):
        return False
    async with parts.database.tenant(pool_id) as connection:
        await sessions.lock(connection, session_id)
        await packs.lock_to_freeze(connection)
        return await hidden_calls.put(connection, session_id, hidden, parts.clock())


async def hidden_calls_at(parts: Parts, pool_id: str, places: Collection[str]) -> EarlierCalls:
    """Return the items at those of these places that have some. Raises Unavailable."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        forgetting = await send(connection, hidden_calls.latest_forgetting())
        found = await send(connection, hidden_calls.at_places(places))
    return EarlierCalls(await found, await forgetting)


def _is_clean(items: Sequence[str]) -> bool:
    """Return whether there is no secret in some items. One that was masked would not fit the signature of a thought."""
    read = [json.loads(item) for item in items]
    return redact_json(read) == read
