"""The readers of all clients, the detection of the client that wrote a file, and the places of session files."""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from esker.server.agents import claude_code, codex, copilot, cursor, gemini, opencode, pi
from esker.server.agents.content import joined
from esker.server.agents.database_file import beside
from esker.server.agents.folders import SkippedFiles, files_in, is_file, walked
from esker.server.agents.lines import JsonLine, Opener, SkippedLines, json_document, json_lines
from esker.server.agents.reader_entries import UNKNOWN_SPEAKER
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.json_input import Json

TranscriptReader = Callable[[Path, Opener], ParsedTranscripts]

READERS: dict[str, TranscriptReader] = {
    claude_code.CLIENT: claude_code.read_transcript,
    codex.CLIENT: codex.read_transcript,
    gemini.CLIENT: gemini.read_transcript,
    opencode.CLIENT: opencode.read_transcript,
    pi.CLIENT: pi.read_transcript,
    cursor.CLIENT: cursor.read_transcript,
    copilot.CLIENT: copilot.read_transcript,
}

# The client that recognises most lines wins, of several the first; the later ones check less.
_BY_LINE: tuple[tuple[str, Callable[[JsonLine], bool]], ...] = (
    (copilot.CLIENT, copilot.recognises),
    (pi.CLIENT, pi.recognises),
    (codex.CLIENT, codex.recognises),
    (gemini.CLIENT, gemini.recognises),
    (cursor.CLIENT, cursor.recognises),
    (claude_code.CLIENT, claude_code.recognises),
)
# Names of speakers in the lines of agents, and the keys under which lines have the speaker and the words.
_SPEAKERS = frozenset("user human assistant agent ai bot model gemini claude".split())
# The last words of the reasons for which readers skip lines of an unknown kind.
_NOUNS = ("line", "record", "item", "message")
_SPEAKER_KEYS = ("type", "role", "author", "sender", "speaker", "from", "kind")
_WORDS_KEYS = ("content", "message", "text", "parts", "body", "payload", "data")
# Lines of a file that are checked to detect its client.
_LINES_CHECKED = 200
_ENDINGS = (".jsonl", ".jsonl.zst", ".json", ".db")


def client_of(path: Path, opener: Opener = opened_plain) -> str | None:
    """Return the client that wrote a file, or None if none of them did. Raises OSError if it cannot be read."""
    if path.suffix in (".db", ".sqlite", ".sqlite3") or path.is_dir():
        storage = path.is_dir() and _is_storage(path)
        return opencode.CLIENT if storage or opencode.recognises_file(path) else None
    if path.suffix == ".json":
        return opencode.CLIENT if opencode.recognises_file(path) else _client_of(json_document(path, SkippedLines()))
    lines = [line for _, line in islice(json_lines(path, SkippedLines(), opener), _LINES_CHECKED)]
    counted = {client: sum(map(recognises, lines)) for client, recognises in _BY_LINE}
    client = max(counted, key=lambda name: counted[name])
    if counted[client]:
        return client
    return codex.CLIENT if any(map(codex.recognises_bare, lines)) else None


def looks_like_messages(path: Path, opener: Opener = opened_plain) -> bool:
    """Return whether a file that no reader recognises seems to contain what was said, in a format of its own."""
    if ".jsonl" not in path.suffixes:
        return False
    return any(_is_speech(line) for _, line in islice(json_lines(path, SkippedLines(), opener), _LINES_CHECKED))


def _is_speech(line: JsonLine) -> bool:
    named = any(isinstance(name := line.get(key), str) and name.lower() in _SPEAKERS for key in _SPEAKER_KEYS)
    return named and any(joined(line.get(key)).strip() for key in _WORDS_KEYS)


def misread(reading: ParsedTranscripts) -> list[str]:
    """Return the reasons for which a reader skipped what seem to be messages, if it found no message at all.

    Then the file is probably of another client, or of a build that writes another format.
    """
    if reading.transcripts:
        return []
    return [reason for reason in reading.skipped if reason == UNKNOWN_SPEAKER or _names_speech(reason)]


def _names_speech(reason: str) -> bool:
    kind, _, noun = reason.rpartition(" ")
    return kind in _SPEAKERS and noun in _NOUNS


def _client_of(document: Json) -> str | None:
    match document:
        case {"loglines": list()}:
            return claude_code.CLIENT
        case _:
            return gemini.CLIENT if gemini.recognises_document(document) else None


def transcripts_in(folder: Path, skipped: SkippedFiles | None = None) -> Iterator[Path]:
    """Yield the files below a folder that may be transcripts, in order; of an OpenCode storage folder the sessions,
    not the messages. Paths that cannot be read are recorded in `skipped`."""
    skipped = skipped or SkippedFiles()
    for parent, names, files in walked(folder, skipped):
        if _is_storage(parent):
            yield from (file for file in opencode.session_files(parent) if is_file(file, skipped))
            names[:] = []
        yield from (parent / name for name in files if _may_be_one(name) and is_file(parent / name, skipped))


def _may_be_one(name: str) -> bool:
    return name.endswith(_ENDINGS) and not name.endswith(".meta.json")


def _is_storage(folder: Path) -> bool:
    return os.path.isdir(folder / "session") and os.path.isdir(folder / "message")


def sessions(environ: Mapping[str, str], home: Path, skipped: SkippedFiles | None = None) -> dict[str, list[Path]]:
    """Return the files in which each client keeps its sessions on this machine, by client.

    Matching paths that cannot be read are recorded in `skipped`.
    """
    skipped = skipped or SkippedFiles()

    def files(folder: Path, *endings: str, inside: str = "") -> list[Path]:
        found = sorted(files_in(folder, lambda name: name.endswith(endings), skipped))
        return [path for path in found if not inside or inside in path.parts]

    data = Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
    rollouts = Path(environ.get("CODEX_HOME") or home / ".codex")
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    found: dict[str, list[Path]] = {
        claude_code.CLIENT: files(claude / "projects", ".jsonl"),
        codex.CLIENT: [
            *files(rollouts / "sessions", ".jsonl", ".jsonl.zst"),
            *files(rollouts / "archived_sessions", ".jsonl", ".jsonl.zst"),
        ],
        gemini.CLIENT: files(home / ".gemini" / "tmp", ".jsonl", ".json", inside="chats"),
        opencode.CLIENT: _opencode(data, skipped),
        pi.CLIENT: files(home / ".pi" / "agent" / "sessions", ".jsonl"),
        cursor.CLIENT: files(home / ".cursor" / "projects", ".jsonl", inside="agent-transcripts"),
        copilot.CLIENT: files(Path(environ.get("COPILOT_HOME") or home / ".copilot") / "session-state", ".jsonl"),
    }
    return {client: paths for client, paths in found.items() if paths}


def _opencode(data: Path, skipped: SkippedFiles) -> list[Path]:
    """Return the databases, or if there are none the session files of older builds, which a database has replaced."""
    databases = [path for path in sorted(data.glob("opencode*.db")) if is_file(path, skipped)]
    return databases or [path for path in opencode.session_files(data / "storage") if is_file(path, skipped)]


def stamp(path: Path) -> list[int] | None:
    """Return values that change whenever a file does; None if its messages are in other files. Raises OSError."""
    if path.suffix == ".json" and opencode.recognises_file(path):
        return None
    values: list[int] = []
    for file in (path, beside(path, "-wal")):
        if file == path or file.exists():
            status = file.stat()
            values += [status.st_size, status.st_mtime_ns, status.st_ino]
    return values
