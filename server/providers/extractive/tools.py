"""Facts from tool calls: commands that failed, files that changed, commits."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from esker.server.core.conversation.blocks import looks_failed, result_text
from esker.server.core.conversation.memory_tools import withheld
from esker.server.core.conversation.records import Block, StoredMessage
from esker.server.providers.extractive.sentences import clip

# Maximum characters of a command or an output that are read.
_MOST_CHARACTERS = 20_000
# Characters of a line of output that are read.
_LONGEST_LINE = 1_000
_EDITORS = re.compile(r"edit|write|create_file|apply_patch|str_replace|notebook", re.IGNORECASE)
_SHELLS = re.compile(r"bash|shell|exec|terminal|run|command|powershell", re.IGNORECASE)
_PATH_KEYS = ("file_path", "path", "notebook_path", "filePath", "filename", "target_file")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)
_COMMIT = re.compile(
    r"git commit\b[^\n]{0,300}?-\w{0,20}m\s{1,20}(?:\"(?P<double>(?:[^\"\\]|\\.)+)\"|'(?P<single>[^']+)')"
)
_HEREDOC_COMMIT = re.compile(r"git commit\b[^\n]{0,300}<<-?\s{0,20}['\"]?(\w+)['\"]?\n(?P<text>.+?)\n", re.DOTALL)
# Patterns of error lines, the most specific first. They are matched with lines of limited length: on a line of blanks
# some of them take quadratic time.
_ERROR_LINES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:E\s+)?((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Warning|Panic)\b: .+)",
        r"\s*((?:fatal|panic|error(?:\[\w+\])?|ERROR|FATAL|Error): .+)",
        r"(.*\b(?:E[A-Z]{4,}|SIGSEGV|SIGKILL)\b.*)",
        r"\s*(npm (?:ERR!|error) .+)",
        r"\s*(FAILED .+)",
        r"(.*(?:command not found|No such file or directory|Permission denied|cannot find|not found).*)",
        r"(.*\b[Ee]rror\b.*)",
    )
)
# A numbered line of source code, or a comment: not an error of the command.
_SOURCE_LINE = re.compile(r"\d+\s*[│|:]|[│|*#]|//")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call and the number of its message; `withheld`: its result comes from memory or a rules file."""

    seq: int
    name: str
    command: str
    withheld: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed, with its error line."""

    seq: int
    call: ToolCall | None
    line: str


def calls(messages: Iterable[StoredMessage]) -> dict[str, ToolCall]:
    """Return the tool calls of messages by call id."""
    return {
        str(block["id"]): _call(message, block)
        for message in messages
        for block in message.content
        if block.get("type") == "tool_use" and "id" in block
    }


def _call(message: StoredMessage, block: Block) -> ToolCall:
    name = str(block.get("name"))
    return ToolCall(message.seq, name, _command(block), withheld(name, block.get("input")) is not None)


def _command(block: Block) -> str:
    match block.get("input"):
        case {"command": str(command)} | {"cmd": str(command)}:
            return command[:_MOST_CHARACTERS]
        case _:
            return ""


def changed_files(message: StoredMessage) -> Iterator[str]:
    """Yield the paths that a message's tool calls write to."""
    for block in message.content:
        if block.get("type") != "tool_use" or not _EDITORS.search(str(block.get("name"))):
            continue
        given = block.get("input")
        if not isinstance(given, dict):
            continue
        yield from (str(given[key]) for key in _PATH_KEYS if isinstance(given.get(key), str))
        yield from (
            path.strip() for value in given.values() if isinstance(value, str) for path in _PATCHED.findall(value)
        )


def commits(message: StoredMessage) -> Iterator[str]:
    """Yield the first lines of the commit messages that a message's commands write."""
    for block in message.content:
        if block.get("type") != "tool_use":
            continue
        command = _command(block)
        for match in (*_COMMIT.finditer(command), *_HEREDOC_COMMIT.finditer(command)):
            groups = match.groupdict()
            text = groups.get("double") or groups.get("single") or groups.get("text") or ""
            subject = next((line for line in text.splitlines() if line.strip()), "")
            if subject and not text.startswith("$("):
                yield clip(subject.strip(), 160)


def failures(message: StoredMessage, known: dict[str, ToolCall]) -> Iterator[Failure]:
    """Yield the failed commands among a message's tool results; `known` are the calls so far by id.

    Failed edits and reads are skipped: they are mistakes of the agent and say nothing about the project. So are calls
    that read memory or rules: their content is known already.
    """
    for block in message.content:
        if block.get("type") != "tool_result":
            continue
        call = known.get(str(block.get("tool_use_id")))
        if call and (call.withheld or not _SHELLS.search(call.name)):
            continue
        text = result_text(block)[-_MOST_CHARACTERS:]
        line = _error_line(text)
        if line and (block.get("is_error") or looks_failed(text)):
            yield Failure(message.seq, call, line)


def _error_line(text: str) -> str | None:
    lines = [line[:_LONGEST_LINE] for line in text.split("\n") if line.strip()]
    for match in (found for pattern in _ERROR_LINES for line in lines if (found := pattern.match(line))):
        line = match[1].strip()
        if not _SOURCE_LINE.match(line) and not line.endswith(":"):
            return clip(line, 240)
    return None
