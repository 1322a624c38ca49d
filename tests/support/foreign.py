"""Other people's transcripts as messages of ours, by our own readers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from esker.server.agents.compressed import opened
from esker.server.agents.readers import READERS, client_of, transcripts_in
from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.conversation.valid_blocks import as_blocks


def conversations(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield a name and the messages, as the API takes them, of each conversation in a folder of transcripts."""
    for path in transcripts_in(folder):
        client = client_of(path, opened)
        assert client is not None, path
        for transcript in READERS[client](path, opened).transcripts:
            name = f"{client}/{path.relative_to(folder)}/{transcript.external_id}"
            yield name, [_message(entry) for entry in transcript.entries]


def _message(entry: TranscriptEntry) -> dict[str, Any]:
    at = {"sent_at": entry.sent_at.isoformat()} if entry.sent_at else {}
    return {"external_id": entry.external_id, "role": entry.role, "content": as_blocks(entry.content)} | at
