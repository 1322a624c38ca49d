"""`esker ingest`, `observe`, `reflect`."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress
from tzlocal import get_localzone_name

from server.cli.api import Api
from server.cli.memories import resolve_session
from server.cli.output import AsJson, print_json, progress, say
from server.clients import claude_code
from server.clients.transcript import Entry, Reading, Transcript
from server.core.errors import InvalidInput, NotFound
from server.core.json_input import Json

app = typer.Typer()

READERS: dict[str, Callable[[Path], Reading]] = {claude_code.CLIENT: claude_code.read_transcript}

_BATCH_MESSAGES = 500
_BATCH_BYTES = 8 * 1024 * 1024
# The server takes bodies of 32 MiB; one message above this goes without its images and the rest of its text.
_MESSAGE_BYTES = 16 * 1024 * 1024
_KEPT_CHARACTERS = 1_000_000

Session = Annotated[str | None, typer.Argument(help="A session: our id or the client's own. All, if left out.")]
Wait = Annotated[bool, typer.Option(help="Wait until it is done.")]


@dataclass(slots=True)
class Summary:
    """What an ingest did."""

    files: int = 0
    sessions: list[str] = field(default_factory=list[str])
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    memories: int | None = None


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
    files = list(_files(paths))
    api = Api.from_environment()
    summary = Summary()
    with progress(shown=not as_json) as shown:
        for path in shown.track(files, description="Reading"):
            _ingest_file(api, READERS[client], path, summary, shown)
        if observe:
            reports = _observe_all(api, summary.sessions, True, shown)
            summary.memories = sum(report["memories"] for report in reports)
    if as_json:
        print_json(summary)
    else:
        _show(summary)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.jsonl"))
        elif path.exists():
            yield path
        else:
            raise NotFound(f"There is no file {path}.")


def _ingest_file(api: Api, read: Callable[[Path], Reading], path: Path, summary: Summary, shown: Progress) -> None:
    try:
        reading = read(path)
    except OSError as error:
        summary.unreadable[str(path)] = error.strerror or type(error).__name__
        return
    summary.files += 1
    summary.skipped = dict(Counter(summary.skipped) + reading.skipped)
    total = sum(len(transcript.entries) for transcript in reading.transcripts)
    task = shown.add_task(f"  {path.name[:40]}", total=total)
    for transcript in reading.transcripts:
        send(api, transcript, summary, lambda count: shown.advance(task, count))
    shown.remove_task(task)


def send(api: Api, transcript: Transcript, summary: Summary, advance: Callable[[int], None]) -> None:
    """Send one session, in batches; add to `summary` what became of it and tell `advance` of each batch."""
    opened = {"client": transcript.client, "external_id": transcript.external_id}
    opened |= {"cwd": transcript.cwd, "project": transcript.project, "timezone": get_localzone_name()}
    session = api.post("/v1/sessions", opened)["id"]
    summary.sessions.append(session)
    for batch in _batches(transcript.entries):
        report = api.post(f"/v1/sessions/{session}/messages", {"messages": batch})
        summary.accepted += report["accepted"]
        summary.duplicates += report["duplicates"]
        summary.conflicts += len(report["conflicts"])
        advance(len(batch))


def _batches(entries: Iterable[Entry]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    size = 0
    for message, cost in map(_as_message, entries):
        if batch and (len(batch) == _BATCH_MESSAGES or size + cost > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += cost
    if batch:
        yield batch


def _as_message(entry: Entry) -> tuple[dict[str, Any], int]:
    """Return a message for the server and its size in bytes."""
    message = {"external_id": entry.external_id, "role": entry.role, "content": entry.content}
    message |= {"sent_at": entry.sent_at.isoformat()} if entry.sent_at else {}
    size = len(json.dumps(message))
    if size > _MESSAGE_BYTES:
        message["content"] = _shortened(entry.content)
        size = len(json.dumps(message))
    return message, size


def _shortened(value: Json) -> Json:
    """Return content that fits into a request: long strings cut, with a note of what is missing."""
    match value:
        case str() if len(value) > _KEPT_CHARACTERS:
            return f"{value[:_KEPT_CHARACTERS]} … [{len(value) - _KEPT_CHARACTERS:,} more characters]"
        case list():
            return [_shortened(item) for item in value]
        case {"type": "image"}:
            return {"type": "text", "text": "[an image that was too large to send]"}
        case dict():
            return {key: _shortened(item) for key, item in value.items()}
        case _:
            return value


@app.command()
def observe(session: Session = None, wait: Wait = False, as_json: AsJson = False) -> None:
    """Have the unobserved messages of sessions observed."""
    api = Api.from_environment()
    names = [resolve_session(api, session)] if session else _unobserved(api)
    with progress(shown=wait and not as_json) as shown:
        reports = _observe_all(api, names, wait, shown)
    if as_json:
        print_json(reports)
    elif not wait:
        say(f"{len(reports)} sessions will be observed.")
    else:
        count = sum(report["memories"] for report in reports)
        say(f"{len(reports)} sessions observed, {count} memories written.")


def _unobserved(api: Api) -> list[str]:
    """Return all sessions that hold unobserved messages."""
    names: list[str] = []
    before = None
    while True:
        page = api.get("/v1/sessions", unobserved="true", before=before, limit=1000)
        names += [session["id"] for session in page["sessions"]]
        before = page["next"]
        if before is None:
            return names


def _observe_all(api: Api, sessions: list[str], wait: bool, shown: Progress) -> list[dict[str, Any]]:
    query = f"?wait={str(wait).lower()}"
    return [
        {"session_id": session, **api.post(f"/v1/sessions/{session}/observe{query}")}
        for session in shown.track(sessions, description="Observing")
    ]


@app.command()
def reflect(
    session: Annotated[str, typer.Argument(help="A session: our id or the client's own.")],
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Have the memories of a session condensed."""
    api = Api.from_environment()
    name = resolve_session(api, session)
    report = api.post(f"/v1/sessions/{name}/reflect?wait={str(wait).lower()}")
    if as_json:
        print_json(report)
    elif report["queued"]:
        say("The session will be reflected.")
    else:
        say(
            f"{report['superseded']} memories became {report['memories']}:"
            f" {report['tokens_before']:,} tokens became {report['tokens_after']:,}."
        )


def _show(summary: Summary) -> None:
    say(
        f"{summary.files} files, {len(set(summary.sessions))} sessions:"
        f" {summary.accepted:,} messages stored, {summary.duplicates:,} known already."
    )
    if summary.conflicts:
        say(f"{summary.conflicts} of these came with other words than before; what was stored first is kept.")
    for reason, count in Counter(summary.skipped).most_common():
        say(f"  left out: {count:,} × {reason}")
    for path, reason in summary.unreadable.items():
        say(f"  not read: {path} ({reason})")
    if summary.memories is not None:
        say(f"{summary.memories} memories written.")
