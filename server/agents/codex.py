"""The rollouts of Codex: JSON lines that contain one conversation up to three times.

A turn is written as items of the model's API (`response_item`), as events for the screen (`event_msg`) and, by newer
builds, as completed items of the thread (`item_completed`). Which of these channels a file has, and which comes first,
differs between builds, so the first record is kept and its repetitions are skipped: calls are matched by id, messages
by role, words and number of occurrences. Early builds wrote the items without an envelope.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Literal

from esker.server.agents.codex_forks import end_of_copy, is_fork, origin_of
from esker.server.agents.content import (
    Block,
    arguments,
    as_list,
    as_text,
    call_block,
    image_at,
    image_block,
    joined,
    result_block,
    result_text,
    text_block,
    texts,
)
from esker.server.agents.lines import JsonLine, Opener, SkippedLines, json_lines
from esker.server.agents.project import repository_of, repository_path
from esker.server.agents.reader_entries import UNKNOWN_SPEAKER, TranscriptBuilder, as_moment, digest, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.conversation.injected import strip_injected
from esker.server.core.json_input import Json, as_object

CLIENT = "codex"

Channel = Literal["item", "event", "thread"]
"""One of the three forms in which a rollout contains a record."""

_ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state")
_BARE = ("message", "user", "assistant", "reasoning")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "function_result")
_SPEAKERS = ("user", "assistant")
# The most lines before its first turn in which the header of another thread shows that a rollout is a fork.
_LINES_BEFORE_A_TURN = 20
_TURN_ENDS = ("turn_aborted", "task_complete")
_CWD = re.compile(r"<cwd>\s*([^<]{1,4096}?)\s*</cwd>|^[ \t]*Current working directory: ([^\n]{1,4096}?)[ \t\r]*$", re.M)
# The time in a rollout's name is local.
_NAMED_TIME = re.compile(r"rollout-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)")
_SEPARATORS = re.compile(r"[-_ ]")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Parts of an item that its event lacks: the tags around an image, and the citations of an answer.
_FRAMES = re.compile(r"</?image\b[^>]{0,200}>|<oai-mem-citation>[\s\S]*?</oai-mem-citation>")
_IMAGES = ("input_image", "image", "localImage", "local_image")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a rollout, which is one session. Raises OSError when it cannot be opened."""
    builder = TranscriptBuilder(CLIENT, path)
    rollout = _Rollout(builder, stem(path))
    first, last = _copied_lines(path, opener)
    for number, line in json_lines(path, builder.left_out, opener):
        builder.recognised = builder.recognised or recognises(line) or recognises_bare(line)
        if first <= number <= last:
            builder.skip("line copied from the thread it was forked from")
        else:
            rollout.add(number, line)
    rollout.finish()
    return builder.build()


def _copied_lines(path: Path, opener: Opener) -> tuple[int, int]:
    """Return the numbers of the first and the last line that a fork copied; (1, 0) if the rollout is not a fork."""
    lines = json_lines(path, SkippedLines(), opener)
    number, header = next(lines, (0, JsonLine()))
    beginning = list(islice(lines, _LINES_BEFORE_A_TURN))
    meta = as_object(header.get("payload"))
    if header.get("type") != "session_meta" or not is_fork(meta, (line for _, line in beginning)):
        return 1, 0
    return number + 1, end_of_copy(meta, chain(beginning, lines))


def recognises(line: JsonLine) -> bool:
    """Return whether Codex wrote a line."""
    return line.get("type") in _ENVELOPES and isinstance(line.get("payload"), dict)


def recognises_bare(line: JsonLine) -> bool:
    """Return whether an early build, whose lines have no envelope, may have written a line."""
    kind = line.get("type")
    if kind in (*_CALLS, *_OUTPUTS) or "record_type" in line:
        return True
    if not isinstance(kind, str):
        return line.get("role") in _SPEAKERS and bool({"content", "message"} & line.keys())
    return kind in _BARE and not isinstance(line.get("message"), dict)


@dataclass(slots=True)
class _CodexRecord:
    """A message, a call or a result, and the channels that contained it; `words` is empty for calls and results."""

    role: str
    content: list[Json]
    name: str
    at: Json
    words: str = ""
    channels: set[Channel] = field(default_factory=set[Channel])
    cwd: str | None = None


class _Rollout:
    """The conversation of a rollout, built up while it is read."""

    def __init__(self, builder: TranscriptBuilder, name: str) -> None:
        self._builder = builder
        found = _UUID.search(name)
        self._position = name
        self._session = found[0] if found else name
        self._meta: JsonLine | None = None
        self._cwd: str | None = None
        self._current_cwd: str | None = None  # the session's current directory
        self._turn_prompts: list[_CodexRecord] = []  # the user's messages of the turn that begins
        self._records: list[_CodexRecord] = []
        self._occurrences: defaultdict[Channel, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._known: set[tuple[str, str, int]] = set()
        self._turn: list[_CodexRecord] = []  # the latest messages, all of one speaker
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._unanswered: dict[str, str] = {}

    def add(self, number: int, line: JsonLine) -> None:
        """Add a line, with or without an envelope."""
        payload = line.get("payload")
        if not isinstance(payload, dict):
            self._add_bare(number, line, line.get("timestamp", line.get("created_at")))
            return
        at = line.get("timestamp", "")
        match line.get("type"):
            case "session_meta":
                self._add_meta(payload)
            case "response_item":
                self._add_item(number, payload, at)
            case "event_msg":
                self._add_event(number, payload, at)
            case "compacted":
                self._drop_summary(payload)
                self._builder.skip("compaction summary")
            case kind:
                if kind == "turn_context":
                    self._enter(as_text(payload.get("cwd")))
                self._builder.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")

    def finish(self) -> None:
        """Pass the conversation to the builder, under the session id of its first line."""
        meta = self._meta or {}
        session = as_text(meta.get("id")) or as_text(meta.get("session_id")) or self._session
        is_agent = _is_agent(meta)
        if parent := _parent(meta) if is_agent else None:
            session = f"{parent}/agent-{session}"
        self._builder.assume_time(as_moment(meta.get("timestamp")) or _named_time(self._position))
        cwd = as_text(meta.get("cwd")) or self._cwd
        self._builder.set_directory(session, cwd)
        self._builder.set_project(session, (repository_of(cwd) if cwd else None) or _repository(meta))
        for record in self._records:
            # In a sub-agent the assistant gives the orders.
            role = "assistant" if is_agent and record.words else record.role
            self._builder.add(session, role, record.content, name=record.name, at=record.at, cwd=record.cwd)

    def _enter(self, cwd: str | None) -> None:
        """Set the directory of a turn; older builds write it after the user's message, newer ones before it."""
        self._cwd = self._cwd or cwd
        self._current_cwd = cwd or self._current_cwd
        for record in self._turn_prompts:
            record.cwd = self._current_cwd
        self._turn_prompts = []

    def _append(self, record: _CodexRecord) -> None:
        record.cwd = self._current_cwd
        self._records.append(record)
        self._turn_prompts = [*self._turn_prompts, record] if record.role == "user" and record.words else []

    def _add_meta(self, payload: JsonLine) -> None:
        if self._meta is None:
            self._meta = payload
            self._current_cwd = as_text(payload.get("cwd"))
        self._builder.skip("session_meta line")

    def _add_bare(self, number: int, line: JsonLine, at: Json) -> None:
        kind, role = line.get("type"), line.get("role")
        if kind in _SPEAKERS:
            role = role or kind
        if role in _SPEAKERS and kind in (None, "message", "user", "assistant"):
            message = line.get("message")
            inner = message.get("content") if isinstance(message, dict) else message
            self._add_message_item({**line, "role": role, "content": line.get("content", inner)}, at)
        elif isinstance(kind, str):
            self._add_item(number, line, at)
        elif self._meta is None and as_text(line.get("id")) and "timestamp" in line:
            self._add_meta(line)
        else:
            self._builder.skip(f"{line['record_type']} record" if "record_type" in line else "untyped line")

    # Items of the model's API -----------------------------------------------------------------------------------------

    def _add_item(self, number: int, item: JsonLine, at: Json) -> None:
        kind = item.get("type")
        if kind == "message" or (kind is None and item.get("role") in _SPEAKERS):
            self._add_message_item(item, at)
        elif kind in _CALLS:
            self._add_call_item(number, item, at)
        elif kind in _OUTPUTS:
            self._add_output_item(number, item, at)
        else:
            self._builder.skip(f"{kind} item" if isinstance(kind, str) else "untyped line")

    def _add_message_item(self, item: JsonLine, at: Json) -> None:
        role = item.get("role")
        if role not in _SPEAKERS:
            self._builder.skip(f"message of {role}" if isinstance(role, str) else UNKNOWN_SPEAKER)
            return
        data = "\n".join(texts(item.get("content"))) if role == "user" else ""
        if "<environment_context>" in data and (found := _CWD.search(data)):
            self._current_cwd = found[1] or found[2]
            self._cwd = self._cwd or self._current_cwd
        self._add_message("item", str(role), item.get("content"), at)

    def _add_call_item(self, number: int, item: JsonLine, at: Json) -> None:
        name = as_text(item.get("name")) or as_text(as_object(item.get("function")).get("name"))
        given = item.get("arguments", item.get("input", item.get("action")))
        call = as_text(item.get("call_id")) or as_text(item.get("id")) or f"{self._position}:{number}"
        self._unanswered[name or ""] = call
        self._add_call(call, name or ("shell" if item.get("type") == "local_shell_call" else None), given, at)

    def _add_output_item(self, number: int, item: JsonLine, at: Json) -> None:
        call = as_text(item.get("call_id")) or self._unanswered.pop(as_text(item.get("name")) or "", None)
        content, failed = _output(item.get("output", item.get("result")))
        self._add_result(call or f"{self._position}:{number}", content, at, failed=failed)

    # Events -----------------------------------------------------------------------------------------------------------

    def _add_event(self, number: int, event: JsonLine, at: Json) -> None:
        match event:
            case {"type": "user_message"}:
                self._add_message("event", "user", _event_content(event), at)
            case {"type": "agent_message"}:
                self._add_message("event", "assistant", _event_content(event), at)
            case {"type": "item_completed", "item": dict(item)}:
                if self._is_of_other_thread(event):
                    self._builder.skip("item of another thread")
                else:
                    self._add_thread_item(number, item, at)
            case {"type": "entered_review_mode"}:
                self._add_review(event, at)
            case {"type": "thread_rolled_back", "num_turns": int(turns)}:
                self._roll_back(turns)
            case {"type": "exec_command_end", "call_id": str(call)}:
                self._add_call_and_result(call, "shell", {"command": event.get("command")}, event, at)
            case {"type": "mcp_tool_call_end", "call_id": str(call), "invocation": dict(invocation)}:
                self._add_call_and_result(call, _tool(invocation), invocation.get("arguments"), event, at)
            case {"type": str(kind)}:
                self._turn_prompts = [] if kind in _TURN_ENDS else self._turn_prompts
                self._builder.skip(f"{kind} event")
            case _:
                self._builder.skip("untyped line")

    def _add_thread_item(self, number: int, item: JsonLine, at: Json) -> None:
        call = as_text(item.get("id")) or f"{self._position}:{number}"
        match item.get("type"):
            case "UserMessage":
                self._add_message("thread", "user", item.get("content"), at)
            case "AgentMessage":
                self._add_message("thread", "assistant", item.get("content"), at)
            case "Plan":
                self._add_message("thread", "assistant", item.get("text"), at)
            case "CommandExecution":
                self._add_call_and_result(call, "shell", {"command": item.get("command")}, item, at)
            case "McpToolCall":
                self._add_call_and_result(call, _tool(item), item.get("arguments"), item, at)
            case "FileChange":
                self._add_call_and_result(call, "apply_patch", {"changes": item.get("changes")}, item, at)
            case "EnteredReviewMode":
                self._add_review(item, at)
            case kind:
                self._builder.skip(f"{kind} of the thread" if isinstance(kind, str) else "untyped line")

    def _is_of_other_thread(self, event: JsonLine) -> bool:
        """Return whether a review agent said something, which has a rollout of its own."""
        thread, meta = as_text(event.get("thread_id")), self._meta or {}
        own = {as_text(meta.get("id")), as_text(meta.get("session_id"))} - {None}
        return thread is not None and bool(own) and thread not in own

    def _add_review(self, review: JsonLine, at: Json) -> None:
        """Add the instructions that the user wrote for a review; those for other targets are Codex's own."""
        target = as_object(review.get("target"))
        if target.get("type") == "custom" and as_text(target.get("instructions")):
            self._add_message("thread", "user", target.get("instructions"), at)
        else:
            self._builder.skip("start of a review")

    # Records ----------------------------------------------------------------------------------------------------------

    def _add_message(self, channel: Channel, role: str, content: Json, at: Json) -> None:
        kept = _content(content)
        words = _words(kept)
        if not kept or (not words and not any(block.get("type") == "image" for block in kept)):
            self._builder.skip("injected context" if joined(content).strip() else "message without content")
            return
        count = self._occurrences[channel]
        count[role, words] += 1
        key = (role, words, count[role, words])
        partner = self._partner(channel, role, words)
        if key in self._known or partner:
            self._known.add(key)
            if partner:
                partner.channels.add(channel)
            self._builder.skip("repeated message")
            return
        self._known.add(key)
        record = _CodexRecord(role, [*kept], digest(*map(str, key)), at, words, {channel})
        self._append(record)
        self._turn = [*self._turn, record] if self._turn and self._turn[0].role == role else [record]

    def _partner(self, channel: Channel, role: str, words: str) -> _CodexRecord | None:
        """Return this turn's record from another channel whose words contain these or are contained in them.

        An event has fewer words than its item if there are citations, plans or text that an editor added.
        """
        for record in self._turn:
            both = bool(words and record.words) and (record.words in words or words in record.words)
            if both and record.role == role and channel not in record.channels:
                return record
        return None

    def _add_call(self, call: str, name: Json, given: Json, at: Json) -> None:
        if call in self._calls:
            self._builder.skip("repeated call")
            return
        self._calls.add(call)
        self._turn = []
        self._append(_CodexRecord("assistant", [call_block(call, name, arguments(given))], call, at))

    def _add_result(self, call: str, content: Json, at: Json, *, failed: bool) -> None:
        if call in self._results:
            self._builder.skip("repeated result")
            return
        self._results.add(call)
        self._turn = []
        self._append(_CodexRecord("user", [result_block(call, content, failed=failed)], f"{call}/result", at))

    def _add_call_and_result(self, call: str, name: str, given: Json, data: JsonLine, at: Json) -> None:
        """Add a call and its result, as events and the thread contain them."""
        self._add_call(call, name, given, at)
        shown = next((data[key] for key in ("aggregated_output", "stdout", "result", "error") if data.get(key)), None)
        exit_code = data.get("exit_code", data.get("exitCode"))
        failed = bool(exit_code) or bool(data.get("error")) or data.get("status") == "failed"
        self._add_result(call, result_text(_unwrapped(shown)), at, failed=failed or "Err" in as_object(shown))

    def _drop_summary(self, compacted: JsonLine) -> None:
        """Drop the message just before a compaction if it is the summary that the compaction has."""
        history = [part for part in as_list(compacted.get("replacement_history")) if _is_of_user(part)]
        kept = ["".join(text.split()) for text in texts([compacted.get("message"), *history])]
        last = self._records[-1] if self._records else None
        if last and last.role == "assistant" and last.words and any(last.words in text for text in kept):
            self._builder.skip("compaction summary")
            self._records.pop()
            self._turn = []

    def _roll_back(self, turns: int) -> None:
        """Drop the last turns, each of which begins with a message of the user."""
        begins = [position for position, record in enumerate(self._records) if record.role == "user" and record.words]
        if turns <= 0 or not begins:
            return
        start = begins[max(0, len(begins) - turns)]
        self._builder.skip("message that was rolled back", len(self._records) - start)
        del self._records[start:]
        self._turn, self._turn_prompts = [], []


def _is_agent(meta: JsonLine) -> bool:
    """Return whether a thread is a sub-agent, such as a reviewer, whose orders come from the assistant."""
    named = (*as_object(meta.get("source")), meta.get("source"), meta.get("thread_source"))
    return any(_SEPARATORS.sub("", name).lower().startswith("subagent") for name in named if isinstance(name, str))


def _parent(meta: JsonLine) -> str | None:
    """Return the thread that started a sub-agent, or None if that is not known."""
    [agent] = [*as_object(meta.get("source")).values()][:1] or [None]
    spawned = as_object(as_object(agent).get("thread_spawn"))
    names = (spawned.get("parent_thread_id"), meta.get("parent_thread_id"), meta.get("session_id"), origin_of(meta))
    return next((name for name in map(as_text, names) if name and name != as_text(meta.get("id"))), None)


def _repository(meta: JsonLine) -> str | None:
    """Return the project that a header names by the address of its repository, or None."""
    address = as_text(as_object(meta.get("git")).get("repository_url"))
    return repository_path(address) if address else None


def _named_time(name: str) -> datetime | None:
    """Return the time in the name of a rollout, or None."""
    found = _NAMED_TIME.match(name)
    try:
        return datetime.fromisoformat(f"{found[1]}T{found[2]}:{found[3]}:{found[4]}").astimezone() if found else None
    except (ValueError, OverflowError):
        return None


def _is_of_user(item: Json) -> bool:
    return as_object(item).get("role") == "user"


def _content(content: Json) -> list[Block]:
    """Return the blocks of a message: texts that were not injected, and images."""
    kept: list[Block] = []
    for part in [content] if isinstance(content, str) else as_list(content):
        if isinstance(part, dict) and part.get("type") in _IMAGES:
            image = image_at(part.get("image_url")) or image_block(part.get("data"), part.get("mimeType"))
            kept += [image] if image else []
        else:
            kept += [text_block(text) for text in texts(part) if _FRAMES.sub("", strip_injected(text)).strip()]
    return kept


def _event_content(event: JsonLine) -> Json:
    parts: list[Json] = [event.get("message")]
    return parts + [{"type": "input_image", "image_url": url} for url in as_list(event.get("images"))]


def _words(blocks: list[Block]) -> str:
    """Return the words without white space, in which the channels differ."""
    record = "\n".join(strip_injected(str(block["text"])) for block in blocks if block["type"] == "text")
    return "".join(_FRAMES.sub("", record).split())


def _tool(invocation: JsonLine) -> str:
    server, tool = as_text(invocation.get("server")), as_text(invocation.get("tool"))
    return f"mcp__{server}__{tool}" if server else tool or "tool"


def _output(output: Json) -> tuple[Json, bool]:
    """Return a tool's result and whether it failed; shells wrap it in JSON with the exit code."""
    if isinstance(output, str) and output.startswith('{"'):
        inner = as_object(arguments(output))
        if isinstance(inner.get("output"), str):
            return inner["output"], bool(as_object(inner.get("metadata")).get("exit_code"))
    wrapper = as_object(output)
    failed = wrapper.get("success") is False
    content: Json = wrapper.get("content")
    if isinstance(content, list):
        return _output(content)[0], failed
    if isinstance(output, list) and any(as_object(part).get("type") in _IMAGES for part in output):
        return [*_content(output)] or result_text(output), False
    return result_text(output), failed


def _unwrapped(shown: Json) -> Json:
    """Return the content of a Rust result, `{"Ok": …}` or `{"Err": …}`, or the value itself."""
    inner = as_object(shown)
    return inner.get("Ok", inner.get("Err", shown))
