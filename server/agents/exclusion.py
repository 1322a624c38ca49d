"""Exclusion of sessions, or of the messages written after a session entered an excluded directory."""

from collections.abc import Sequence
from dataclasses import replace

from esker.server.agents.project import is_excluded, project_of
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.config.home import is_model_folder


def without_excluded(transcript: Transcript, exclude: Sequence[str]) -> Transcript | None:
    """Return a session without the messages of excluded directories and projects, or None if nothing is left.

    If the directory in which the session began is excluded, all of it is. A message without a directory has that of the
    message before it.
    """
    if not exclude:
        return None if is_model_folder(transcript.cwd) else transcript
    if is_excluded(transcript.cwd, transcript.project, exclude):
        return None
    excluded = {transcript.cwd: False}
    kept: list[TranscriptEntry] = []
    directory = transcript.cwd
    for entry in transcript.entries:
        directory = entry.cwd or directory
        if directory not in excluded:
            excluded[directory] = directory is not None and is_excluded(directory, project_of(directory), exclude)
        if not excluded[directory]:
            kept.append(entry)
    return replace(transcript, entries=kept) if kept or not transcript.entries else None
