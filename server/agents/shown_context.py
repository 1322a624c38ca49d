"""Tells whether a resumed session still contains the pack that its hook would add again."""

import json
import mmap
from contextlib import suppress
from pathlib import Path

from esker.server.agents.hook_input import HookEvent
from esker.server.agents.regular_file import opened_plain

# The line of a transcript that begins a new context; a client that is missing here never gets the same pack twice.
_COMPACTIONS = {"codex": b'"type":"compacted"', "gemini-cli": b'"$set":{"messages"'}


def is_in_transcript(event: HookEvent, context: str) -> bool:
    """Return whether the transcript contains the context since its last compaction.

    These clients keep the context of hooks in the transcript and show it to the model again after a resume.
    """
    compaction = _COMPACTIONS.get(event.client)
    if compaction is None or event.transcript is None:
        return False
    written = json.dumps(context, ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    # A file that is missing, empty or not readable contains nothing.
    with suppress(OSError, ValueError):
        return _contains(event.transcript, written, compaction)
    return False


def _contains(path: Path, written: bytes, compaction: bytes) -> bool:
    with opened_plain(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        since = max(text.rfind(compaction), 0)
        # The line that reports a compaction lists what is left of the context.
        begin = text.rfind(b"\n", 0, since) + 1
        return text.find(written, begin) >= 0
