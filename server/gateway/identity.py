"""Ids of turns, by which a turn that a client sends again with every request is stored once.

A turn with tool calls or results is known by their ids, which providers make unique. A turn of words is known by its
words and those before it, so that a "yes" later in the conversation is another one, and so that a history which the
client has compacted keeps the ids of the turns that it left. Cache marks, thoughts and injected context do not count:
clients move, drop and change them from one request to the next.

Results and texts that one message of the user has are turns of their own: after an answer that was interrupted, clients
put the next prompt into the message that has been sent already.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from esker.server.agents.content import Block
from esker.server.core.conversation.injected import strip_injected
from esker.server.core.conversation.records import Role
from esker.server.core.ids import GATEWAY_IDS
from esker.server.gateway.records import Turn
from esker.server.usecases.kept_messages import UNSAID, hash_of


@dataclass(frozen=True, slots=True)
class KnownTurn:
    """A turn with its id, a hash of it wherever it stands, and one of the conversation up to it."""

    id: str
    role: Role
    content: Sequence[Block]
    said: str
    history: str
    item: int = 0


def identified(turns: Iterable[Turn]) -> list[KnownTurn]:
    """Return the turns in which something was said, called or answered, with their ids."""
    found: list[KnownTurn] = []
    seen: Counter[str] = Counter()
    before, history = "", ""
    for turn in chain.from_iterable(map(_said_apart, turns)):
        content = [block for block in turn.content if block.get("type") not in UNSAID]
        calls = _calls(content)
        words = "" if calls else _words(content)
        if not calls and not words:
            continue
        said = _digest(turn.role, *(calls or [words]))
        placed = said if calls else _digest(said, before)
        seen[placed] += 1
        own = placed if seen[placed] == 1 else _digest(placed, str(seen[placed]))
        history = _digest(history, said)
        found.append(KnownTurn(f"{GATEWAY_IDS}{own}", turn.role, content, said, history, turn.item))
        before = said
    return found


def place_of(owner: str, history: str) -> str:
    """Return a hash of a place in the conversations of an owner: of all turns up to it."""
    return hashlib.sha256(f"{owner}\n{history}".encode()).hexdigest()


def has_calls(content: Sequence[Block]) -> bool:
    """Return whether a turn is known by the ids of its calls or results."""
    return bool(_calls(content))


def _said_apart(turn: Turn) -> list[Turn]:
    """Return the results and the texts of a turn of the user, each as a turn; images stay with the texts."""
    results = [block for block in turn.content if block["type"] == "tool_result"]
    others = [block for block in turn.content if block["type"] != "tool_result"]
    if turn.role != "user" or not others:
        return [turn]
    parts = [[block] for block in others] if all(block["type"] == "text" for block in others) else [others]
    return [replace(turn, content=part) for part in ([results] if results else []) + parts]


def _calls(content: Sequence[Block]) -> list[str]:
    """Return the ids of the calls and results of a turn, each once: a resumed session may repeat a result."""
    ids = (block.get("id") if block["type"] == "tool_use" else block.get("tool_use_id") for block in content)
    return [*dict.fromkeys(each for each in ids if isinstance(each, str) and each)]


def _words(content: Sequence[Block]) -> str:
    """Return the words of a turn, and a hash of each of its images and other blocks."""
    return "\n".join(filter(None, map(_word, content)))


def _word(block: Block) -> str:
    if block["type"] == "text":
        return strip_injected(str(block.get("text", "")))
    return hash_of(block)


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
