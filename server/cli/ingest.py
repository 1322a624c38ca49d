"""`esker ingest`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from server.cli.connection import connect
from server.cli.output import AsJson, counted, print_json, progress, say
from server.cli.sessions import observe_all
from server.clients import claude_code
from server.clients.api import Api
from server.clients.sending import Sent, send
from server.clients.transcript import Reading
from server.core.errors import InvalidInput, NotFound

app = typer.Typer(add_completion=False)

READERS: dict[str, Callable[[Path], Reading]] = {claude_code.CLIENT: claude_code.read_transcript}
_MOST_PLACES = 10
_MOST_KINDS = 4


@dataclass(slots=True)
class _Read:
    """What reading found: how many lines were left out, by reason, and where the broken ones are."""

    files: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    broken: list[str] = field(default_factory=list[str])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])


@app.command()
def ingest(
    paths: Annotated[list[Path], typer.Argument(help="Transcript files, or folders of them.")],
    client: Annotated[str, typer.Option(help="Whose transcripts they are.")] = claude_code.CLIENT,
    observe: Annotated[bool, typer.Option("--observe", help="Observe them too, and wait for it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send transcripts of agents to the server. Sending them again changes nothing."""
    if client not in READERS:
        raise InvalidInput(f"There is no reader for {client!r}.", hint=f"There is one for {', '.join(READERS)}.")
    read, sent = _Read(), Sent()
    files = list(_files(paths, read))
    api = connect()
    with progress(shown=not as_json) as shown:
        for path in shown.track(files, description="Reading"):
            _ingest_file(api, READERS[client], path, read, sent, shown)
        failed = observe_all(api, list(sent.sessions), wait=True, shown=shown).failed if observe else {}
    reports = [api.get(f"/v1/sessions/{session}") for session in sent.sessions]
    written = sum(report["observations"] for report in reports) - sum(sent.sessions.values())
    waiting = sum(report["unobserved_tokens"] for report in reports)
    if as_json:
        result = {"memories": written if observe else None, "unobserved_tokens": waiting, "failed": failed}
        print_json({**asdict(read), **asdict(sent), "sessions": list(sent.sessions), **result})
    else:
        _show(read, sent)
        _show_observed(len(sent.sessions), written, waiting, failed, observed=observe)
    if sent.refused or failed or read.unreadable:
        raise typer.Exit(1)


def _files(paths: Iterable[Path], read: _Read) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            found = sorted(file for file in path.rglob("*.jsonl") if file.is_file())
            if not found:
                read.unreadable[str(path)] = "there is no .jsonl file in this folder"
            yield from found
        elif path.is_file():
            yield path
        elif path.exists():
            read.unreadable[str(path)] = "not a file"
        else:
            raise NotFound(f"There is no file {path}.")


def _ingest_file(
    api: Api, reader: Callable[[Path], Reading], path: Path, read: _Read, sent: Sent, shown: Progress
) -> None:
    try:
        reading = reader(path)
    except OSError as error:
        read.unreadable[str(path)] = error.strerror or type(error).__name__
        return
    if not reading.recognised:
        read.unreadable[str(path)] = "it is not a transcript of this client; other clients send theirs over HTTP"
        return
    read.files += 1
    read.skipped = dict(Counter(read.skipped) + reading.skipped)
    read.broken += [f"{path}:{number}" for number in reading.broken]
    total = sum(len(transcript.entries) for transcript in reading.transcripts)
    task = shown.add_task(f"  {path.name[:40]}", total=total)
    for transcript in reading.transcripts:
        send(api, transcript, sent, lambda count: shown.advance(task, count))
    shown.remove_task(task)


def _show(read: _Read, sent: Sent) -> None:
    say(
        f"{counted(read.files, 'file')}, {counted(len(sent.sessions), 'session')}:"
        f" {counted(sent.accepted, 'message')} stored, {sent.duplicates:,} known already."
    )
    if sent.conflicts:
        say(f"{sent.conflicts:,} of these came with other words than before; what was stored first is kept.")
    if read.skipped:
        common = Counter(read.skipped).most_common()
        kinds = [f"{count:,} × {reason}" for reason, count in common[:_MOST_KINDS]]
        more = [f"{len(common) - _MOST_KINDS} other kinds"] if len(common) > _MOST_KINDS else []
        say(f"  left out, since nobody said it: {', '.join([*kinds, *more])}")
    for place in read.broken[:_MOST_PLACES]:
        say(f"  broken line: {place}")
    for path, reason in read.unreadable.items():
        say(f"  not read: {path} ({reason})")
    for external_id, reason in list(sent.refused.items())[:_MOST_PLACES]:
        say(f"  refused by the server: {external_id} ({reason})")


def _show_observed(sessions: int, written: int, waiting: int, failed: dict[str, str], *, observed: bool) -> None:
    for session, reason in failed.items():
        say(f"  not observed: {session} ({reason})")
    if observed:
        say(f"{counted(written, 'memory', 'memories')} written.")
    elif waiting:
        say(
            f"{waiting:,} tokens of {'it' if sessions == 1 else 'them'} are not observed yet; the server does so"
            " when a session has enough of them or has been idle, `esker observe --wait` does it now."
        )
