"""The transcripts that labels belong to: found below a path, and read as `esker ingest` reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from esker.server.agents import readers
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import Transcript
from esker.server.core.errors import InvalidInput
from evals.sessions.labels import SessionLabels


@dataclass(frozen=True, slots=True)
class LabelledSession:
    """A transcript with its labels. Message 1 is the first entry of the transcript."""

    labels: SessionLabels
    transcript: Transcript


def labelled_sessions(path: Path, labels: Sequence[SessionLabels]) -> list[LabelledSession]:
    """Return the labelled sessions at or below a path. Raises InvalidInput for none, and for labels that do not fit."""
    if not path.exists():
        raise InvalidInput(
            f"{path} does not exist.",
            hint="PATH is a folder of transcripts, or one transcript. Transcripts are not part of this repository.",
        )
    found = [_session(each, file) for each in labels if (file := next(_files(path, each), None))]
    if not found:
        names = ", ".join(each.transcript for each in labels)
        raise InvalidInput(
            f"No labelled transcript is at or below {path}.",
            hint=f"There are labels for {names}. --labels names a folder of other labels.",
        )
    return found


def _files(path: Path, labels: SessionLabels) -> Iterator[Path]:
    """Yield the transcript of labels; `path` may be the file itself, or a folder at any depth above it."""
    wanted = PurePosixPath(labels.transcript).parts
    for start in range(len(wanted) + 1):
        file = path.joinpath(*wanted[start:]).resolve()
        if file.is_file() and file.parts[-len(wanted) :] == wanted:
            yield file


def _session(labels: SessionLabels, file: Path) -> LabelledSession:
    client = readers.client_of(file)
    if client is None:
        raise InvalidInput(f"{file} is not a transcript in a format that Esker reads.")
    transcripts = readers.READERS[client](file, opened_plain).transcripts
    # A file may also contain the sessions of sub-agents.
    longest = max(transcripts, key=lambda each: len(each.entries))
    if labels.last_message() > len(longest.entries):
        raise InvalidInput(
            f"{labels.case}.toml names message {labels.last_message()}, and {file.name} has {len(longest.entries)}.",
            hint="Another version of the transcript was labelled: get that one, or correct the numbers.",
        )
    return LabelledSession(labels, longest)
