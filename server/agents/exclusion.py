"""What of a session is to be left alone: all of it, or what was said in a directory that it entered later."""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.agents.project import is_excluded, project_of
from esker.server.agents.transcript import Transcript, TranscriptEntry


def without_excluded(transcript: Transcript, exclude: Sequence[str]) -> Transcript | None:
    """Return a session without the messages that are of an excluded directory or project, or None for nothing of it.

    A session belongs to the directory in which it began: where that is excluded, all of it is. A message that does not
    say where it was said was said where the one before it was.
    """
    if not exclude:
        return transcript
    if is_excluded(transcript.cwd, transcript.project, exclude):
        return None
    left_alone = {transcript.cwd: False}
    kept: list[TranscriptEntry] = []
    here = transcript.cwd
    for entry in transcript.entries:
        here = entry.cwd or here
        if here not in left_alone:
            left_alone[here] = here is not None and is_excluded(here, project_of(here), exclude)
        if not left_alone[here]:
            kept.append(entry)
    return replace(transcript, entries=kept) if kept or not transcript.entries else None
