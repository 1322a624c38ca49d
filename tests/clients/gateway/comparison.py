"""Compares a request before the gateway with the one behind it, block by block and byte by byte.

Nothing of the gateway is used here: the rules are those of docs/gateway.md, written down a second time.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Any

from tests.clients.exchanges import Exchange, Headers

Body = dict[str, Any]
Items = list[Body]

MOST_BREAKPOINTS = 4
LEAST_TAIL = 12
# Clients mark one of so many messages at the end of a conversation.
_LAST = 4
# They concern one connection, are written anew, or are Esker's own.
_NOT_SENT_ON = frozenset(
    "connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade"
    " host content-length expect forwarded via x-real-ip".split()
)
_OURS = ("x-esker-", "x-forwarded-")
_UNREADABLE = frozenset({"br"})
_ADDRESS = re.compile(r"/gateway(?:/~[^/]*)?/[^/]+")
_INSTRUCTING = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Compared:
    """The rules that a request breaks, its pack, and how many items of its history were left out before its tail."""

    faults: list[str] = field(default_factory=list[str])
    pack: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Form:
    """A protocol: where its history and the list with the pack are, the pack's place there, and its item."""

    history: str
    list_of: Callable[[Body], Items]
    place: Callable[[Items, Body], int]
    item: Callable[[str, Items], Body]
    words: Callable[[Body], Any]


def _after_the_instructions(messages: Items) -> int:
    return len([*takewhile(lambda each: each.get("role") in _INSTRUCTING, messages)])


def _at_the_last_mark(system: Items, body: Body) -> int:
    """Return the place behind the last block with a breakpoint if the conversation has one, too, else before it."""
    marks = [place for place, block in enumerate(system) if "cache_control" in block]
    if not marks:
        return len(system)
    covers = "cache_control" in body or _breakpoints({"messages": body["messages"][-_LAST:]})
    return marks[-1] + 1 if covers else max(1, marks[-1])


def _system_item(pack: str, system: Items) -> Body:
    mark = {} if any("cache_control" in block for block in system) else {"cache_control": {"type": "ephemeral"}}
    return {"type": "text", "text": pack, **mark}


def _developer_item(pack: str, _: Items) -> Body:
    return {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": pack}]}


def _chat_item(pack: str, messages: Items) -> Body:
    place = _after_the_instructions(messages)
    return {"role": messages[place - 1]["role"] if place else "system", "content": pack}


_FORMS = {
    "/messages": _Form(
        "messages",
        lambda body: body.get("system") or [],
        _at_the_last_mark,
        _system_item,
        lambda item: item.get("text"),
    ),
    "/responses": _Form(
        "input",
        lambda body: body.get("input") or [],
        lambda _, __: 0,
        _developer_item,
        lambda item: item["content"][0].get("text") if isinstance(item.get("content"), list) else None,
    ),
    "/chat/completions": _Form(
        "messages",
        lambda body: body.get("messages") or [],
        lambda messages, _: _after_the_instructions(messages),
        _chat_item,
        lambda item: item.get("content"),
    ),
    "eneratecontent": _Form(
        "contents",
        lambda body: (body.get("systemInstruction") or {}).get("parts") or [],
        lambda parts, _: len(parts),
        lambda pack, _: {"text": pack},
        lambda item: item.get("text"),
    ),
}


def is_of_the_conversation(exchange: Exchange) -> bool:
    """Return whether a request asks a model to go on with the conversation: it then offers tools."""
    return _form(exchange) is not None and b'"tools"' in exchange.body and _offers_tools(json.loads(exchange.body))


def _offers_tools(body: Body) -> bool:
    given = body.get("input")
    items: Items = [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []  # pyright: ignore[reportUnknownVariableType]
    return any(each.get("tools") for each in (body, *items))


def _form(exchange: Exchange) -> _Form | None:
    path = exchange.path.partition("?")[0].lower()
    return next((form for end, form in _FORMS.items() if exchange.method == "POST" and path.endswith(end)), None)


def compare(mode: str, before: Exchange, after: Exchange) -> Compared:
    """Compare a request before the gateway in a mode with the one behind it."""
    faults = [*_heads(before, after), *_answers(before, after)]
    may_change = mode in ("pack", "manage") and is_of_the_conversation(before)
    form = _form(before)
    if not may_change or form is None or before.body == after.body:
        changed = [] if before.body == after.body else ["the body was changed"]
        return Compared([*faults, *changed])
    return _changed(form, before.body.decode(), after.body.decode(), faults, may_leave_out=mode == "manage")


def _heads(before: Exchange, after: Exchange) -> Iterator[str]:
    if before.method != after.method or _ADDRESS.sub("", before.path, count=1) != after.path:
        yield f"{before.method} {before.path} went on as {after.method} {after.path}"
    rewritten = before.body != after.body
    sent, arrived = _expected(before.headers, rewritten=rewritten), _expected(after.headers, rewritten=False)
    if sent != arrived:
        names = sorted({name for name, _ in set(sent) ^ set(arrived)})
        yield f"headers differ: {', '.join(names)}"


def _expected(headers: Headers, *, rewritten: bool) -> Headers:
    found: Headers = []
    for name, value in headers:
        if name in _NOT_SENT_ON or name.startswith(_OURS) or (rewritten and name == "content-encoding"):
            continue
        if name == "accept-encoding":
            value = ", ".join(sorted({each.strip() for each in value.split(",")} - _UNREADABLE))
        found.append((name, value))
    return sorted(found)


def _answers(before: Exchange, after: Exchange) -> Iterator[str]:
    """Yield what is wrong with an answer. Of one that is not whole, the client got the beginning, or none of it."""
    if not before.status:
        return
    if before.status != after.status:
        yield f"the status {after.status} came back as {before.status}"
    is_same = before.answer == after.answer if after.is_whole else after.answer.startswith(before.answer)
    if not is_same:
        yield "the answer was changed"
    if before.is_whole and not after.is_whole:
        yield "an answer that was cut off came back as a whole one"
    missing = [name for name, value in after.answer_headers if (name.lower(), value) not in before.answer_headers]
    if missing:
        yield f"headers of the answer are missing: {', '.join(missing)}"


def _changed(form: _Form, before: str, after: str, faults: list[str], *, may_leave_out: bool) -> Compared:
    old, new = json.loads(before), json.loads(after)
    if _breakpoints(new) > MOST_BREAKPOINTS:
        faults.append(f"{_breakpoints(new)} cache breakpoints")
    own, with_pack = form.list_of(old), form.list_of(new)
    place = form.place(own, old)
    pack = form.words(with_pack[place]) if place < len(with_pack) else None
    item = form.item(pack, own) if isinstance(pack, str) else None
    if item is None or with_pack[: place + 2] != [*own[:place], item, *own[place : place + 1]]:
        return Compared([*faults, "the pack is not where it was promised"])
    rest = _without(after, item)
    if rest is None:
        return Compared([*faults, "the pack is not in the body once"], pack)
    if rest == before:
        return Compared(faults, pack)
    if not may_leave_out:
        return Compared([*faults, "more than the pack was changed"], pack)
    return _left_out(form, before, rest, faults, pack)


def _without(text: str, item: Body) -> str | None:
    """Return a text without an item of a list and its comma; None if it is not there exactly once."""
    forms = (json.dumps(item, ensure_ascii=False), json.dumps(item, ensure_ascii=False, separators=(",", ":")))
    written = next((form for form in forms if text.count(form) == 1), None)
    if written is None:
        return None
    return text.replace(f"{written},", "", 1) if f"{written}," in text else text.replace(f",{written}", "", 1)


def _left_out(form: _Form, before: str, rest: str, faults: list[str], pack: str | None) -> Compared:
    """Compare a history without its middle: only whole items are missing, from one place."""
    if _alike(before, rest) + _alike(before[::-1], rest[::-1]) < len(rest):
        faults.append("more than one part is missing, or bytes were changed")
    whole, left = json.loads(before)[form.history], json.loads(rest)[form.history]
    head = len([*takewhile(lambda each: not _is_of_the_model(each), whole)])
    start = len(whole) - (len(left) - head)
    if left[:head] != whole[:head]:
        faults.append("the turns before the first answer are missing")
    if left[head:] != whole[start:]:
        faults.append("the tail is not the end of the history")
    if len(left) - head < LEAST_TAIL:
        faults.append(f"the tail has {len(left) - head} items")
    if _is_of_the_model(whole[start]) and _is_of_the_model(whole[start - 1]):
        faults.append("the tail begins within an answer")
    if alone := set(_results(left)) - set(_calls(left)):
        faults.append(f"results without their calls: {', '.join(sorted(alone))}")
    if alone := (set(_calls(left)) - set(_results(left))) - (set(_calls(whole)) - set(_results(whole))):
        faults.append(f"calls without their results: {', '.join(sorted(alone))}")
    return Compared(faults, pack, start - head)


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts begin with that are the same."""
    return len([*takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))])


def _is_of_the_model(item: Body) -> bool:
    kind = str(item.get("type", "message"))
    return item.get("role") in ("assistant", "model") or kind == "reasoning" or kind.endswith("_call")


def _blocks(items: Items) -> Iterator[Body]:
    for item in items:
        yield item
        for name in ("content", "parts", "tool_calls"):
            yield from (each for each in item.get(name) or [] if isinstance(each, dict))


def _calls(items: Items) -> list[str]:
    return [*filter(None, map(_call, _blocks(items)))]


def _call(block: Body) -> str | None:
    if "functionCall" in block:
        return block["functionCall"].get("id")
    if block.get("type") in ("tool_use", "function"):
        return block.get("id")
    return block.get("call_id") if str(block.get("type")).endswith("_call") else None


def _results(items: Items) -> list[str]:
    return [*filter(None, map(_result, _blocks(items)))]


def _result(block: Body) -> str | None:
    if "functionResponse" in block:
        return block["functionResponse"].get("id")
    if str(block.get("type")).endswith("_output"):
        return block.get("call_id")
    return block.get("tool_use_id") or block.get("tool_call_id")


def _breakpoints(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_breakpoints, value))  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(value, dict):
        return 0
    inner: Body = value  # pyright: ignore[reportUnknownVariableType]
    parts = ("tools", "system", "messages", "content")
    return ("cache_control" in inner) + sum(_breakpoints(inner.get(part)) for part in parts)


def pack_faults(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield what is wrong with the packs of a session's requests, in their order.

    Every request has one, and it stays the same as long as the same part of the history is left out.
    """
    if without := sum(each.pack is None for each in compared):
        yield f"{without} of {len(compared)} requests have no pack"
    packed = [each for each in compared if each.pack is not None]
    for one, next_one in pairwise(packed):
        if one.pack != next_one.pack and one.left_out == next_one.left_out:
            yield "the pack changed within the session"
