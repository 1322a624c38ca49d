"""The script of the model: the last thing said to it decides what it says.

CALLRECALL words    it calls the tool whose name ends with recall_memory, with {"query": words}
SAY words           it says the words, as the input of Claude Code's tool for structured output if that is offered
WORK number words   it calls the client's shell so often, one call after the other, then says the words
HOLD words          it says the words, but stops in the middle until the client is gone
a wish for a summary
                    it says a summary that no transcript should have: SUMMARY
a tool's result     it says "The tool said: …" with the beginning of the result
anything else       it says "Understood: …" with the end of the prompt

The last of these counts. `SWELL number` beside it lets the model report so many tokens of input.
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
_ORDER = re.compile(r"CALLRECALL (?P<query>[^\n\"<\\]+)|(?P<verb>SAY|HOLD|WORK (?P<calls>\d+)) (?P<words>[^\n<]+)")
_MORE = re.compile(r"WORK (\d+) ([^\n\"<\\]+)")
_SWELL = re.compile(r"SWELL (\d+)")
SUMMARY = "In short, the shop was built."
# How the prompts by which clients compact a conversation can be known.
_SUMMARIES = re.compile(r"<summary>|</?state_snapshot>|handoff summary|summar(?:y|ize)", re.IGNORECASE)
_USUAL_TOKENS = 100
# The tool by which each client runs a command.
_SHELLS = ("Bash", "bash", "shell", "shell_command", "exec_command", "run_shell_command")
# Lines that each command of a `WORK` prints, some 700 tokens.
_LINES = 60


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the client offers: its kind, the namespace that a call of it has to name, and its arguments."""

    kind: str = "function"
    namespace: str | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """An answer of the model: a text, or a call of a tool. `sent` are its tokens of input; one that is `held` stops in
    the middle."""

    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] | None = None
    sent: int = _USUAL_TOKENS
    held: bool = False


Tools = Mapping[str, Tool]


def strip_around(prompt: str) -> str:
    """Return a prompt without the elements that hooks and clients put around it."""
    return _AROUND.sub("", prompt).strip()


def after_prompt(prompt: str, tools: Tools) -> Said:
    """Return the answer to a prompt."""
    words = strip_around(prompt)
    swell = _SWELL.search(words)
    sent = int(swell[1]) if swell else _USUAL_TOKENS
    order = next(iter([*_ORDER.finditer(words)][::-1]), None)
    if order is None and _SUMMARIES.search(words):
        return Said(f"<summary>{SUMMARY}</summary>", sent=sent)
    if order is None:
        return Said(f"Understood: {' '.join(words.split())[-120:]}", sent=sent)
    if order["query"]:
        return _recall(order["query"].strip(), tools)
    said = order["words"].strip().strip('"')
    if order["calls"]:
        return _work(int(order["calls"]), said, tools)
    if _STRUCTURED in tools:
        return Said(tool=_STRUCTURED, arguments=json.loads(said))
    return Said(said, sent=sent, held=order["verb"] == "HOLD")


def after_result(result: str, tools: Tools) -> Said:
    """Return the answer to the result of a tool."""
    if more := [*_MORE.finditer(result)]:
        return _work(int(more[-1][1]), more[-1][2].strip(), tools)
    return Said(f"The tool said: {result[:_SHOWN]}")


def _work(calls: int, words: str, tools: Tools) -> Said:
    """Return a call whose result asks for the next one, or the words behind the last one."""
    if not calls:
        return Said(words)
    name = next((name for name in _SHELLS if name in tools), None)
    if name is None:
        return Said(f"There is no shell among {sorted(tools)[:40]}.")
    line = f"Part {calls} of the shop is built as it was before."
    return Said(
        tool=name, arguments=_command(f"yes '{line}' | head -{_LINES}; echo 'WORK {calls - 1}' {words}", tools[name])
    )


def _command(command: str, tool: Tool) -> dict[str, Any]:
    properties: dict[str, Any] = dict((tool.schema or {}).get("properties", {}))
    if "cmd" in properties:
        return {"cmd": command}
    is_list = properties.get("command", {}).get("type") == "array"
    given: dict[str, Any] = {"command": ["bash", "-lc", command] if is_list else command}
    return given | ({"description": "Builds the next part"} if "description" in properties else {})


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
