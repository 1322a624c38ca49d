"""Recognises tool calls that read or write memory or rules files; an observer does not see their results.

Memory must not feed on itself, whether the call is to a memory server, directly or from a script, to our own command
line or to a tool that reads a rules file of an agent CLI.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from esker.server.core.json_input import Json

WithheldReason = Literal["rules file", "from memory"]
"""Why a tool's result is not shown."""

_OWN_TOOL = re.compile(r"(?:\A|[\W_])(?:(?:recall|expand|forget)_memor(?:y|ies)|memory_status|remember)\Z")
_WRITING_TOOL = re.compile(r"(?:\A|[\W_])(?:remember|forget(?:_memory)?)\Z")
_NAME_BREAK = re.compile(r"__|[./:]")
_WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")
_MEMORY_SERVERS = frozenset(
    "esker mem0 supermemory openmemory agentmemory hindsight zep letta honcho cognee graphiti memobase".split()
)
_MEMORY_NOUNS = frozenset({"mem", "memory", "memories"})
_MEMORY_TOOLS = frozenset({"recall", "remember", "forget"})
_MEMORY_VERBS = _MEMORY_TOOLS | frozenset(
    "add archive check clear context create delete edit expand fact facts find get graph history insert list load"
    " long lookup mcp merge note notes nodes pin project query read remove replace retrieve save search session"
    " status store summarize term update user view write".split()
)
_COMMAND_KEYS = ("command", "cmd", "script")
# Maximum characters of a command that are read; a longer one is mostly a file that it writes.
_LONGEST_COMMAND = 20_000
_ESKER = r"\besker(?:\s+-[^\s;&|]{1,200}(?:\s+[^\s;&|-][^\s;&|]{0,200})?){0,4}?\s+"
_OWN_COMMAND = re.compile(
    rf"{_ESKER}(?:recall|expand|pack|memories|reflections|remember|forget)(?![\w./])"
    r"|\b(?:curl|wget|https?)\b[\s\S]{1,500}?/v1/(?:recall|memories|reflections|sessions/[^/\s]{1,100}/pack)\b"
)
_WRITING_COMMAND = re.compile(rf"{_ESKER}(?:remember|forget)(?![\w./])")
# Tools that run a script of the model, in which it calls the tools of servers, such as `codemode` of pi and `exec` of
# Codex; the keys of the script among their arguments; and the calls of our tools in it.
_SCRIPT_TOOL = re.compile(r"code|exec|script|python|eval|repl", re.IGNORECASE)
_SCRIPT_KEYS = ("code", "input", "script", "source")
_OWN_CALL = re.compile(r"(?:recall|expand)_memor(?:y|ies)(?!\w)|esker__(?:remember|forget_memory|memory_status)(?!\w)")
_WRITING_CALL = re.compile(r"esker__(?:remember|forget_memory)(?!\w)")
_COMMAND_BREAK = re.compile(r"[;&|\n()`]|\b(?:ba|z|da)?sh\s+-[a-z]{0,3}c\s|\s-Command\s")
_PRINTERS = frozenset("awk bat batcat cat gc get-content head less more nl sed tac tail type".split())
_BEFORE_COMMANDS = frozenset({"{", "command", "do", "sudo", "then"})
_READERS = frozenset(
    "cat fileread fsread getfilecontents open openfile read readfile readfiles readmanyfiles readmultiplefiles"
    " readtextfile view viewfile".split()
)
_RULES_READERS = frozenset({"skill", "activateskill", "loadskill", "useskill", "readskill", "fetchrules"})
_RULES_FILE = re.compile(
    r"(?:\A|/)(?:CLAUDE(?:\.local)?\.md|AGENTS(?:\.override|\.local)?\.md|GEMINI\.md|QWEN\.md|SKILL\.md"
    r"|\.cursorrules|\.windsurfrules|\.clinerules|\.roorules|\.goosehints|copilot-instructions\.md"
    r"|[^/]{1,200}\.(?:mdc|instructions\.md))\Z"
    r"|(?:\A|/)\.(?:clinerules|\w{1,40}/(?:rules|steering))/"
    r"|(?:\A|/)\.(?:claude|codex|gemini|qwen|cursor)/(?:[^/]{1,300}/){0,6}(?:agent-)?memor(?:y|ies)/"
)
_LONGEST_PATH = 2_000


def is_memory_tool(name: str) -> bool:
    """Whether a tool reads or writes this memory or another system's, whatever name the client gave its server."""
    *servers, tool = _NAME_BREAK.split(name)
    words = _words(tool)
    if _OWN_TOOL.search(name) or words & _MEMORY_SERVERS:
        return True
    if any(_words(server) & (_MEMORY_SERVERS | _MEMORY_NOUNS) for server in servers):
        return True
    return bool(words & (_MEMORY_NOUNS | _MEMORY_TOOLS)) and words <= _MEMORY_NOUNS | _MEMORY_VERBS


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def writes_memory(name: str, arguments: Json) -> bool:
    """Whether a call stores or forgets a memory here; its arguments are not shown to an observer."""
    return bool(
        _WRITING_TOOL.search(name)
        or _WRITING_COMMAND.search(_command(arguments))
        or _WRITING_CALL.search(_script(name, arguments))
    )


def withheld(name: str, arguments: Json) -> WithheldReason | None:
    """Return why the result of a call is not shown to an observer, or None if it is shown."""
    command = _command(arguments)
    if is_memory_tool(name) or _OWN_COMMAND.search(command) or _OWN_CALL.search(_script(name, arguments)):
        return "from memory"
    if _reads_rules(name, arguments) or _prints_rules(command):
        return "rules file"
    return None


def _command(arguments: Json) -> str:
    """Return the shell command among the arguments of a call, or an empty string."""
    return _text_at(_COMMAND_KEYS, arguments)


def _script(name: str, arguments: Json) -> str:
    """Return the script among the arguments of a tool that runs scripts, or an empty string."""
    return _text_at(_SCRIPT_KEYS, arguments) if _SCRIPT_TOOL.search(name) else ""


def _text_at(keys: Sequence[str], arguments: Json) -> str:
    given = arguments
    if isinstance(arguments, dict):
        given = next((arguments[key] for key in keys if key in arguments), None)
    words = given if isinstance(given, list) else [given]
    return " ".join(word for word in words if isinstance(word, str))[:_LONGEST_COMMAND]


def _reads_rules(name: str, arguments: Json) -> bool:
    tool = _NAME_BREAK.split(name)[-1].lower().replace("_", "").replace("-", "")
    # An editor that can also show a file says so in its arguments.
    views = isinstance(arguments, dict) and arguments.get("command") == "view"
    reads = (tool in _READERS or views) and any(is_rules_file(text) for text in _strings(arguments))
    return reads or tool in _RULES_READERS


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for item in value.values():
                yield from _strings(item)
        case _:
            pass


def _prints_rules(command: str) -> bool:
    """Whether one of the commands in a shell command prints a rules file; writing to one does not count."""
    for part in _COMMAND_BREAK.split(command):
        words = part.partition(">")[0].replace('"', "").replace("'", "").split()
        while words and words[0] in _BEFORE_COMMANDS:
            words.pop(0)
        if not words or words[0].rpartition("/")[2].lower() not in _PRINTERS:
            continue
        edits = any(word.startswith(("-i", "--in-place")) for word in words)
        if not edits and any(is_rules_file(word) for word in words[1:]):
            return True
    return False


def is_rules_file(path: str) -> bool:
    """Whether a path is that of a file in which an agent CLI keeps rules, skills or its own memory."""
    return len(path) <= _LONGEST_PATH and bool(_RULES_FILE.search(path.strip().replace("\\", "/")))
