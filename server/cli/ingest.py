"""`esker ingest`: send the transcripts of agents to the server."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from esker.server.agents.api import Api
from esker.server.agents.compressed import opened
from esker.server.agents.exclusion import without_excluded
from esker.server.agents.folders import SkippedFiles, reason_of
from esker.server.agents.progress import SendProgress
from esker.server.agents.readers import (
    READERS,
    client_of,
    looks_like_messages,
    misread,
    sessions,
    stamp,
    transcripts_in,
)
from esker.server.agents.regular_file import obstacle
from esker.server.agents.sending import SendReport, send
from esker.server.agents.spool import is_transient
from esker.server.agents.transcript import ParsedTranscripts, Transcript
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, WrongUsage, print_json, progress, say
from esker.server.cli.sessions import observe_all
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.home import home
from esker.server.core.counts import counted
from esker.server.core.errors import NotFound
from esker.server.core.http_answers import ServerRefused

app = typer.Typer(add_completion=False)

# How many paths, and how many reasons of skipped lines, the report lists.
_MOST_PATHS = 10
_MOST_REASONS = 10


@dataclass(slots=True)
class _ClientCounts:
    """Counts for one client: what was read, and how the server answered."""

    files: int = 0
    sessions: int = 0
    messages: int = 0
    accepted: int = 0
    duplicates: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(slots=True)
class _ReadResult:
    """Counts and paths of what was read.

    `files`: files read; `unchanged`: files that were sent completely before; `excluded`: sessions of excluded projects;
    `excluded_messages`: messages of other sessions, written in a directory of an excluded project; `others`: files that
    are not transcripts; `no_files`: paths named like a transcript that are not regular files, with the reason;
    `skipped`: number of skipped lines by reason; `broken`: path and number of each broken line.
    """

    files: int = 0
    unchanged: int = 0
    excluded: int = 0
    excluded_messages: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    broken: list[str] = field(default_factory=list[str])
    others: list[str] = field(default_factory=list[str])
    no_files: dict[str, str] = field(default_factory=dict[str, str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    clients: dict[str, _ClientCounts] = field(default_factory=dict[str, _ClientCounts])


@dataclass(frozen=True, slots=True)
class _SourceFile:
    """A file to read; `client` is its client, if known, `named` whether the user named the file itself."""

    path: Path
    client: str | None
    named: bool = False


@dataclass(frozen=True, slots=True)
class _Ingest:
    """One run: the server, what was sent before, and the counts; `seen` are sessions by client and external id."""

    api: Api
    settings: ClientSettings
    progress: SendProgress
    shown: Progress
    observe: bool
    read: _ReadResult = field(default_factory=_ReadResult)
    sent: SendReport = field(default_factory=SendReport)
    seen: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])


@app.command()
def ingest(
    paths: Annotated[list[Path] | None, typer.Argument(help="Transcript files, or folders of them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every session of every client on this machine.")] = False,
    client: Annotated[str | None, typer.Option(help="The client that wrote them, if it cannot be detected.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Send everything, including what was sent before.")] = False,
    observe: Annotated[
        bool, typer.Option("--observe", help="Have the sessions observed, too, and wait for it.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send transcripts of agents to the server, except what was sent before."""
    _check(paths, client, everything=everything)
    read = _ReadResult()
    files = [*_files_of(paths or [], client, read), *(_client_files(client, read) if everything else [])]
    settings = ClientSettings.from_environment(os.environ)
    with progress(shown=not as_json) as shown:
        run = _Ingest(connect(), settings, SendProgress(settings, again=again), shown, observe, read)
        for file in shown.track(files, description="Reading"):
            _ingest_file(run, file)
        if not (read.files + read.unchanged + read.excluded + len(read.unreadable)) and any(
            map(_has_size, read.others)
        ):
            read.unreadable |= dict.fromkeys(map(str, paths or []), "it contains no transcript that Esker reads")
        found = list(run.sent.sessions)
        failed = observe_all(run.api, found, wait=True, shown=shown).failed if observe else {}
    _report(run, failed, as_json=as_json)
    if run.sent.refused or failed or read.unreadable:
        raise typer.Exit(1)


def _has_size(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def _check(paths: list[Path] | None, client: str | None, *, everything: bool) -> None:
    if client is not None and client not in READERS:
        raise WrongUsage(
            f"Esker cannot read transcripts of {client!r}.", hint=f"It reads those of {', '.join(READERS)}."
        )
    if everything == bool(paths):
        raise WrongUsage(
            "Name either files and folders or --all.",
            hint="`esker ingest --all` sends the sessions of every client on this machine.",
        )


def _files_of(paths: Iterable[Path], client: str | None, read: _ReadResult) -> list[_SourceFile]:
    files: list[_SourceFile] = []
    for path in paths:
        if os.path.isdir(path):
            found = [_SourceFile(file, client) for file in transcripts_in(path, _skipped_files(read))]
            if not found and str(path) not in read.unreadable:
                read.unreadable[str(path)] = "this folder contains no transcript"
            files += found
        elif os.path.lexists(path):
            files += [_SourceFile(path, client, named=True)]
        else:
            raise NotFound(f"{path} does not exist.")
    return files


def _client_files(client: str | None, read: _ReadResult) -> list[_SourceFile]:
    """Return the files in which all clients, or one of them, keep their sessions on this machine."""
    found = sessions(os.environ, home(), _skipped_files(read))
    return [_SourceFile(path, owner) for owner, paths in found.items() if client in (None, owner) for path in paths]


def _skipped_files(read: _ReadResult) -> SkippedFiles:
    return SkippedFiles(read.no_files, read.unreadable)


def _ingest_file(run: _Ingest, file: _SourceFile) -> None:
    read, path = run.read, file.path
    try:
        if found := obstacle(path):
            read.unreadable[str(path)] = f"it is {found}"
            return
        mark = stamp(path)
        # --observe needs the session ids, so it reads unchanged files, too.
        if not run.observe and run.progress.is_unchanged(path, mark):
            read.unchanged += 1
            return
        client = file.client or client_of(path, opened)
        reading = READERS[client](path, opened) if client else None
    except OSError as error:
        read.unreadable[str(path)] = reason_of(error)
        return
    if client is None or reading is None or not reading.recognised:
        _record_other_file(run, file, mark)
    elif reasons := misread(reading):
        # It is not marked as sent, so that a later version may read it.
        read.unreadable[str(path)] = f"it was read as {client}, but none of it was understood: {', '.join(reasons)}"
    elif _ingest_sessions(run, path, client, reading) and not reading.unfinished:
        run.progress.finish(path, mark)


def _record_other_file(run: _Ingest, file: _SourceFile, mark: list[int] | None) -> None:
    """Record a file that is not a transcript: an error only if the user named it, or if it seems to have messages."""
    if (file.named and (mark is None or mark[0])) or looks_like_messages(file.path, opened):
        whose = f"of {file.client}" if file.client else "in a format that Esker reads"
        run.read.unreadable[str(file.path)] = (
            f"it is not a transcript {whose}; other clients must send theirs over HTTP"
        )
    else:
        run.read.others.append(str(file.path))
        run.progress.finish(file.path, mark)


def _ingest_sessions(run: _Ingest, path: Path, client: str, reading: ParsedTranscripts) -> bool:
    """Send the sessions of a file; return whether the server has all of them."""
    read, client_counts = run.read, run.read.clients.setdefault(client, _ClientCounts())
    read.files += 1
    client_counts.files += 1
    read.skipped = dict(Counter(read.skipped) + reading.skipped)
    client_counts.skipped = dict(Counter(client_counts.skipped) + reading.skipped)
    read.broken += [f"{path}:{number}" for number in reading.broken]
    task = run.shown.add_task(f"  {path.name[:40]}", total=sum(len(each.entries) for each in reading.transcripts))
    complete = True
    for found in reading.transcripts:
        transcript = without_excluded(found, run.settings.exclude)
        if transcript is None:
            read.excluded += 1
            complete = False
            continue
        if excluded := len(found.entries) - len(transcript.entries):
            read.excluded_messages += excluded
            complete = False
        # A session may be in several files: forks have lines of the session that they were made from.
        client_counts.sessions += (client, transcript.external_id) not in run.seen
        run.seen.add((client, transcript.external_id))
        client_counts.messages += len(transcript.entries)
        accepted, duplicates = run.sent.accepted, run.sent.duplicates
        complete &= _send_unsent(run, transcript, task)
        client_counts.accepted += run.sent.accepted - accepted
        client_counts.duplicates += run.sent.duplicates - duplicates
    run.shown.remove_task(task)
    return complete


def _send_unsent(run: _Ingest, transcript: Transcript, task: TaskID) -> bool:
    """Send the entries of a session that the server lacks; return whether it accepted all of them."""
    refused = len(run.sent.refused)
    with run.progress.locked(transcript):
        unsent = run.progress.unsent(transcript)
        done = len(transcript.entries) - len(unsent)
        run.shown.advance(task, done)

        def advance(count: int) -> None:
            nonlocal done
            run.shown.advance(task, count)
            done += count
            # A refused entry and everything after it is sent again by the next run.
            if len(run.sent.refused) == refused:
                run.progress.advance(transcript, done)

        if unsent or run.observe:
            try:
                send(run.api, replace(transcript, entries=unsent), run.sent, advance)
            except ServerRefused as error:
                if is_transient(error):
                    raise
                # A session that the server refuses must not prevent the others from being sent.
                run.sent.refused[transcript.external_id] = str(error)
    return len(run.sent.refused) == refused


def _report(run: _Ingest, failed: dict[str, str], *, as_json: bool) -> None:
    reports = [run.api.get(f"/v1/sessions/{session}") for session in run.sent.sessions]
    written = sum(report["observations"] for report in reports) - sum(run.sent.sessions.values())
    waiting = sum(report["unobserved_tokens"] for report in reports)
    if as_json:
        result = {"memories": written if run.observe else None, "unobserved_tokens": waiting, "failed": failed}
        print_json({**asdict(run.read), **asdict(run.sent), "sessions": list(run.sent.sessions), **result})
    else:
        _show(run.read, run.sent)
        _show_observed(len(run.sent.sessions), written, waiting, failed, observed=run.observe)


def _show(read: _ReadResult, sent: SendReport) -> None:
    found = sum(client.sessions for client in read.clients.values())
    say(
        f"{counted(read.files, 'file')}, {counted(found, 'session')}:"
        f" {counted(sent.accepted, 'message')} stored, {sent.duplicates:,} already known."
    )
    for name, client in read.clients.items():
        _show_client(name, client)
    _show_skipped(read)
    if sent.conflicts:
        say(f"{sent.conflicts:,} of these differ from what is stored under the same id; the stored version is kept.")
    if sent.forgotten:
        say(f"{sent.forgotten:,} of these say what was forgotten, and were stored without their words.")
    for line in read.broken[:_MOST_PATHS]:
        say(f"  broken line: {line}")
    for path, reason in list(read.no_files.items())[:_MOST_PATHS]:
        say(f"  not a file: {path} ({reason})")
    for path, reason in read.unreadable.items():
        say(f"  not read: {path} ({reason})")
    for external_id, reason in list(sent.refused.items())[:_MOST_PATHS]:
        say(f"  refused by the server: {external_id} ({reason})")


def _show_skipped(read: _ReadResult) -> None:
    if not read.files + read.unchanged + read.excluded:
        say("No transcripts were found; docs/transcripts.md says where they are looked for.")
    if read.unchanged:
        say(f"{counted(read.unchanged, 'file')} unchanged since the last run; --again sends everything again.")
    if read.excluded:
        say(f"{counted(read.excluded, 'session')} skipped: an exclusion covers them (`esker exclude`).")
    if read.excluded_messages:
        counts = counted(read.excluded_messages, "message")
        say(f"{counts} skipped: an exclusion covers the directory in which the session was at that time.")
    if read.others:
        say(f"{counted(len(read.others), 'other file is not a transcript', 'other files are not transcripts')}.")


def _show_client(name: str, client: _ClientCounts) -> None:
    counts = f"{counted(client.sessions, 'session')} in {counted(client.files, 'file')}"
    say(f"  {name}: {counts}, {counted(client.messages, 'message')}, {client.accepted:,} of them new")
    common = Counter(client.skipped).most_common()
    kinds = [f"{count:,} × {reason}" for reason, count in common[:_MOST_REASONS]]
    left = len(common) - _MOST_REASONS
    more = [f"{counted(left, 'other kind')} (`--json` lists all)"] if left > 0 else []
    if kinds:
        say(f"    skipped: {', '.join([*kinds, *more])}")


def _show_observed(sessions: int, written: int, waiting: int, failed: dict[str, str], *, observed: bool) -> None:
    for session, reason in failed.items():
        say(f"  not observed: {session} ({reason})")
    if observed:
        say(f"{counted(written, 'memory', 'memories')} written.")
    elif waiting:
        say(
            f"{counted(waiting, 'token')} of {'it' if sessions == 1 else 'them'} not observed yet. The server observes"
            " a session when it has enough of them or has been idle; `esker observe --wait` does it now."
        )
