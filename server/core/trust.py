"""Whose words something is, and how far that is to be trusted."""

from collections.abc import Iterable, Mapping, Sequence

from server.core.blocks import is_result_only, result_ids
from server.core.records import Block, Role, Trust

_LOWEST_FIRST: tuple[Trust, ...] = ("external", "tool", "assistant", "user")
# What these tools return was written by strangers.
_EXTERNAL_TOOLS = ("webfetch", "websearch", "web_fetch", "web_search", "fetch", "browser", "firecrawl", "tavily")


def message_trust(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> Trust:
    """Return whose words a message is: a tool result is its tool's, however the client labels the message.

    `names` gives the tool names by call id.
    """
    if role == "tool" or is_result_only(blocks):
        external = any(is_external_tool(names.get(call, "")) for call in result_ids(blocks))
        return "external" if external else "tool"
    return "external" if role == "system" else role


def is_external_tool(name: str) -> bool:
    """Tell whether a tool brings text from outside the user's machine."""
    return any(part in name.lower() for part in _EXTERNAL_TOOLS)


def lowest_trust(trusts: Iterable[Trust]) -> Trust:
    """Return the lowest of some trusts: what is drawn from several sources is worth no more than the least of them."""
    ranks = {trust: rank for rank, trust in enumerate(_LOWEST_FIRST)}
    return _LOWEST_FIRST[min(ranks[trust] for trust in trusts)]
