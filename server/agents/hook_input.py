"""The input of a hook: JSON on standard input, in the format of each client."""

import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from esker.server.core.json_input import as_object

HookStep = Literal["start", "prompt", "turn_end", "compact", "end"]
"""A kind of event, the same for all clients."""

_CLAUDE: Mapping[str, HookStep] = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "Stop": "turn_end",
    "SubagentStop": "turn_end",
    "PreCompact": "compact",
    "SessionEnd": "end",
}
STEPS: Mapping[str, Mapping[str, HookStep]] = {
    "claude-code": _CLAUDE,
    "codex": _CLAUDE,
    # Gemini CLI fires PreCompress before every call of a model, so that event says nothing about compactions.
    "gemini-cli": {
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "AfterAgent": "turn_end",
        "SessionEnd": "end",
    },
    "cursor": {
        "sessionStart": "start",
        "stop": "turn_end",
        "preCompact": "compact",
        "sessionEnd": "end",
    },
    "opencode": {
        "session.created": "start",
        "chat.message": "prompt",
        "session.idle": "turn_end",
        "session.compacting": "compact",
        "session.deleted": "end",
    },
    "pi": {
        "session_start": "start",
        "before_agent_start": "prompt",
        "agent_end": "turn_end",
        "session_before_compact": "compact",
        "session_shutdown": "end",
    },
    "copilot": {
        "sessionStart": "start",
        "userPromptSubmitted": "prompt",
        "agentStop": "turn_end",
        "preCompact": "compact",
        "sessionEnd": "end",
    },
}
"""The step of each client's events that a hook handles."""

_DECODER = json.JSONDecoder()
_MOST_BYTES = 32 * 1024 * 1024
_CHUNK = 65_536
_LONGEST_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A text of a prompt, under the id that the client's own store has for it."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event as the client described it, and its time of arrival; None for fields that the client did not give.

    `by_agent`: the prompt is the order of another agent; `parts` are those of the prompt, if they have ids.
    """

    client: str
    name: str
    step: HookStep
    session: str | None
    cwd: str
    transcript: Path | None
    prompt: str | None
    by_user: bool
    by_agent: bool
    parts: tuple[PromptPart, ...]
    source: str | None
    turn: str | None
    answer: str | None
    received_at: datetime


def hook_event(client: str, name: str, fields: Mapping[str, Any], received_at: datetime) -> HookEvent:
    """Return the event that a client's JSON describes; a field of another type than expected counts as missing."""
    roots = fields.get("workspace_roots")
    first: object = cast("list[object]", roots)[0] if isinstance(roots, list) and roots else None
    by_agent = fields.get("by_agent") is True
    session = _text(fields, "session_id", "conversation_id", "sessionID", "sessionId")
    # A sub-agent has a transcript of its own, beside that of the session that started it.
    transcript = _text(fields, "agent_transcript_path", "transcript_path", "transcriptPath")
    if client == "copilot" and session and not transcript:
        transcript = f"{os.environ.get('COPILOT_HOME') or '~/.copilot'}/session-state/{session}/events.jsonl"
    return HookEvent(
        client=client,
        name=name,
        step=STEPS[client][name],
        session=session,
        cwd=_text(fields, "cwd") or (first if isinstance(first, str) and first else os.getcwd()),
        transcript=Path(transcript).expanduser() if transcript else None,
        prompt=_text(fields, "prompt"),
        # Claude Code also submits prompts that the user did not type, for instance from loops and polls.
        by_user=not by_agent and (name != "UserPromptSubmit" or _text(fields, "source") in (None, "user")),
        by_agent=by_agent,
        parts=_parts(fields.get("parts")),
        source=_text(fields, "source"),
        turn=_text(fields, "turn_id", "prompt_id", "generation_id"),
        answer=_text(fields, "last_assistant_message", "prompt_response"),
        received_at=received_at,
    )


def _parts(value: object) -> tuple[PromptPart, ...]:
    """Return the parts of a prompt; none if any of them has no id."""
    listed = cast("list[object]", value) if isinstance(value, list) else []
    fields = [as_object(part) for part in listed]
    found = [PromptPart(name, text) for part in fields if (name := _text(part, "id")) and (text := _text(part, "text"))]
    return tuple(found) if len(found) == len(listed) else ()


def _text(fields: Mapping[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value.strip()), None)


def read_object(descriptor: int) -> dict[str, Any]:
    """Return the JSON object on a file descriptor as soon as it is complete, even if the other end stays open.

    Returns an empty object if nothing complete has come when a second passes without input.
    """
    chunks: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_copy, args=(descriptor, chunks), daemon=True).start()
    text = b""
    deadline = time.monotonic() + _LONGEST_PAUSE
    while len(text) < _MOST_BYTES:
        try:
            chunk = chunks.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            break
        text += chunk
        deadline = time.monotonic() + _LONGEST_PAUSE
        # Parsing at every chunk would be quadratic; a complete object ends with a brace.
        if not chunk or text.rstrip().endswith(b"}"):
            found = _object(text)
            if found is not None or not chunk:
                return found or {}
    return _object(text) or {}


def _copy(descriptor: int, chunks: "queue.Queue[bytes]") -> None:
    while True:
        try:
            chunk = os.read(descriptor, _CHUNK)
        except OSError:
            chunk = b""
        chunks.put(chunk)
        if not chunk:
            return


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value, _ = _DECODER.raw_decode(text.decode("utf-8-sig", "replace").lstrip())
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
