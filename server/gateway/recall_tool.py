"""The tool `recall_memory` in requests whose clients do not know it: what is added to their text."""

from collections.abc import Iterator, Mapping

from esker.server.agents.content import Block, as_list
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.json_spans import Span, items, members, with_item
from esker.server.gateway.splices.splice import TOOL

_ABOUT = (
    "Find what is remembered about something from earlier sessions: decisions, preferences, facts, errors and their"
    " causes. Use it when the user refers to earlier work, or before you ask what may have been said already. Call it"
    " alone, not together with other tools."
)
_QUERY = "The question, in plain words."
_SCHEMA: Block = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": _QUERY}},
    "required": ["query"],
}
_FORMS: Mapping[str, Block] = {
    "messages": {"name": TOOL, "description": _ABOUT, "input_schema": _SCHEMA},
    "responses": {"type": "function", "name": TOOL, "description": _ABOUT, "parameters": _SCHEMA, "strict": False},
    "chat": {"type": "function", "function": {"name": TOOL, "description": _ABOUT, "parameters": _SCHEMA}},
    "gemini": {"name": TOOL, "description": _ABOUT, "parameters": _SCHEMA},
}
_DECLARATIONS = ("functionDeclarations", "function_declarations")


def with_tool(protocol: str, text: str) -> str | None:
    """Return a request with the tool as its last one, or None if it must not have it. Raises ValueError.

    Requests without tools get none: not every model accepts them. Nor do those whose answers the provider stores under
    an id, since a later request may continue an answer of which the client knows only a part.
    """
    found = members(text)
    tools = found.get("tools")
    if tools is None or not as_list(tools.value) or not _is_fit(protocol, found):
        return None
    if any(name.endswith(TOOL) for name in _names([tools.value, found["input"].value if "input" in found else None])):
        return None
    if protocol != "gemini":
        return with_item(text, tools.start, len(as_list(tools.value)), _FORMS[protocol])
    for tool in items(text, tools.start):
        for name in _DECLARATIONS:
            declared = members(text, tool.start).get(name)
            if declared and as_list(declared.value):
                return with_item(text, declared.start, len(as_list(declared.value)), _FORMS[protocol])
    return None


def _is_fit(protocol: str, found: Mapping[str, Span]) -> bool:
    """Return whether the answer to a request can be continued by another request."""

    def value(name: str) -> Json:
        return found[name].value if name in found else None

    match protocol:
        case "messages":
            return _last(value("messages")).get("role") == "user"
        case "responses":
            is_kept = value("previous_response_id") or value("conversation") or value("background")
            return value("store") is False and not is_kept and isinstance(value("input"), list)
        case "chat":
            return value("n") in (None, 1) and _last(value("messages")).get("role") not in (None, "assistant")
        case _:
            configuration = as_object(value("generationConfig") or value("generation_config"))
            is_one = configuration.get("candidateCount") in (None, 1)
            return is_one and _last(value("contents")).get("role") != "model"


def _last(items: Json) -> JsonObject:
    return as_object(next(reversed(as_list(items)), None))


def _names(value: Json) -> Iterator[str]:
    """Yield the names of tools, which some clients put into groups or among the items of the input."""
    for each in as_list(value):
        if isinstance(each, list):
            yield from _names(each)
        tool: JsonObject = as_object(each)
        for name in (tool.get("name"), as_object(tool.get("function")).get("name")):
            if isinstance(name, str) and "call" not in str(tool.get("type") or ""):
                yield name
        for group in ("tools", *_DECLARATIONS):
            yield from _names(tool.get(group))
