"""A transcript as the messages that an agent CLI sends with every request, and the moments of its compactions."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.conversation.valid_blocks import as_blocks

Message = dict[str, Any]

_SENT_BLOCKS = ("text", "tool_use", "tool_result")


@dataclass(frozen=True, slots=True)
class History:
    """Messages of alternating roles, and the time at which each was sent; None if the transcript does not say."""

    messages: list[Message] = field(default_factory=list[Message])
    times: list[datetime | None] = field(default_factory=list[datetime | None])

    def requests(self) -> Iterator[int]:
        """Yield the places of the answers: the messages before each are a request."""
        yield from (place for place, message in enumerate(self.messages) if place and message["role"] == "assistant")


class Noted(NamedTuple):
    """A compaction that a transcript notes."""

    at: datetime
    summary: str


def history_of(entries: Sequence[TranscriptEntry], most: int) -> History:
    """Return the first `most` messages of a transcript, with calls that have their results."""
    found = History()
    for entry in entries[:most]:
        kept, role = sent_blocks(entry), "assistant" if entry.role == "assistant" else "user"
        if not kept or (not found.messages and role == "assistant"):
            continue
        if found.messages and found.messages[-1]["role"] == role:
            found.messages[-1]["content"] += kept
            found.times[-1] = entry.sent_at
        else:
            found.messages.append({"role": role, "content": kept})
            found.times.append(entry.sent_at)
    return found


def sent_blocks(entry: TranscriptEntry) -> list[Message]:
    """Return the blocks of an entry that a client sends again with later requests."""
    blocks = cast("list[Message]", as_blocks(entry.content))
    return [block for block in blocks if block["type"] in _SENT_BLOCKS]


def noted_compactions(file: Path) -> list[Noted]:
    """Return the compactions that a transcript of pi or Claude Code notes, with their summaries."""
    found: list[Noted] = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if '"compaction"' not in line and '"isCompactSummary"' not in line:
            continue
        try:
            noted: Message = json.loads(line)
        except ValueError:
            continue
        if noted.get("type") == "compaction":
            summary = noted.get("summary")
        else:
            summary = noted["message"]["content"] if noted.get("isCompactSummary") else None
        if isinstance(summary, str):
            found.append(Noted(datetime.fromisoformat(noted["timestamp"]), summary))
    return found
