"""A transcript as a reader found it, whatever CLI wrote it."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from esker.server.core.json_input import Json


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message of a transcript, in the shape that the server takes.

    `cwd` is where the session was when it was said, if the client says so; the server is not told.
    """

    external_id: str
    role: str
    content: Json
    sent_at: datetime | None
    cwd: str | None = None


@dataclass(slots=True)
class Transcript:
    """The messages of one session, in the order of the file."""

    client: str
    external_id: str
    cwd: str | None = None
    project: str | None = None
    entries: list[TranscriptEntry] = field(default_factory=list[TranscriptEntry])


@dataclass(slots=True)
class ParsedTranscripts:
    """What a file held: its sessions, how many lines were left out, by reason, and the numbers of broken lines.

    `recognised` says whether anything in it was of the client's making, `unfinished` that something was left for the
    next reading, since it was still being written.
    """

    transcripts: list[Transcript]
    skipped: Counter[str]
    broken: list[int]
    recognised: bool
    unfinished: bool = False
