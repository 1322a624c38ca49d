"""The trust of a message, by its author and by the tools whose results it contains."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import Block, Role
from esker.server.core.records import Trust

_LOWEST_FIRST: tuple[Trust, ...] = ("external", "tool", "assistant", "user")
# Parts of the names of tools that return text from outside the user's machine.
_EXTERNAL_TOOLS = ("webfetch", "websearch", "web_fetch", "web_search", "fetch", "browser", "firecrawl", "tavily")


def message_trust(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> Trust:
    """Return the trust of a message's author; of several authors, the least trusted.

    The author of a tool result is its tool, whatever role the client gave the message. `names` maps call ids to tools.
    """
    return lowest_trust([*_trusts(role, blocks, names)] or [_of_role(role)])


def _trusts(role: Role, blocks: Sequence[Block], names: Mapping[str, str]) -> Iterator[Trust]:
    for block in blocks:
        if block.get("type") == "tool_result":
            yield "external" if is_external_tool(names.get(str(block.get("tool_use_id")), "")) else "tool"
        elif block.get("type") != "text" or spoken([block]):
            yield _of_role(role)


def _of_role(role: Role) -> Trust:
    return "external" if role == "system" else role


def is_external_tool(name: str) -> bool:
    """Whether a tool returns text from outside the user's machine."""
    return any(part in name.lower() for part in _EXTERNAL_TOOLS)


def lowest_trust(trusts: Iterable[Trust]) -> Trust:
    """Return the lowest of some trusts: a conclusion is worth no more than its least trusted source."""
    ranks = {trust: rank for rank, trust in enumerate(_LOWEST_FIRST)}
    return _LOWEST_FIRST[min(ranks[trust] for trust in trusts)]


def highest_trust(trusts: Iterable[Trust]) -> Trust:
    """Return the highest of some trusts."""
    return max(trusts, key=_LOWEST_FIRST.index)


def at_least_as_trusted(one: Trust, other: Trust) -> bool:
    """Whether `one` is trusted at least as much as `other`."""
    return _LOWEST_FIRST.index(one) >= _LOWEST_FIRST.index(other)
