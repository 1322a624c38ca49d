"""`esker quarantine`."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, say, table
from esker.server.cli.sessions import resolve_session
from esker.server.cli.times import ACCEPTED, as_sent, typed_time
from esker.server.core.counts import counted

app = typer.Typer(add_completion=False)

_LIMITS = ("session_id", "project", "client", "source", "since", "until")


@app.command()
def quarantine(
    session: Annotated[str | None, typer.Option(help="This session: Esker's id or the client's own.")] = None,
    project: Annotated[str | None, typer.Option(help="This project.")] = None,
    client: Annotated[str | None, typer.Option(help="This client, such as claude-code.")] = None,
    source: Annotated[
        str | None, typer.Option(help="This source: user, assistant, tool, external, or an author.")
    ] = None,
    since: Annotated[str | None, typer.Option(help=f"Said from this on: {ACCEPTED}.")] = None,
    until: Annotated[str | None, typer.Option(help="Said up to this; a whole day counts.")] = None,
    lift: Annotated[str | None, typer.Option(help="Lift this quarantine: qua_…", metavar="ID")] = None,
    as_json: AsJson = False,
) -> None:
    """Take a source out of recall and packs, or bring it back; without options, list quarantines."""
    begin, end = typed_time("--since", since), typed_time("--until", until)
    api = connect()
    if lift:
        done = api.delete(f"/v1/quarantines/{quote(lift, safe='')}")
        print_json(done) if as_json else say(f"Lifted {done['id']}: {_counts(done)} are back.")
        return
    body: dict[str, Any] = {"project": project, "client": client, "source": source}
    body |= {"session_id": resolve_session(api, session) if session else None}
    body |= {"since": begin and as_sent(begin.start), "until": end and as_sent(end.end)}
    body = {name: value for name, value in body.items() if value is not None}
    if body:
        done = api.post("/v1/quarantines", body)
        print_json(done) if as_json else _show(done)
    else:
        _show_list(api.get("/v1/quarantines")["quarantines"], as_json=as_json)


def _show(done: dict[str, Any]) -> None:
    say(f"Quarantine {done['id']}: {_counts(done)} are out of recall and packs.")
    if done["revived"]:
        again = counted(done["revived"], "memory that they replaced is", "memories that they replaced are")
        say(f"{again} live again.")
    say(f"`esker quarantine --lift {done['id']}` brings them back.")


def _counts(done: dict[str, Any]) -> str:
    return f"{counted(done['memories'], 'memory')} and {counted(done['passages'], 'passage')}"


def _show_list(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    elif not found:
        say("There are no quarantines.")
    else:
        rows = [
            (
                one["id"],
                one["created_at"][:10],
                (one["lifted_at"] or "")[:10] or "active",
                ", ".join(f"{name} {one[name]}" for name in _LIMITS if one[name]),
            )
            for one in found
        ]
        table(("id", "begun", "lifted", "limits"), rows)
