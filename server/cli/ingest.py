"""`esker ingest`."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from esker.server.agents.api import Api, ServerRefused
from esker.server.agents.compressed import opened
from esker.server.agents.exclusion import without_excluded
from esker.server.agents.folders import Aside, reason_of
from esker.server.agents.progress import SentBefore
from esker.server.agents.readers import READERS, client_of, sessions, stamp, transcripts_in
from esker.server.agents.regular_file import obstacle
from esker.server.agents.sending import Sent, send
from esker.server.agents.spool import is_passing
from esker.server.agents.transcript import ParsedTranscripts, Transcript
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, progress, say
from esker.server.cli.sessions import observe_all
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.counts import counted
from esker.server.core.errors import InvalidInput, NotFound

app = typer.Typer(add_completion=False)

_MOST_PLACES = 10
_MOST_KINDS = 4


@dataclass(slots=True)
class _OfClient:
    """What was read of one client, and what became of it."""

    files: int = 0
    sessions: int = 0
    messages: int = 0
    accepted: int = 0
    duplicates: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(slots=True)
class _ReadResult:
    """What reading found.

    `files` were read, `unchanged` ones hold nothing that was not sent before; `excluded` are the sessions of projects
    that are to be left alone, `excluded_messages` those of other sessions that were said in a directory of such a
    project; `others` are the files that are no transcripts, `no_files` what is named like one and is no file;
    `skipped` says how many lines were left out, by reason, and `broken` where the broken ones are.
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
    clients: dict[str, _OfClient] = field(default_factory=dict[str, _OfClient])


@dataclass(frozen=True, slots=True)
class _SourceFile:
    """A file to read; `client` is whose it is, if that is known, `named` whether a person asked for this very file."""

    path: Path
    client: str | None
    named: bool = False


@dataclass(frozen=True, slots=True)
class _Ingest:
    """A run: where things go, what was sent before, and the account of it."""

    api: Api
    settings: ClientSettings
    before: SentBefore
    shown: Progress
    observe: bool
    read: _ReadResult = field(default_factory=_ReadResult)
    sent: Sent = field(default_factory=Sent)


@app.command()
def ingest(
    paths: Annotated[list[Path] | None, typer.Argument(help="Transcript files, or folders of them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every session of every client on this machine.")] = False,
    client: Annotated[str | None, typer.Option(help="Whose transcripts they are, if that is not to be seen.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Send all, as if nothing had been sent before.")] = False,
    observe: Annotated[bool, typer.Option("--observe", help="Observe them too, and wait for it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send transcripts of agents to the server. What was sent before is not sent again."""
    _check(paths, client, everything=everything)
    read = _ReadResult()
    files = [*_files_of(paths or [], client, read), *(_kept(client, read) if everything else [])]
    settings = ClientSettings.from_environment(os.environ)
    with progress(shown=not as_json) as shown:
        run = _Ingest(connect(), settings, SentBefore(settings, again=again), shown, observe, read)
        for file in shown.track(files, description="Reading"):
            _ingest_file(run, file)
        found = list(run.sent.sessions)
        failed = observe_all(run.api, found, wait=True, shown=shown).failed if observe else {}
    _report(run, failed, as_json=as_json)
    if run.sent.refused or failed or read.unreadable:
        raise typer.Exit(1)


def _check(paths: list[Path] | None, client: str | None, *, everything: bool) -> None:
    if client is not None and client not in READERS:
        raise InvalidInput(f"There is no reader for {client!r}.", hint=f"There is one for {', '.join(READERS)}.")
    if everything == bool(paths):
        raise InvalidInput(
            "Name either files and folders or --all.",
            hint="`esker ingest --all` sends the sessions of every client on this machine.",
        )


def _files_of(paths: Iterable[Path], client: str | None, read: _ReadResult) -> list[_SourceFile]:
    files: list[_SourceFile] = []
    for path in paths:
        if os.path.isdir(path):
            found = [_SourceFile(file, client) for file in transcripts_in(path, _aside(read))]
            if not found and str(path) not in read.unreadable:
                read.unreadable[str(path)] = "there is no transcript in this folder"
            files += found
        elif os.path.lexists(path):
            files += [_SourceFile(path, client, named=True)]
        else:
            raise NotFound(f"There is no file {path}.")
    return files


def _kept(client: str | None, read: _ReadResult) -> list[_SourceFile]:
    """Return the files in which the clients, or one of them, keep their sessions on this machine."""
    found = sessions(os.environ, Path.home(), _aside(read))
    return [_SourceFile(path, owner) for owner, paths in found.items() if client in (None, owner) for path in paths]


def _aside(read: _ReadResult) -> Aside:
    return Aside(read.no_files, read.unreadable)


def _ingest_file(run: _Ingest, file: _SourceFile) -> None:
    read, path = run.read, file.path
    try:
        if found := obstacle(path):
            read.unreadable[str(path)] = f"it is {found}"
            return
        mark = stamp(path)
        # To have a session observed it must be known which one it is.
        if not run.observe and run.before.is_unchanged(path, mark):
            read.unchanged += 1
            return
        client = file.client or client_of(path, opened)
        reading = READERS[client](path, opened) if client else None
    except OSError as error:
        read.unreadable[str(path)] = reason_of(error)
        return
    if client is None or reading is None or not reading.recognised:
        _set_aside(run, file, mark)
    elif _ingest_sessions(run, path, client, reading) and not reading.unfinished:
        run.before.finish(path, mark)


def _set_aside(run: _Ingest, file: _SourceFile, mark: list[int] | None) -> None:
    """Account for a file that is no transcript: an error only where somebody asked for it, unless it is empty."""
    if file.named and (mark is None or mark[0]):
        whose = f"of {file.client}" if file.client else "of a client that can be read"
        run.read.unreadable[str(file.path)] = f"it is not a transcript {whose}; other clients send theirs over HTTP"
    else:
        run.read.others.append(str(file.path))
        run.before.finish(file.path, mark)


def _ingest_sessions(run: _Ingest, path: Path, client: str, reading: ParsedTranscripts) -> bool:
    """Send the sessions of a file; return whether the server has all of them now."""
    read, of_client = run.read, run.read.clients.setdefault(client, _OfClient())
    read.files += 1
    of_client.files += 1
    read.skipped = dict(Counter(read.skipped) + reading.skipped)
    of_client.skipped = dict(Counter(of_client.skipped) + reading.skipped)
    read.broken += [f"{path}:{number}" for number in reading.broken]
    task = run.shown.add_task(f"  {path.name[:40]}", total=sum(len(each.entries) for each in reading.transcripts))
    complete = True
    for found in reading.transcripts:
        transcript = without_excluded(found, run.settings.exclude)
        if transcript is None:
            read.excluded += 1
            complete = False
            continue
        if left_alone := len(found.entries) - len(transcript.entries):
            read.excluded_messages += left_alone
            complete = False
        of_client.sessions += 1
        of_client.messages += len(transcript.entries)
        accepted, duplicates = run.sent.accepted, run.sent.duplicates
        complete &= _send_unsent(run, transcript, task)
        of_client.accepted += run.sent.accepted - accepted
        of_client.duplicates += run.sent.duplicates - duplicates
    run.shown.remove_task(task)
    return complete


def _send_unsent(run: _Ingest, transcript: Transcript, task: TaskID) -> bool:
    """Send what the server has not got of a session; return whether it took all of it."""
    refused = len(run.sent.refused)
    with run.before.alone(transcript):
        unsent = run.before.unsent(transcript)
        done = len(transcript.entries) - len(unsent)
        run.shown.advance(task, done)

        def advance(count: int) -> None:
            nonlocal done
            run.shown.advance(task, count)
            done += count
            # What was refused, and all behind it, is sent again the next time.
            if len(run.sent.refused) == refused:
                run.before.advance(transcript, done)

        if unsent or run.observe:
            try:
                send(run.api, replace(transcript, entries=unsent), run.sent, advance)
            except ServerRefused as error:
                if is_passing(error):
                    raise
                # One session that the server does not take must not keep the others from it.
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


def _show(read: _ReadResult, sent: Sent) -> None:
    found = sum(client.sessions for client in read.clients.values())
    say(
        f"{counted(read.files, 'file')}, {counted(found, 'session')}:"
        f" {counted(sent.accepted, 'message')} stored, {sent.duplicates:,} known already."
    )
    for name, client in read.clients.items():
        _show_client(name, client)
    _show_left_alone(read)
    if sent.conflicts:
        say(f"{sent.conflicts:,} of these came with other words than before; what was stored first is kept.")
    for place in read.broken[:_MOST_PLACES]:
        say(f"  broken line: {place}")
    for path, reason in list(read.no_files.items())[:_MOST_PLACES]:
        say(f"  no file: {path} ({reason})")
    for path, reason in read.unreadable.items():
        say(f"  not read: {path} ({reason})")
    for external_id, reason in list(sent.refused.items())[:_MOST_PLACES]:
        say(f"  refused by the server: {external_id} ({reason})")


def _show_left_alone(read: _ReadResult) -> None:
    if read.unchanged:
        say(f"{counted(read.unchanged, 'file')} unchanged since all of it was sent; --again sends it once more.")
    if read.excluded:
        say(f"{counted(read.excluded, 'session')} left alone, since ESKER_EXCLUDE names the project.")
    if read.excluded_messages:
        said = counted(read.excluded_messages, "message")
        say(f"{said} left alone, since ESKER_EXCLUDE names the directory in which the session was by then.")
    if read.others:
        say(f"{counted(len(read.others), 'other file is', 'other files are')} no transcripts.")


def _show_client(name: str, client: _OfClient) -> None:
    said = f"{counted(client.sessions, 'session')} in {counted(client.files, 'file')}"
    say(f"  {name}: {said}, {counted(client.messages, 'message')}, {client.accepted:,} of them new")
    common = Counter(client.skipped).most_common()
    kinds = [f"{count:,} × {reason}" for reason, count in common[:_MOST_KINDS]]
    more = [f"{len(common) - _MOST_KINDS} other kinds"] if len(common) > _MOST_KINDS else []
    if kinds:
        say(f"    left out: {', '.join([*kinds, *more])}")


def _show_observed(sessions: int, written: int, waiting: int, failed: dict[str, str], *, observed: bool) -> None:
    for session, reason in failed.items():
        say(f"  not observed: {session} ({reason})")
    if observed:
        say(f"{counted(written, 'memory', 'memories')} written.")
    elif waiting:
        say(
            f"{counted(waiting, 'token')} of {'it' if sessions == 1 else 'them'} wait to be observed; the server does"
            " so when a session has enough of them or has been idle, `esker observe --wait` does it now."
        )
