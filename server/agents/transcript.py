"""A transcript as readers return it, the same for every client."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from esker.server.core.json_input import Json


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message of a transcript, as the server accepts it.

    `cwd` is the session's directory at that time, if the client records it; it is not sent to the server. `unique`: the
    client gives the id to no other message in any session, so an equal one in another session is a copy of a fork.
    """

    external_id: str
    role: str
    content: Json
    sent_at: datetime | None
    cwd: str | None = None
    unique: bool = False


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
    """The contents of a file: its sessions, the number of skipped lines by reason, and the numbers of broken lines.

    `recognised`: the client wrote at least one line; `unfinished`: something was still being written and is left for
    the next reading.
    """

    transcripts: list[Transcript]
    skipped: Counter[str]
    broken: list[int]
    recognised: bool
    unfinished: bool = False
