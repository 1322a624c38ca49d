"""Finds who speaks in a conversation of several people, whose messages begin with the name of the speaker."""

import re
from collections.abc import Mapping, Sequence

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import Message

_NAMED = re.compile(
    r"^\s*\[?([^\W\d_a-zß-ÿ][^\s:\]：]{1,30}(?: [^\W\d_a-zß-ÿ][^\s:\]：]{1,30}){0,2})\]?\s?(?::\s+|：\s*)(?=\S)"
)
# Share of the spoken messages that must begin with a name: "Note:" and "Error:" begin a few.
_MOST = 0.8
_FEWEST = 2


def speakers(messages: Sequence[Message]) -> Mapping[int, str]:
    """Return the name of each message's speaker by its number; empty if the messages name nobody."""
    texts = {message.seq: spoken(message.content) for message in messages if message.role in ("user", "assistant")}
    said = {seq: text for seq, text in texts.items() if text}
    named = {seq: found[1] for seq, text in said.items() if (found := _NAMED.match(text))}
    if len(named) < _FEWEST or len(named) < _MOST * len(said):
        return {}
    return named


def without_speaker(text: str, speaker: str | None) -> str:
    """Return the words of a message without the name of its speaker."""
    found = _NAMED.match(text) if speaker else None
    return text[found.end() :] if found else text
