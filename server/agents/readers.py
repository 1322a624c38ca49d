"""The clients whose transcripts can be read: how, which file is whose, and where this machine keeps them."""

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from esker.server.agents import claude_code, codex, copilot, cursor, gemini, opencode, pi
from esker.server.agents.database_file import beside
from esker.server.agents.folders import Aside, files_in, is_file, walked
from esker.server.agents.lines import JsonLine, Opener, SkippedLines, json_document, json_lines
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

# Who says that a line is theirs is believed, in this order: the later ones look at less.
_BY_LINE: tuple[tuple[str, Callable[[JsonLine], bool]], ...] = (
    (copilot.CLIENT, copilot.recognises),
    (pi.CLIENT, pi.recognises),
    (codex.CLIENT, codex.recognises),
    (gemini.CLIENT, gemini.recognises),
    (cursor.CLIENT, cursor.recognises),
    (claude_code.CLIENT, claude_code.recognises),
)
_LINES_LOOKED_AT = 200
_ENDINGS = (".jsonl", ".jsonl.zst", ".json", ".db")


def client_of(path: Path, opener: Opener = opened_plain) -> str | None:
    """Return the client that wrote a file, or None when none of them did. Raises OSError when it cannot be read."""
    if path.suffix in (".db", ".sqlite", ".sqlite3") or path.is_dir():
        storage = path.is_dir() and _is_storage(path)
        return opencode.CLIENT if storage or opencode.recognises_file(path) else None
    if path.suffix == ".json":
        return opencode.CLIENT if opencode.recognises_file(path) else _client_of(json_document(path, SkippedLines()))
    bare = False
    for _, line in islice(json_lines(path, SkippedLines(), opener), _LINES_LOOKED_AT):
        for client, recognises in _BY_LINE:
            if recognises(line):
                return client
        bare = bare or codex.recognises_bare(line)
    return codex.CLIENT if bare else None


def _client_of(document: Json) -> str | None:
    match document:
        case {"loglines": list()}:
            return claude_code.CLIENT
        case _:
            return gemini.CLIENT if gemini.recognises_document(document) else None


def transcripts_in(folder: Path, aside: Aside | None = None) -> Iterator[Path]:
    """Yield the files below a folder that may be transcripts, in order; the sessions of an OpenCode storage folder,
    and not its messages. What cannot be one is noted in `aside`."""
    aside = aside or Aside()
    for here, names, files in walked(folder, aside):
        if _is_storage(here):
            yield from (file for file in opencode.session_files(here) if is_file(file, aside))
            names[:] = []
        yield from (here / name for name in files if _may_be_one(name) and is_file(here / name, aside))


def _may_be_one(name: str) -> bool:
    return name.endswith(_ENDINGS) and not name.endswith(".meta.json")


def _is_storage(folder: Path) -> bool:
    return os.path.isdir(folder / "session") and os.path.isdir(folder / "message")


def sessions(environ: Mapping[str, str], home: Path, aside: Aside | None = None) -> dict[str, list[Path]]:
    """Return the files in which each client keeps its sessions on this machine, by client.

    What is named like one and cannot be read is noted in `aside`.
    """
    aside = aside or Aside()

    def files(folder: Path, *endings: str, inside: str = "") -> list[Path]:
        found = sorted(files_in(folder, lambda name: name.endswith(endings), aside))
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
        opencode.CLIENT: _opencode(data, aside),
        pi.CLIENT: files(home / ".pi" / "agent" / "sessions", ".jsonl"),
        cursor.CLIENT: files(home / ".cursor" / "projects", ".jsonl", inside="agent-transcripts"),
        copilot.CLIENT: files(home / ".copilot" / "session-state", ".jsonl"),
    }
    return {client: paths for client, paths in found.items() if paths}


def _opencode(data: Path, aside: Aside) -> list[Path]:
    """Return the database, or where there is none yet the sessions that lie in files, which a database took over."""
    databases = [path for path in sorted(data.glob("opencode*.db")) if is_file(path, aside)]
    return databases or [path for path in opencode.session_files(data / "storage") if is_file(path, aside)]


def stamp(path: Path) -> list[int] | None:
    """Return what changes with a file, or None where one file does not tell. Raises OSError."""
    if path.suffix == ".json" and opencode.recognises_file(path):
        return None  # its messages lie elsewhere
    marks: list[int] = []
    for file in (path, beside(path, "-wal")):
        if file == path or file.exists():
            status = file.stat()
            marks += [status.st_size, status.st_mtime_ns, status.st_ino]
    return marks
