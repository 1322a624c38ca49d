"""The rollouts of Codex: JSON lines that tell one conversation up to three times.

A turn stands there as items of the model's API (`response_item`), as events for the screen (`event_msg`) and, in newer
builds, as completed items of the thread (`item_completed`). Which of the three are there, and which comes first,
differs between builds, so whatever comes first is taken and its echoes are left out: a call by its id, a message by
who says what for the how many-th time. Early builds wrote the items without an envelope.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from esker.server.agents.content import (
    Block,
    answered,
    arguments,
    as_list,
    as_object,
    as_text,
    call_block,
    image_at,
    image_block,
    joined,
    result_block,
    text_block,
    texts,
)
from esker.server.agents.lines import JsonLine, Opener, json_lines
from esker.server.agents.reader_entries import Gathering, digest, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.conversation.injected import strip_injected
from esker.server.core.json_input import Json

CLIENT = "codex"

Telling = Literal["item", "event", "thread"]
"""In which of its three ways a rollout tells something."""

_ENVELOPES = ("session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state")
_BARE = ("message", "user", "assistant", "reasoning")
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", "function_result")
_SPEAKERS = ("user", "assistant")
_TURN_ENDS = ("turn_aborted", "task_complete")
_CWD = re.compile(r"<cwd>\s*([^<]{1,4096}?)\s*</cwd>")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What an item has and the event of it has not: the frame of an image, and where in memory an answer comes from.
_FRAMES = re.compile(r"</?image\b[^>]{0,200}>|<oai-mem-citation>[\s\S]*?</oai-mem-citation>")
_IMAGES = ("input_image", "image", "localImage", "local_image")


def read_transcript(path: Path, opener: Opener = opened_plain) -> ParsedTranscripts:
    """Read a rollout, which is one session. Raises OSError when it cannot be opened."""
    gathering = Gathering(CLIENT, path)
    rollout = _Rollout(gathering, stem(path))
    for number, line in json_lines(path, gathering.left_out, opener):
        gathering.recognised = gathering.recognised or recognises(line) or recognises_bare(line)
        rollout.take(number, line)
    rollout.finish()
    return gathering.reading()


def recognises(line: JsonLine) -> bool:
    """Tell whether Codex wrote a line."""
    return line.get("type") in _ENVELOPES and isinstance(line.get("payload"), dict)


def recognises_bare(line: JsonLine) -> bool:
    """Tell whether a line may be one of an early build, which says little about itself."""
    kind = line.get("type")
    if kind in (*_CALLS, *_OUTPUTS) or "record_type" in line:
        return True
    if not isinstance(kind, str):
        return line.get("role") in _SPEAKERS and bool({"content", "message"} & line.keys())
    return kind in _BARE and not isinstance(line.get("message"), dict)


@dataclass(slots=True)
class _CodexRecord:
    """A message, a call or a result, and the ways in which it was told; `words` are empty for calls and results."""

    role: str
    content: list[Json]
    name: str
    at: Json
    words: str = ""
    told: set[Telling] = field(default_factory=set[Telling])
    cwd: str | None = None


class _Rollout:
    """The conversation of a rollout while it is read."""

    def __init__(self, gathering: Gathering, name: str) -> None:
        self._gathering = gathering
        found = _UUID.search(name)
        self._place = name
        self._session = found[0] if found else name
        self._meta: JsonLine | None = None
        self._cwd: str | None = None
        self._here: str | None = None  # where the session is by now
        self._asked: list[_CodexRecord] = []  # what the person has said in the turn that begins
        self._said: list[_CodexRecord] = []
        self._times: defaultdict[Telling, Counter[tuple[str, str]]] = defaultdict(Counter)
        self._known: set[tuple[str, str, int]] = set()
        self._turn: list[_CodexRecord] = []  # what the same speaker has said since the other one or a tool did
        self._calls: set[str] = set()
        self._results: set[str] = set()
        self._unanswered: dict[str, str] = {}

    def take(self, number: int, line: JsonLine) -> None:
        """Take a line, with or without an envelope."""
        payload = line.get("payload")
        at = line.get("timestamp", line.get("created_at", ""))
        if not isinstance(payload, dict):
            self._take_bare(number, line, at)
            return
        match line.get("type"):
            case "session_meta":
                self._take_meta(payload)
            case "response_item":
                self._take_item(number, payload, at)
            case "event_msg":
                self._take_event(number, payload, at)
            case "compacted":
                self._gathering.skip("compaction summary")
            case kind:
                if kind == "turn_context":
                    self._enter(as_text(payload.get("cwd")))
                self._gathering.skip(f"{kind} line" if isinstance(kind, str) else "untyped line")

    def finish(self) -> None:
        """Hand the conversation over, under the name that its first line gave it."""
        meta = self._meta or {}
        session = as_text(meta.get("id")) or as_text(meta.get("session_id")) or self._session
        parent = _parent(meta)
        if parent:
            session = f"{parent}/agent-{session}"
        self._gathering.locate(session, as_text(meta.get("cwd")) or self._cwd)
        for said in self._said:
            # It is the assistant that gives a sub-agent its orders.
            role = "assistant" if parent and said.words else said.role
            self._gathering.add(session, role, said.content, name=said.name, at=said.at, cwd=said.cwd)

    def _enter(self, cwd: str | None) -> None:
        """Note the directory of a turn; older builds do so behind what the person said, newer ones before it."""
        self._cwd = self._cwd or cwd
        self._here = cwd or self._here
        for said in self._asked:
            said.cwd = self._here
        self._asked = []

    def _keep(self, said: _CodexRecord) -> None:
        said.cwd = self._here
        self._said.append(said)
        self._asked = [*self._asked, said] if said.role == "user" and said.words else []

    def _take_meta(self, payload: JsonLine) -> None:
        if self._meta is None:
            self._meta = payload
            self._here = as_text(payload.get("cwd"))
        self._gathering.skip("session_meta line")

    def _take_bare(self, number: int, line: JsonLine, at: Json) -> None:
        kind, role = line.get("type"), line.get("role")
        if kind in _SPEAKERS:
            role = role or kind
        if role in _SPEAKERS and kind in (None, "message", "user", "assistant"):
            message = line.get("message")
            inner = message.get("content") if isinstance(message, dict) else message
            self._take_message({**line, "role": role, "content": line.get("content", inner)}, at)
        elif isinstance(kind, str):
            self._take_item(number, line, at)
        elif self._meta is None and as_text(line.get("id")) and "timestamp" in line:
            self._take_meta(line)
        else:
            self._gathering.skip("untyped line")

    # Items of the model's API -----------------------------------------------------------------------------------------

    def _take_item(self, number: int, item: JsonLine, at: Json) -> None:
        kind = item.get("type")
        if kind == "message" or (kind is None and item.get("role") in _SPEAKERS):
            self._take_message(item, at)
        elif kind in _CALLS:
            self._take_call(number, item, at)
        elif kind in _OUTPUTS:
            self._take_output(number, item, at)
        else:
            self._gathering.skip(f"{kind} item" if isinstance(kind, str) else "untyped line")

    def _take_message(self, item: JsonLine, at: Json) -> None:
        role = item.get("role")
        if role not in _SPEAKERS:
            self._gathering.skip(f"message of {role}" if isinstance(role, str) else "message without a role")
            return
        told = "\n".join(texts(item.get("content"))) if role == "user" else ""
        if "<environment_context>" in told and (found := _CWD.search(told)):
            self._here = found[1]
        self._say("item", str(role), item.get("content"), at)

    def _take_call(self, number: int, item: JsonLine, at: Json) -> None:
        name = as_text(item.get("name")) or as_text(as_object(item.get("function")).get("name"))
        given = item.get("arguments", item.get("input", item.get("action")))
        call = as_text(item.get("call_id")) or as_text(item.get("id")) or f"{self._place}:{number}"
        self._unanswered[name or ""] = call
        self._call(call, name or ("shell" if item.get("type") == "local_shell_call" else None), given, at)

    def _take_output(self, number: int, item: JsonLine, at: Json) -> None:
        call = as_text(item.get("call_id")) or self._unanswered.pop(as_text(item.get("name")) or "", None)
        content, failed = _output(item.get("output", item.get("result")))
        self._answer(call or f"{self._place}:{number}", content, at, failed=failed)

    # Events -----------------------------------------------------------------------------------------------------------

    def _take_event(self, number: int, event: JsonLine, at: Json) -> None:
        match event:
            case {"type": "user_message"}:
                self._say("event", "user", _event_content(event), at)
            case {"type": "agent_message"}:
                self._say("event", "assistant", _event_content(event), at)
            case {"type": "item_completed", "item": dict(item)}:
                self._take_thread_item(number, item, at)
            case {"type": "thread_rolled_back", "num_turns": int(turns)}:
                self._roll_back(turns)
            case {"type": "exec_command_end", "call_id": str(call)}:
                self._ran(call, "shell", {"command": event.get("command")}, event, at)
            case {"type": "mcp_tool_call_end", "call_id": str(call), "invocation": dict(invocation)}:
                self._ran(call, _tool(invocation), invocation.get("arguments"), event, at)
            case {"type": str(kind)}:
                self._asked = [] if kind in _TURN_ENDS else self._asked
                self._gathering.skip(f"{kind} event")
            case _:
                self._gathering.skip("untyped line")

    def _take_thread_item(self, number: int, item: JsonLine, at: Json) -> None:
        call = as_text(item.get("id")) or f"{self._place}:{number}"
        match item.get("type"):
            case "UserMessage":
                self._say("thread", "user", item.get("content"), at)
            case "AgentMessage":
                self._say("thread", "assistant", item.get("content"), at)
            case "Plan":
                self._say("thread", "assistant", item.get("text"), at)
            case "CommandExecution":
                self._ran(call, "shell", {"command": item.get("command")}, item, at)
            case "McpToolCall":
                self._ran(call, _tool(item), item.get("arguments"), item, at)
            case "FileChange":
                self._ran(call, "apply_patch", {"changes": item.get("changes")}, item, at)
            case kind:
                self._gathering.skip(f"{kind} of the thread" if isinstance(kind, str) else "untyped line")

    # What is kept -----------------------------------------------------------------------------------------------------

    def _say(self, telling: Telling, role: str, content: Json, at: Json) -> None:
        kept = _content(content)
        words = _words(kept)
        if not kept or (not words and not any(block.get("type") == "image" for block in kept)):
            self._gathering.skip("injected context" if joined(content).strip() else "message without content")
            return
        count = self._times[telling]
        count[role, words] += 1
        key = (role, words, count[role, words])
        partner = self._partner(telling, role, words)
        if key in self._known or partner:
            self._known.add(key)
            if partner:
                partner.told.add(telling)
            self._gathering.skip("message that is told twice")
            return
        self._known.add(key)
        said = _CodexRecord(role, [*kept], digest(*map(str, key)), at, words, {telling})
        self._keep(said)
        self._turn = [*self._turn, said] if self._turn and self._turn[0].role == role else [said]

    def _partner(self, telling: Telling, role: str, words: str) -> _CodexRecord | None:
        """Return what was told in another way in this turn and holds these words, or stands in them.

        The words of an event are less than those of its item where there are citations, plans or what an editor shows.
        """
        for said in self._turn:
            both = bool(words and said.words) and (said.words in words or words in said.words)
            if both and said.role == role and telling not in said.told:
                return said
        return None

    def _call(self, call: str, name: Json, given: Json, at: Json) -> None:
        if call in self._calls:
            self._gathering.skip("call that is told twice")
            return
        self._calls.add(call)
        self._turn = []
        self._keep(_CodexRecord("assistant", [call_block(call, name, arguments(given))], call, at))

    def _answer(self, call: str, content: Json, at: Json, *, failed: bool) -> None:
        if call in self._results:
            self._gathering.skip("result that is told twice")
            return
        self._results.add(call)
        self._turn = []
        self._keep(_CodexRecord("user", [result_block(call, content, failed=failed)], f"{call}/result", at))

    def _ran(self, call: str, name: str, given: Json, told: JsonLine, at: Json) -> None:
        """Take a call and what came of it, as events and the thread tell them."""
        self._call(call, name, given, at)
        shown = next((told[key] for key in ("aggregated_output", "stdout", "result", "error") if told.get(key)), None)
        exit_code = told.get("exit_code", told.get("exitCode"))
        failed = bool(exit_code) or bool(told.get("error")) or told.get("status") == "failed"
        self._answer(call, answered(_unwrapped(shown)), at, failed=failed or "Err" in as_object(shown))

    def _roll_back(self, turns: int) -> None:
        """Drop the last turns, each of which begins with a person's message."""
        begins = [place for place, said in enumerate(self._said) if said.role == "user" and said.words]
        if turns <= 0 or not begins:
            return
        start = begins[max(0, len(begins) - turns)]
        self._gathering.skip("message that was rolled back", len(self._said) - start)
        del self._said[start:]
        self._turn, self._asked = [], []


def _parent(meta: JsonLine) -> str | None:
    """Return the thread that started this one as a sub-agent, or None."""
    agent = as_object(meta.get("source")).get("subagent")
    if agent is None:
        return None
    spawned = as_object(as_object(agent).get("thread_spawn")).get("parent_thread_id")
    return as_text(spawned) or as_text(meta.get("parent_thread_id")) or as_text(meta.get("session_id"))


def _content(content: Json) -> list[Block]:
    """Return the blocks of a message: texts that somebody said, and images."""
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
    """Return what is said, without white space, which the tellings of a message do not agree on."""
    said = "\n".join(strip_injected(str(block["text"])) for block in blocks if block["type"] == "text")
    return "".join(_FRAMES.sub("", said).split())


def _tool(invocation: JsonLine) -> str:
    server, tool = as_text(invocation.get("server")), as_text(invocation.get("tool"))
    return f"mcp__{server}__{tool}" if server else tool or "tool"


def _output(output: Json) -> tuple[Json, bool]:
    """Return what a tool answered, and whether it failed; shells wrap it into JSON that has the exit code beside it."""
    if isinstance(output, str) and output.startswith('{"'):
        inner = as_object(arguments(output))
        if isinstance(inner.get("output"), str):
            return inner["output"], bool(as_object(inner.get("metadata")).get("exit_code"))
    if isinstance(content := as_object(output).get("content"), list):
        return _output(content)[0], as_object(output).get("success") is False
    if isinstance(output, list) and any(as_object(part).get("type") in _IMAGES for part in output):
        return [*_content(output)] or answered(output), False
    return answered(output), as_object(output).get("success") is False


def _unwrapped(shown: Json) -> Json:
    """Return what stands in a result of Rust, `{"Ok": …}` or `{"Err": …}`, or the value itself."""
    inner = as_object(shown)
    return inner.get("Ok", inner.get("Err", shown))
