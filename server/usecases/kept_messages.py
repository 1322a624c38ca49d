"""Messages that the gateway has kept under its own ids, by which those are known that a transcript brings again."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from esker.server.core.conversation.injected import strip_injected
from esker.server.core.conversation.records import Block, Role
from esker.server.core.ids import GATEWAY_IDS
from esker.server.db.pipeline import send
from esker.server.store import messages
from esker.server.usecases.parts import Parts

UNSAID = ("thinking", "redacted_thinking")
"""The types of blocks that are not said to anybody, and that clients leave out of later requests."""


class KeptMessage(NamedTuple):
    """A message of the gateway; `content` is None if it has calls or results, by whose ids it is known."""

    external_id: str
    role: Role
    content: Sequence[Block] | None


async def kept_contents(parts: Parts, pool_id: str, session_id: str) -> Counter[str]:
    """Return how often each call, result and text occurs in the messages that the gateway has kept of a session."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked = await send(connection, messages.contents(session_id, GATEWAY_IDS))
    return Counter(key for blocks in await asked for key in _keys(blocks))


async def kept_messages(parts: Parts, pool_id: str, session_id: str) -> list[KeptMessage]:
    """Return the messages that the gateway has kept of a session, in their order."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked = await send(connection, messages.words(session_id, GATEWAY_IDS))
    return [KeptMessage(*row) for row in await asked]


def is_kept(blocks: Sequence[Block], kept: Counter[str]) -> bool:
    """Return whether all of a message was kept, and take it out of `kept`: a client may write one message as several.

    A message in which nothing was said counts as kept.
    """
    keys = Counter(_keys(blocks))
    if any(kept[key] < count for key, count in keys.items()):
        return False
    kept.subtract(keys)
    return True


def _keys(blocks: Iterable[Block]) -> list[str]:
    return list(filter(None, map(_key, blocks)))


def _key(block: Block) -> str | None:
    match block:
        case {"type": "tool_use", "id": str(call)} if call:
            return f"call {call}"
        case {"type": "tool_result", "tool_use_id": str(call)} if call:
            return f"result {call}"
        case {"type": "text", "text": str(text)}:
            return strip_injected(text) or None
        case _ if block.get("type") in UNSAID:
            return None
        case _:
            return hash_of(block)


def hash_of(block: Block) -> str:
    """Return a hash of a block, without the cache marks that clients move."""
    bare = {name: value for name, value in block.items() if name != "cache_control"}
    return hashlib.sha256(json.dumps(bare, sort_keys=True).encode()).hexdigest()
