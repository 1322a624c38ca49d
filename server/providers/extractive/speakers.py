"""Finds who speaks in a conversation of people: by the names before the messages, or by what an assistant tells."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.text import labels
from esker.server.providers.extractive import cues

_WORD = r"[^\W\d_a-zß-ÿ][^\s:\]：*()]{1,30}"
_NAME = rf"({_WORD}(?: {_WORD}){{0,2}})"
# "(2:30 pm)", "[14:05]"
_CLOCK = r"[(\[]\d{1,2}[:.]\d{2}(?::\d{2})?(?:\s?[ap]\.?m\.?)?[)\]]"
_NAMED = re.compile(
    rf"^\s*(?:{_CLOCK}\s*)?(?:\[{_NAME}\](?:\s?[:：])?\s+"
    rf"|(?:\*\*)?{_NAME}(?:\*\*)?(?:\s?{_CLOCK})?\s?(?::(?:\*\*)?\s+|：\s*))(?=\S)"
)
# Share of the spoken messages that must begin with a name: "Note:" and "Error:" begin a few. Fewer are enough for names
# that return in a conversation without tools.
_MOST, _SOME = 0.8, 0.3
_FEWEST = 2
# Minimum statements of an assistant about a life of its own, and the share of its messages that contain one. Lower
# values take a language model that plays a part for a person.
_FEWEST_LIVED, _LIVED = 2, 0.2
# Maximum characters of an assistant's message on average; a person who chats writes less.
_LONGEST_CHAT = 400
# Maximum share of the messages of a chat that contain a link, a list or code. A higher value takes work for a chat.
_MARKED = 0.1
_MARKUP = re.compile(
    r"```|`[^`\n]+`|^\s{0,3}#{1,6}\s|^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+\S|\|\s*-{3}|https?://\S+/\S+/\S+", re.MULTILINE
)


def speakers(messages: Sequence[StoredMessage]) -> Mapping[int, str]:
    """Return the name of each message's speaker by its number; empty if the messages name no speaker."""
    said = _said(messages)
    named = {seq: _name(found) for seq, text in said.items() if (found := _NAMED.match(text))}
    if len(named) >= max(_FEWEST, _MOST * len(said)):
        return _with_unnamed(messages, named)
    return_often = bool(named) and min(Counter(named.values()).values()) >= _FEWEST
    if return_often and len(named) >= _SOME * len(said) and not is_work(messages):
        return _with_unnamed(messages, named)
    return {}


def people(messages: Sequence[StoredMessage], named: Mapping[int, str], *, is_known: bool) -> Mapping[int, str]:
    """Return who speaks in each message of a chat of people by its number; empty for work with an assistant.

    `named` are the names of speakers, `is_known`: earlier rows call the assistant a person.
    """
    said = _said(messages)
    if not said or is_work(messages):
        return {}
    parties = {message.seq: message.role for message in messages if message.seq in said}
    answers = [seq for seq, role in parties.items() if role == "assistant"]
    if is_known or _is_person([said[seq] for seq in answers]):
        unnamed = {seq: labels.OTHER if role == "assistant" else labels.USER for seq, role in parties.items()}
        return {**unnamed, **named}
    return named if all(seq in named for seq in answers) else {}


def is_work(messages: Sequence[StoredMessage]) -> bool:
    """Whether a conversation is about work with an assistant: it has calls of tools, or much code and markup."""
    calls = any(
        message.role not in ("user", "assistant")
        or any(block.get("type") in ("tool_use", "tool_result") for block in message.content)
        for message in messages
    )
    said = _said(messages)
    return calls or sum(bool(_MARKUP.search(text)) for text in said.values()) > _MARKED * len(said)


def without_speaker(text: str, speaker: str | None) -> str:
    """Return the words of a message without the name of its speaker."""
    found = _NAMED.match(text) if speaker else None
    return text[found.end() :] if found and _name(found) == speaker else text


def _said(messages: Sequence[StoredMessage]) -> dict[int, str]:
    texts = {message.seq: spoken(message.content) for message in messages if message.role in ("user", "assistant")}
    return {seq: text for seq, text in texts.items() if text}


def _name(found: re.Match[str]) -> str:
    return found[1] or found[2]


def _with_unnamed(messages: Sequence[StoredMessage], named: Mapping[int, str]) -> Mapping[int, str]:
    """Return names also for messages without one, if the roles have a name each that no other role has."""
    by_role = {
        role: {named[each.seq] for each in messages if each.role == role and each.seq in named}
        for role in ("user", "assistant")
    }
    if any(len(names) > 1 for names in by_role.values()) or by_role["user"] & by_role["assistant"]:
        return named
    return {
        **{each.seq: name for each in messages for name in by_role.get(each.role, ()) if spoken(each.content)},
        **named,
    }


def _is_person(said: Sequence[str]) -> bool:
    """Whether the words of an assistant are those of a person: it tells of its own life and never offers help."""
    if not said or sum(map(len, said)) > _LONGEST_CHAT * len(said) or any(cues.SERVES.search(text) for text in said):
        return False
    lived = sum(bool(cues.LIVED.search(text)) for text in said)
    return lived >= max(_FEWEST_LIVED, _LIVED * len(said))
