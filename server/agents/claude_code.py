"""The transcripts of Claude Code: JSON lines, of which some are messages.

The format is internal to Claude Code and changes, so unknown lines are skipped and counted, and a broken line never
stops the reading. Sub-agents (files beside their session or in a folder of it) and side chains become sessions of
their own.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from esker.server.agents.claude_queue import LINE, PromptQueue
from esker.server.agents.content import as_list, as_text, call_block, result_block, result_text
from esker.server.agents.lines import JsonLine, Opener, json_document, json_lines
from esker.server.agents.reader_entries import UNKNOWN_SPEAKER, TranscriptBuilder, fitting, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.rewinds import Rewinds
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.ids import is_uuid
from esker.server.core.json_input import Json, as_object, clean_text

CLIENT = "claude-code"

# Every line of Claude Code has one of these.
_MARKS = frozenset({"uuid", "sessionId", "parentUuid", "leafUuid", "messageId", "isSidechain"})
# Flags of lines that have the type of a message but are not one, with the reason for skipping them.
_UNSAID = {
    "isMeta": "meta line",
    "isCompactSummary": "compaction summary",
    "isVisibleInTranscriptOnly": "shown in the transcript only",
    "isApiErrorMessage": "API error",
}
_AGENT = "agent-"
# An agent with such an id summarised the conversation for a compaction.
_SUMMARISER = "acompact-"
# Sources of prompts that nobody typed.
_PROGRAMS = ("system", "loop_wakeup", "schedule_wakeup", "poll_event")
# A slash command that is a prompt, with its arguments. In commands that the client itself carries out, such as
# `/model`, the name comes first, so they do not match.
_COMMAND = re.compile(
    r"\s*<command-message>[^<]*</command-message>\s*<command-name>(/?[^<\s]+)</command-name>"
    r"\s*<command-args>([\s\S]+)</command-args>\s*"
)


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a file. Raises OSError when it cannot be opened."""
    file = _TranscriptFile(path)
    for number, line in _lines(path, file.builder, opener):
        file.builder.recognised = file.builder.recognised or recognises(line)
        file.add(number, line)
    return file.build()


def recognises(line: JsonLine) -> bool:
    """Return whether Claude Code wrote a line."""
    return isinstance(line.get("message"), dict) or (isinstance(line.get("type"), str) and bool(_MARKS & line.keys()))


class _TranscriptFile:
    """A transcript while it is read."""

    def __init__(self, path: Path) -> None:
        self.builder = TranscriptBuilder(CLIENT, path)
        self._rewinds = Rewinds()
        self._queues: defaultdict[str, PromptQueue] = defaultdict(PromptQueue)
        self._name = stem(path)
        self._agent = self._name.removeprefix(_AGENT) if path.name.startswith(_AGENT) else None
        self._parent = clean_text(path.parent.parent.name) if path.parent.name == "subagents" else None

    def add(self, number: int, line: JsonLine) -> None:
        """Add a line; those of a sub-agent or a side chain belong to a session of their own."""
        # A line that a fork copied belongs to the session it was copied from.
        origin = as_text(as_object(line.get("forkedFrom")).get("sessionId"))
        session = self._parent or origin or as_text(line.get("sessionId")) or self._name
        agent = as_text(line.get("agentId")) or self._agent
        if agent and agent.startswith(_SUMMARISER):
            self.builder.skip("line of a compaction")
        elif agent:
            self._add_message(f"{session}/{_AGENT}{agent}", number, line, apart=True)
        elif line.get("isSidechain") is True:
            self._add_message(f"{session}/sidechain", number, line, apart=True)
        elif line.get("type") == LINE:
            self._add_queued(session, number, line)
        else:
            self._note_said(session, line)
            has_content, is_prompt = self._add_message(session, number, line, apart=False)
            self._rewinds.note(session, line, has_content=has_content, is_prompt=is_prompt)
            if is_prompt:
                self._queues[session].interrupt()

    def build(self) -> ParsedTranscripts:
        """Return the transcripts, without rewound messages and queued prompts that were not sent or are recorded
        twice."""
        for session, names in self._rewinds.rewound().items():
            self.builder.drop(session, set(map(fitting, names)), "message that was rewound")
        for session, queue in self._queues.items():
            self.builder.drop(session, queue.repeated(), "repeated message")
            self.builder.drop(session, queue.unsent(), "queued prompt that was not sent")
        return self.builder.build()

    def _note_said(self, session: str, line: JsonLine) -> None:
        """Tell the queue of a session what was said to the assistant, and that it answered."""
        queue, message = self._queues[session], as_object(line.get("message"))
        match line.get("type"):
            case "user":
                queue.hear(message.get("content"))
            case "attachment":
                queue.hear(as_object(line.get("attachment")).get("prompt"))
            case "assistant" if _unsaid(line, "assistant") is None:
                queue.answer()
            case _:
                pass

    def _add_queued(self, session: str, number: int, line: JsonLine) -> None:
        """Add the queued prompt that a line gave to the model, if any; otherwise count the line as skipped."""
        prompt = self._queues[session].note(line, f"{self._name}:{number}")
        if prompt is None:
            self.builder.skip(f"{LINE} line")
        else:
            self.builder.add(session, "user", prompt.content, name=prompt.name, at=prompt.at)

    def _add_message(self, session: str, number: int, line: JsonLine, *, apart: bool) -> tuple[bool, bool]:
        """Add a line's message; return whether it had content, and whether it is a prompt of the user.

        In a sub-agent or a side chain the assistant gives the orders, so its prompts are the assistant's.
        """
        position = f"{self._name}:{number}"
        found = _message(line, position)
        if isinstance(found, str):
            self.builder.skip(found)
            return False, False
        role, content = found
        answers = _has_result(content)
        speaker = "assistant" if apart and not answers else role
        name, at, cwd = as_text(line.get("uuid")), line.get("timestamp", ""), line.get("cwd")
        # Some forks copy lines without marking them as copies, but keep their ids.
        unique = "forkedFrom" in line or (name is not None and is_uuid(name))
        has_content = self.builder.add(
            session, speaker, content, name=name, position=position, at=at, cwd=cwd, unique=unique
        )
        self.builder.set_directory(session, cwd)
        return has_content, has_content and line.get("type") == "user" and not answers


def _lines(path: Path, builder: TranscriptBuilder, opener: Opener) -> Iterator[tuple[int, JsonLine]]:
    """Yield the numbered lines of a transcript; a session fetched from the web is one object that contains them."""
    if path.suffix != ".json":
        yield from json_lines(path, builder.left_out, opener)
        return
    match json_document(path, builder.left_out):
        case {"loglines": list(lines)}:
            yield from ((number, line) for number, line in enumerate(lines, start=1) if isinstance(line, dict))
        case _:
            pass


def _message(line: JsonLine, position: str) -> tuple[str, Json] | str:
    """Return the role and the content of a line, or the reason why it is not a message."""
    match line.get("type"):
        case ("user" | "assistant") as kind:
            return _unsaid(line, kind) or _spoken(line, kind)
        case "attachment" if queued := _queued(line):
            return "user", queued.get("prompt")
        # Some builds wrote calls and results as lines of their own.
        case "tool_use":
            return "assistant", [call_block(as_text(line.get("id")) or position, line.get("name"), line.get("input"))]
        case "tool_result":
            answer = line.get("output", line.get("content"))
            return "user", [result_block(as_text(line.get("tool_use_id")) or position, result_text(answer))]
        case kind:
            return f"{kind[:40]} line" if isinstance(kind, str) else "untyped line"


def _unsaid(line: JsonLine, kind: str) -> str | None:
    for flag, reason in _UNSAID.items():
        if line.get(flag) is True:
            return reason
    message = line.get("message")
    if not isinstance(message, dict) or (message.get("role") or kind) not in ("user", "assistant"):
        return UNKNOWN_SPEAKER
    if message.get("model") == "<synthetic>":
        return "synthetic message"
    other = None if _has_result(message.get("content")) else _other_voice(line)
    return f"message of {other}" if other else None


def _other_voice(line: JsonLine) -> str | None:
    """Return who gave the assistant a message, if it was not the user: another agent, a task or a program."""
    origin = line.get("origin")
    kind = origin if isinstance(origin, str) else as_object(origin).get("kind")
    if isinstance(kind, str):
        return None if kind == "human" else f"{kind[:40]}"
    source = line.get("promptSource")
    return str(source) if source in _PROGRAMS else None


def _has_result(content: Json) -> bool:
    return any(as_object(block).get("type") == "tool_result" for block in as_list(content))


def _spoken(line: JsonLine, kind: str) -> tuple[str, Json]:
    message = as_object(line.get("message"))
    content: Json = message.get("content")
    [only] = content if isinstance(content, list) and len(content) == 1 else [content]
    text = as_object(only).get("text", only)
    command = _COMMAND.fullmatch(text) if kind == "user" and isinstance(text, str) else None
    if command and command[2].strip():
        content = f"{command[1]} {command[2].strip()}"
    return str(message.get("role") or kind), content


def _queued(line: JsonLine) -> JsonLine:
    """Return a prompt that the user queued while the assistant was working; empty if the line is not one."""
    attachment = as_object(line.get("attachment"))
    is_prompt = attachment.get("type") == "queued_command" and attachment.get("commandMode") in ("prompt", None)
    by_person = not (_other_voice(attachment) or _other_voice(line)) and attachment.get("isMeta") is not True
    return attachment if is_prompt and by_person else {}
