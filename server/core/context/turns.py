"""Converts stored messages for the Messages API: repairs whatever the API would refuse, and loses nothing said.

The API requires that the user comes first and roles alternate; that no content is blank and no block has unknown
fields; that every tool call has a unique id and its result comes first in the next message; and that no result is
without its call. Transcripts have gaps, repeats, stray results, and block types of other programs.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.conversation.records import Block, Role, StoredMessage
from esker.server.core.json_input import Json

Speaker = Literal["user", "assistant"]

OPENING = "[The conversation goes on here.]"
"""Sent as the user's first message if the first message sent is the assistant's."""
_UNANSWERED = "[No result was kept.]"

_ID = re.compile(r"[A-Za-z0-9_-]+")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_THINKING = ("thinking", "redacted_thinking")
_MASK = "[redacted:"
_LABELS: Mapping[Role, str] = {"system": "system", "tool": "toolResult"}


@dataclass(frozen=True, slots=True)
class MessagePart:
    """The content of one stored message for the API.

    `blocks` are its blocks without tool results; `calls` are the ids of the tool calls among them, `answers` those of
    the calls that it answers. `reach` is the index of the first message that must be sent with it: its own, or that of
    the earliest call that it answers. `tokens` count its blocks, its results, and placeholders for missing results.
    """

    speaker: Speaker
    blocks: Sequence[Block]
    calls: Sequence[str]
    answers: Sequence[str]
    reach: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Talk:
    """The parts of consecutive messages, and the result of each call; `pending` calls have a placeholder."""

    parts: Sequence[MessagePart]
    answers: Mapping[str, Block]
    pending: Collection[str]


def parts_of(messages: Sequence[StoredMessage], told: Collection[str] = ()) -> Talk:
    """Return the parts of messages; that of a system message whose text is in `told`, sent elsewhere, is empty."""
    calls = _calls(messages)
    answered = _answered(messages, calls)
    by_place = {place: call for call, place in answered.items()}
    answers = {call: _answer(messages[at].content[place], call) for call, (at, place) in answered.items()}
    pending = calls.keys() - answers.keys()
    answers |= {call: _stand_in(call) for call in pending}
    called = {place: call for call, place in calls.items()}
    parts: list[MessagePart] = []
    for at, message in enumerate(messages):
        places = range(len(message.content))
        own = [called[at, place] for place in places if (at, place) in called]
        given = [by_place[at, place] for place in places if (at, place) in by_place]
        elsewhere = message.role == "system" and _text(message.content) in told
        said = [] if elsewhere else [*_blocks_without_results(message, at, called, by_place)]
        costly = [*said, *(answers[call] for call in given), *(answers[call] for call in own if call in pending)]
        reach = min((calls[call][0] for call in given), default=at)
        parts.append(
            MessagePart(_speaker(message.role), said, own, given, reach, content_tokens(costly) if costly else 0)
        )
    return Talk(parts, answers, pending)


BlockPosition = tuple[int, int]
"""The index of a message, and the index of a block in it."""


def _calls(messages: Sequence[StoredMessage]) -> dict[str, BlockPosition]:
    """Return the position of each call that the API accepts; a repeated id is not a second call."""
    found: dict[str, BlockPosition] = {}
    for at, message in enumerate(messages):
        for place, block in enumerate(message.content):
            if message.role == "assistant" and _is_call(block):
                found.setdefault(str(block["id"]), (at, place))
    return found


def _is_call(block: Block) -> bool:
    match block:
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict()}:
            return bool(_ID.fullmatch(call) and _NAME.fullmatch(name))
        case _:
            return False


def _answered(messages: Sequence[StoredMessage], calls: Mapping[str, BlockPosition]) -> dict[str, BlockPosition]:
    """Return the position of the result of each call: the first one after the call."""
    found: dict[str, BlockPosition] = {}
    for at, message in enumerate(messages):
        for place, block in enumerate(message.content):
            call = str(block.get("tool_use_id"))
            if block.get("type") == "tool_result" and call in calls and calls[call] < (at, place):
                found.setdefault(call, (at, place))
    return found


def _answer(block: Block, call: str) -> Block:
    answer: Block = {"type": "tool_result", "tool_use_id": call}
    content = block.get("content")
    if isinstance(content, str) and content.strip():
        answer["content"] = content
    elif isinstance(content, list):
        inner = [said for part in content if isinstance(part, dict) for said in _plain(part, "user")]
        answer |= {"content": [*inner]} if inner else {}
    return answer | ({"is_error": True} if block.get("is_error") is True else {})


def _stand_in(call: str) -> Block:
    return {"type": "tool_result", "tool_use_id": call, "content": _UNANSWERED, "is_error": True}


def _speaker(role: Role) -> Speaker:
    return "assistant" if role == "assistant" else "user"


def _text(blocks: Sequence[Block]) -> str:
    return "\n".join(str(block.get("text")) for block in blocks if block.get("type") == "text").strip()


def _blocks_without_results(
    message: StoredMessage, at: int, called: Collection[BlockPosition], answers: Collection[BlockPosition]
) -> Iterator[Block]:
    for place, block in enumerate(message.content):
        if (at, place) in called:
            yield {"type": "tool_use", "id": block["id"], "name": block["name"], "input": block["input"]}
        elif (at, place) not in answers:
            yield from _plain(_labelled(block, message.role), _speaker(message.role))


def _labelled(block: Block, role: Role) -> Block:
    """Label a text with its role if the API has no such role."""
    match block:
        case {"type": "text", "text": str(text)} if role in _LABELS and text.strip():
            return _words(f"[{_LABELS[role]}: {text}]")
        case _:
            return block


def _plain(block: Block, speaker: Speaker) -> Iterator[Block]:
    """Yield a block other than a call or its result as the API accepts it, or as text if the API would refuse it."""
    match block:
        case {"type": "thinking" | "redacted_thinking"}:
            yield from _thought(block, speaker)
        case {"type": "image" | "document" as kind}:
            yield (_source(block) if speaker == "user" else None) or _words(f"[{kind}]")
        case {"type": "tool_use", "name": str(name)}:
            yield _words(f"[toolCall {name}({json.dumps(block.get('input', {}), ensure_ascii=False)})]")
        case {"type": "tool_result"}:
            yield from _stray(block, speaker)
        case {"text": str(text)}:
            if text.strip():
                yield _words(text)
        case _:
            yield _words(f"[{block.get('type')}]")


def _words(text: str) -> Block:
    return {"type": "text", "text": text}


def _thought(block: Block, speaker: Speaker) -> Iterator[Block]:
    """Yield a thought with a signature, by which its model accepts it. Others are dropped: they were never said."""
    match block:
        case {"type": "thinking", "thinking": str(text), "signature": str(sign)} if sign and _MASK not in text:
            thought: Block = {"type": "thinking", "thinking": text, "signature": sign}
        case {"type": "redacted_thinking", "data": str(data)} if data and _MASK not in data:
            thought = {"type": "redacted_thinking", "data": data}
        case _:
            return
    if speaker == "assistant":
        yield thought


def _source(block: Block) -> Block | None:
    """Return an image or a document if the API accepts its source."""
    source: Json = block.get("source")
    kind = block["type"]
    match source:
        case {"type": "base64", "media_type": str(media), "data": str(data)} if data and _MASK not in data:
            fits = media in _PICTURES if kind == "image" else media == "application/pdf"
            return {"type": kind, "source": {"type": "base64", "media_type": media, "data": data}} if fits else None
        case {"type": "url", "url": str(url)} if url.startswith("https://"):
            return {"type": kind, "source": {"type": "url", "url": url}}
        case {"type": "text", "media_type": "text/plain", "data": str(data)} if kind == "document" and data.strip():
            return {"type": kind, "source": {"type": "text", "media_type": "text/plain", "data": data}}
        case _:
            return None


def _stray(block: Block, speaker: Speaker) -> Iterator[Block]:
    """Yield a result without a call as text; its images stay images."""
    content = block.get("content")
    parts: Json = [_words(content)] if isinstance(content, str) else content
    inner = parts if isinstance(parts, list) else []
    plain = [said for part in inner if isinstance(part, dict) for said in _plain(part, speaker)]
    yield _words(f"[toolResult: {_text(plain)}]")
    yield from (said for said in plain if said["type"] != "text")


@dataclass(slots=True)
class _ApiTurn:
    speaker: Speaker
    blocks: list[Block]
    calls: list[str] = field(default_factory=list[str])


def turns(parts: Sequence[MessagePart], answers: Mapping[str, Block]) -> list[Block]:
    """Return messages for the API from parts that answer no call before the first of them."""
    found: list[_ApiTurn] = []
    for part in parts:
        if part.speaker == "user":
            _answer_calls(found, answers)
        if not part.blocks:
            continue
        if not found or found[-1].speaker != part.speaker:
            found.append(_ApiTurn(part.speaker, []))
        found[-1].blocks += part.blocks
        found[-1].calls += part.calls
    _answer_calls(found, answers)
    return [{"role": turn.speaker, "content": [*turn.blocks]} for turn in _in_turn(found)]


def _answer_calls(found: list[_ApiTurn], answers: Mapping[str, Block]) -> None:
    """Add a user turn with the results of the calls that the assistant has just made."""
    if found and found[-1].calls:
        found.append(_ApiTurn("user", [answers[call] for call in found[-1].calls]))


def _in_turn(found: Sequence[_ApiTurn]) -> list[_ApiTurn]:
    """Return turns that begin with the user and alternate; none is empty or ends in a thought."""
    kept: list[_ApiTurn] = []
    for turn in found:
        blocks = turn.blocks
        while blocks and blocks[-1]["type"] in _THINKING:
            blocks = blocks[:-1]
        if not blocks:
            continue
        if not kept and turn.speaker == "assistant":
            kept.append(_ApiTurn("user", [_words(OPENING)]))
        if kept and kept[-1].speaker == turn.speaker:
            kept[-1].blocks += blocks
        else:
            kept.append(_ApiTurn(turn.speaker, [*blocks]))
    if kept and kept[-1].speaker == "assistant" and isinstance(text := kept[-1].blocks[-1].get("text"), str):
        # The API refuses a final assistant message that ends in white space.
        kept[-1].blocks[-1] = _words(text.rstrip())
    return kept
