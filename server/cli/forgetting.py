"""`esker forget`."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from esker.server.cli.asking import agreed, require_answerable
from esker.server.cli.connection import Api, connect
from esker.server.cli.database import purged, settings_for
from esker.server.cli.output import AsJson, DataDir, print_json, say
from esker.server.cli.sessions import resolve_session
from esker.server.cli.times import ACCEPTED, as_sent, typed_time
from esker.server.core.conversation.observer_text import TOOL_CHARACTERS
from esker.server.core.conversation.readable_calls import readable
from esker.server.core.counts import counted
from esker.server.core.facts.forgetting import ROW_REASONS

app = typer.Typer(add_completion=False)

_COUNTED = {"memories": "memory", "vectors": "vector", "packs": "pack", "messages": "message", "notes": "note"}


@app.command()
def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(help="Ids of memories or passages: mem_… or psg_…", metavar="ID")
    ] = None,
    words: Annotated[
        list[str] | None, typer.Option(help="Everything that says these words; if repeated, any of them.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Only of this session: Esker's id or the client's own.")] = None,
    project: Annotated[str | None, typer.Option(help="Only of this project.")] = None,
    client: Annotated[str | None, typer.Option(help="Only of this client, such as claude-code.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Only from this source: user, assistant, tool, external, or an author.")
    ] = None,
    since: Annotated[str | None, typer.Option(help=f"Only what was said from this on: {ACCEPTED}.")] = None,
    until: Annotated[str | None, typer.Option(help="Only what was said up to this; a whole day counts.")] = None,
    messages: Annotated[
        bool | None,
        typer.Option(help="Whether to delete the words of the messages, too. Default: only if no ids are given."),
    ] = None,
    echoes: Annotated[
        bool, typer.Option(help="Whether to delete texts that only repeat the forgotten ones, too.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be forgotten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before words or limits are forgotten.")] = False,
    prove: Annotated[
        str | None, typer.Option(help="Search every text for what this receipt forgot: fgt_…", metavar="RECEIPT")
    ] = None,
    allow: Annotated[
        str | None, typer.Option(help="Let what this receipt forgot come back.", metavar="RECEIPT")
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also remove all deleted rows from the files of the database.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Delete memories, passages, or all that says some words, with what was drawn from it and repeats it."""
    begin, end = typed_time("--since", since), typed_time("--until", until)
    limits = (ids, words, session, project, client, source, since, until, prove, allow)
    if purge and not any(limits):
        _purge(data_dir, as_json=as_json)
        return
    require_answerable(as_json=as_json, is_agreed=bool(ids or yes or dry_run or prove or allow))
    api = connect()
    if prove:
        show_proof(api.get(f"/v1/forget/{quote(prove, safe='')}"), as_json=as_json)
        return
    if allow:
        lifted = api.delete(f"/v1/forget/{quote(allow, safe='')}")
        print_json(lifted) if as_json else say(f"What {allow} forgot may come back.")
        return
    body: dict[str, Any] = {"ids": ids or [], "words": words or [], "project": project, "client": client}
    body |= {"session_id": resolve_session(api, session) if session else None, "source": source}
    body |= {"since": begin and as_sent(begin.start), "until": end and as_sent(end.end)}
    body |= {"messages": messages, "echoes": echoes}
    body = {name: value for name, value in body.items() if value is not None}
    if not agreed(api, "/v1/forget", body, show_plan, dry_run=dry_run, yes=bool(ids) or yes, as_json=as_json):
        return
    _forget(api, body, as_json=as_json)
    if purge:
        _purge(data_dir, as_json=as_json)


def _purge(data_dir: Path | None, *, as_json: bool) -> None:
    done = purged(settings_for(data_dir))
    if as_json:
        print_json(done)
        return
    say(f"Rewrote {counted(done.tables, 'table')} without deleted rows.")
    if done.wal_files is None:
        say("The write-ahead log was not removed: that needs a superuser of the database.")
    else:
        say(f"Removed {counted(done.wal_files, 'file')} of the write-ahead log.")
    say("Backups, replicas and the transcripts of the clients themselves are not touched.")


def _forget(api: Api, body: dict[str, Any], *, as_json: bool) -> None:
    receipt = api.post("/v1/forget", body)
    if as_json:
        print_json(receipt)
    else:
        show_receipt(receipt)


def show_receipt(receipt: dict[str, Any]) -> None:
    """Print how much was forgotten."""
    say(f"Forgotten: {', '.join(counted(receipt[many], one) for many, one in _COUNTED.items())}.")
    if receipt["restored"]:
        again = counted(receipt["restored"], "memory that it had replaced is", "memories that it had replaced are")
        say(f"{again} live again.")
    if receipt["renamed"]:
        names = "name of a project, directory or client", "names of projects, directories and clients"
        say(f"{counted(receipt['renamed'], *names)} replaced by others.")
    _show_left(receipt["left"])
    say(f"Receipt {receipt['id']}.")


def show_proof(proof: dict[str, Any], *, as_json: bool) -> None:
    """Print a proof, and end with 1 if something is left."""
    if as_json:
        print_json(proof)
    else:
        say(f"Searched {counted(proof['texts'], 'text')} in {counted(proof['columns'], 'place')}.")
        _show_left(proof["left"])
        if not proof["left"]:
            say(f"Nothing that {proof['id']} forgot is left.")
    if proof["left"]:
        raise typer.Exit(1)


def _show_left(left: dict[str, int]) -> None:
    for place, count in left.items():
        say(f"Left in {place}: {counted(count, 'text that says it', 'texts that say it')}.")


def show_plan(plan: dict[str, Any]) -> str:
    """Print what would be forgotten, and return the question whether to."""
    if plan["names"]:
        say(f"Looked for: {', '.join(plan['names'])}.")
    for row in plan["memories"]:
        reason = ROW_REASONS[row["why"]]
        say(f"{row['id']} {row['kind']}{reason and f', {reason}'}: {row['content']}")
    for message in plan["messages"]:
        what = "blanked" if message["blanked"] else "taken out of passages"
        echo = ", repeats it" if message["why"] == "echo" else ""
        # The words to be forgotten may be far behind the beginning of an argument.
        text = readable(message["text"], TOOL_CHARACTERS)
        say(f"message {message['seq']} of {message['session_id']}, {message['role']}{echo}, {what}: {text}")
    for text in plan["notes"]:
        say(f"note of a session: {text}")
    for memory_id in plan["rewritten"]:
        say(f"{memory_id} loses its quotation.")
    for name in plan["renamed"]:
        say(f"name that is replaced by another: {name}")
    if not any(plan[part] for part in ("memories", "messages", "notes", "renamed")):
        say("Nothing says it.")
    return "Forget all of this?"
