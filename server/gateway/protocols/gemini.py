"""Google's Gemini API: `POST /v1beta/models/MODEL:generateContent` and `:streamGenerateContent`."""

import hashlib
import json
from collections.abc import Iterable, Iterator

from esker.server.agents.content import (
    Block,
    as_list,
    as_text,
    call_block,
    image_block,
    joined,
    result_block,
    text_block,
)
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.core.records import TokenUse
from esker.server.gateway.counts import count_of
from esker.server.gateway.json_spans import Span, members, replaced, with_item, with_member
from esker.server.gateway.records import Conversation, Event, ModelAnswer, Protocol, Turn

_CACHED = ("cachedContent", "cached_content")


def read_request(document: JsonObject) -> Conversation:
    """Return the conversation of a request; its model is in the address."""
    instruction = document.get("systemInstruction") or document.get("system_instruction")
    turns = _turns(as_list(document.get("contents")))
    first = joined(as_object(next(iter(as_list(document.get("contents"))), None)).get("parts"))
    return Conversation(
        None, turns, bool(as_list(document.get("tools"))), [joined(as_object(instruction).get("parts")), first]
    )


def with_pack(text: str, pack: str) -> str | None:
    """Return a request with the pack as the last part of its system instruction.

    One with a cached content gets none: the API refuses an instruction beside it.
    """
    found = members(text)
    if "contents" not in found or any(name in found and found[name].value for name in _CACHED):
        return None
    part: Block = {"text": pack}
    name = next((name for name in ("systemInstruction", "system_instruction") if name in found), None)
    if name is None:
        return with_member(text, 0, "systemInstruction", {"parts": [part]})
    own: Span = found[name]
    if not isinstance(own.value, dict):
        return None
    parts = members(text, own.start).get("parts")
    if parts is None:
        return with_member(text, own.start, "parts", [part])
    if isinstance(parts.value, list):
        return with_item(text, parts.start, len(parts.value), part)
    single = text[parts.start : parts.end]
    return with_item(replaced(text, parts, f"[{single}]"), parts.start, 1, part)


def read_answer(document: JsonObject) -> ModelAnswer:
    """Return the answer of a request without streaming; one with streaming may be an array of parts."""
    return _answer([document])


def read_events(events: Iterable[Event]) -> ModelAnswer:
    """Return the answer that a stream contains."""
    return _answer([data for _, data in events])


def _answer(parts: list[JsonObject]) -> ModelAnswer:
    contents: list[Json] = []
    used: JsonObject = {}
    about: JsonObject = {}
    ended = False
    for each in parts:
        about |= {name: value for name in ("responseId", "modelVersion") if (value := each.get(name))}
        used = as_object(each.get("usageMetadata")) or used
        for candidate in map(as_object, as_list(each.get("candidates"))[:1]):
            contents.append({"role": "model", "parts": as_object(candidate.get("content")).get("parts")})
            ended = ended or candidate.get("finishReason") is not None
    cached = count_of(used, "cachedContentTokenCount")
    counted = TokenUse(
        input_tokens=max(0, count_of(used, "promptTokenCount") - cached),
        output_tokens=count_of(used, "candidatesTokenCount") + count_of(used, "thoughtsTokenCount"),
        cache_read_tokens=cached,
    )
    return ModelAnswer(
        id=as_text(about.get("responseId")),
        model=as_text(about.get("modelVersion")),
        turns=_turns(contents),
        used=counted if used else None,
        whole=ended,
    )


def _turns(contents: Iterable[Json]) -> list[Turn]:
    """Return the turns of contents; a call without an id gets one from its name and arguments, as its result does."""
    turns: list[Turn] = []
    calls: dict[str, list[str]] = {}
    for item, each in enumerate(map(as_object, contents)):
        role = "assistant" if each.get("role") == "model" else "user"
        blocks = list(_blocks(as_list(each.get("parts")), calls))
        if not blocks:
            continue
        if role == "assistant" and turns and turns[-1].role == "assistant":
            turns[-1] = Turn("assistant", _joined_words([*turns[-1].content, *blocks]), turns[-1].item)
        else:
            turns.append(Turn(role, _joined_words(blocks) if role == "assistant" else blocks, item))
    return turns


def _blocks(parts: list[Json], calls: dict[str, list[str]]) -> Iterator[Block]:
    for part in map(as_object, parts):
        call, result = as_object(part.get("functionCall")), as_object(part.get("functionResponse"))
        name = str(call.get("name") or result.get("name") or "")
        data = as_object(part.get("inlineData"))
        if call:
            calls.setdefault(name, []).append(str(call.get("id") or _id_for(name, call.get("args"))))
            yield call_block(calls[name][-1], name, call.get("args"))
        elif result:
            waiting = calls.get(name) or [name]
            answer = result.get("response")
            yield result_block(str(result.get("id") or waiting.pop(0)), joined(answer) or str(answer))
        elif image := image_block(data.get("data"), data.get("mimeType")):
            yield image
        elif isinstance(text := part.get("text"), str) and text and not part.get("thought"):
            yield text_block(text)


def _id_for(name: str, given: Json) -> str:
    return f"{name}:{hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]}"


def _joined_words(blocks: list[Block]) -> list[Block]:
    """Return blocks with the pieces of a streamed text put together."""
    found: list[Block] = []
    for block in blocks:
        if block["type"] == "text" and found and found[-1]["type"] == "text":
            found[-1] = text_block(f"{found[-1]['text']}{block['text']}")
        else:
            found.append(block)
    return found


GEMINI = Protocol("gemini", "contents", read_request, with_pack, read_answer, read_events)
