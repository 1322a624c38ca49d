"""Transcript files for tests, and what a person would see of a transcript."""

import json
from pathlib import Path
from typing import Any

from esker.server.agents.transcript import ParsedTranscripts, Transcript, TranscriptEntry


def written(path: Path, *lines: Any) -> Path:
    """Write a file of JSON lines; bytes are written as they are."""
    raw = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path


def only(reading: ParsedTranscripts) -> Transcript:
    """Return the one session of a reading."""
    [transcript] = reading.transcripts
    return transcript


def shown(transcript: Transcript) -> list[str]:
    """Return a line for each message: who says what, calls what, was answered what."""
    return [f"{entry.role}: {_shown(entry)}" for entry in transcript.entries]


def _shown(entry: TranscriptEntry) -> str:
    if isinstance(entry.content, str):
        return entry.content
    assert isinstance(entry.content, list)
    return " + ".join(_block(block) for block in entry.content)


def _block(block: Any) -> str:
    match block:
        case {"type": "text", "text": text}:
            return text
        case {"type": "tool_use", "name": name, "input": given}:
            return f"{name}({json.dumps(given)})"
        case {"type": "tool_result", "content": content}:
            return f"{'failed' if block.get('is_error') else 'got'} {content}"
        case _:
            return f"[{block['type']}]"


def names(transcript: Transcript) -> list[str]:
    """Return the external ids of the messages."""
    return [entry.external_id for entry in transcript.entries]
