"""The script of the model: the last thing said to it decides what it says.

CALLRECALL words    it calls the tool whose name ends with recall_memory, with {"query": words}
SAY words           it says the words, as the input of Claude Code's tool for structured output if that is offered
a tool's result     it says "The tool said: …" with the beginning of the result
anything else       it says "Understood: …" with the end of the prompt
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

RECALL = "recall_memory"
# The tools by which a client that does not declare the tools of MCP servers lets its model look for them.
SEARCHES = ("ToolSearch", "tool_search")
_SCRIPTS = "codemode"
# The tool by which Claude Code asks for an answer of a given shape.
_STRUCTURED = "StructuredOutput"
# Characters of a tool's result that the model repeats.
_SHOWN = 600

# Elements that hooks and clients put around a prompt may repeat the words of earlier prompts.
_AROUND = re.compile(
    r"<(session_context|hook_context|system[-_]reminder|recalled_memories|global_observations|local_observations)>"
    r".*?(</\1>|&lt;/\1&gt;)",
    re.DOTALL,
)
_CALL = re.compile(r"CALLRECALL ([^\n\"<\\]+)")
_SAY = re.compile(r"SAY ([^\n<]+)")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client offers: its kind, and the namespace that a call of it has to name."""

    kind: str = "function"
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """An answer of the model: a text, or a call of a tool."""

    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None


Tools = Mapping[str, Tool]


def after_prompt(prompt: str, tools: Tools) -> Said:
    """Return the answer to a prompt."""
    words = _AROUND.sub("", prompt)
    if call := _CALL.search(words):
        return _recall(call[1].strip(), tools)
    if say := _SAY.search(words):
        if _STRUCTURED in tools:
            return Said(tool=_STRUCTURED, arguments=json.loads(say[1]))
        return Said(say[1].strip())
    return Said(f"Understood: {' '.join(words.split())[-120:]}")


def after_result(result: str) -> Said:
    """Return the answer to the result of a tool."""
    return Said(f"The tool said: {result[:_SHOWN]}")


def _recall(query: str, tools: Tools) -> Said:
    for name in sorted(tools):
        if name.endswith(RECALL):
            return Said(tool=name, arguments={"query": query})
    if _SCRIPTS in tools:
        code = f"text(JSON.stringify(await tools.mcp__esker__{RECALL}({{query: {json.dumps(query)}}})))"
        return Said(tool=_SCRIPTS, arguments={"code": code})
    for name in SEARCHES:
        if name in tools:
            return Said(tool=name, arguments={"query": RECALL, "max_results": 5})
    return Said(f"There is no {RECALL} among {len(tools)} tools.")


def value_for(schema: Any) -> Any:
    """Return a value that fits a JSON schema, for the answers that clients want as JSON."""
    if not isinstance(schema, dict):
        return "none"
    form: dict[str, Any] = schema  # pyright: ignore[reportUnknownVariableType]
    if form.get("enum"):
        return form["enum"][0]
    match str(form.get("type", "object")).lower():
        case "object":
            return {name: value_for(each) for name, each in form.get("properties", {}).items()}
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case _:
            return "none"
