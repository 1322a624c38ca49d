"""What an agent CLI tells a hook: JSON on standard input, in the words of each client."""

import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

HookStep = Literal["start", "prompt", "turn_end", "compact", "end"]
"""What happens in a session, whatever a client calls it."""

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
    "gemini-cli": {
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "AfterAgent": "turn_end",
        "PreCompress": "compact",
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
}
"""The events of each client that a hook knows, and what they mean."""

_DECODER = json.JSONDecoder()
_MOST_BYTES = 32 * 1024 * 1024
_CHUNK = 65_536
_LONGEST_PAUSE = 1.0


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What a client said of one event; None where it said nothing."""

    client: str
    event: str
    step: HookStep
    session: str | None
    cwd: str
    transcript: Path | None
    prompt: str | None
    by_user: bool
    source: str | None
    turn: str | None
    answer: str | None


def told(client: str, event: str, given: Mapping[str, Any]) -> HookEvent:
    """Return what a client said; anything of another type than expected counts as not said."""
    roots = given.get("workspace_roots")
    first: object = cast("list[object]", roots)[0] if isinstance(roots, list) and roots else None
    # A sub-agent's transcript is another file than that of the session that it worked for.
    transcript = _text(given, "agent_transcript_path") or _text(given, "transcript_path")
    return HookEvent(
        client=client,
        event=event,
        step=STEPS[client][event],
        session=_text(given, "session_id", "conversation_id", "sessionID"),
        cwd=_text(given, "cwd") or (first if isinstance(first, str) and first else os.getcwd()),
        transcript=Path(transcript).expanduser() if transcript else None,
        prompt=_text(given, "prompt"),
        # Claude Code also submits what no person typed: what woke a loop, what a poll found.
        by_user=event != "UserPromptSubmit" or _text(given, "source") in (None, "user"),
        source=_text(given, "source"),
        turn=_text(given, "turn_id", "prompt_id", "generation_id"),
        answer=_text(given, "last_assistant_message", "prompt_response"),
    )


def _text(given: Mapping[str, Any], *names: str) -> str | None:
    return next((value for name in names if isinstance(value := given.get(name), str) and value.strip()), None)


def read_object(descriptor: int) -> dict[str, Any]:
    """Return the JSON object on a file descriptor as soon as it is whole, though the other end stays open.

    Nothing, half an object or something else, after a pause of a second, is an empty one.
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
        # Parsing again at each piece would be quadratic; an object that is whole ends with its brace.
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
