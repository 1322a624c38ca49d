"""`esker recall`, `memories`, `remember`, `forget`."""

import os
from typing import Annotated, Any
from urllib.parse import quote

import typer

from esker.server.agents.local_zone import local_zone
from esker.server.agents.project import is_excluded, repository_of
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, say
from esker.server.cli.sessions import resolve_session
from esker.server.cli.times import ACCEPTED, as_sent, asked_time
from esker.server.core.clock import system_clock
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.counts import counted
from esker.server.core.pack.rendering import MARK, SAID, unknown_line
from esker.server.core.projects import UnknownProject
from esker.server.core.records import AskedTier, Priority, Scope

app = typer.Typer(add_completion=False)

ProjectOption = Annotated[str | None, typer.Option(help="This project, and what belongs to none.")]


@app.command()
def recall(
    query: Annotated[list[str], typer.Argument(help="The question, in plain words, with or without quotation marks.")],
    limit: Annotated[int, typer.Option(min=1, max=50, help="The most memories to show.")] = 8,
    project: ProjectOption = None,
    scope: Annotated[
        Scope | None, typer.Option(help="Where to look; a project where one is named, else the whole pool.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Only this session: our id or the client's own.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only of this kind; several: of one of them.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; several: with all.")] = None,
    min_priority: Annotated[Priority, typer.Option(help="Only what matters at least so much.")] = "low",
    since: Annotated[
        str | None, typer.Option(help=f"Only what was said, or is about a time, from here on: {ACCEPTED}.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only what was said, or is about a time, up to here; a day counts whole.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option(help="Answer with what was believed then, or by the end of a day.")
    ] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Also what has been replaced.")] = False,
    tier: Annotated[AskedTier, typer.Option(help="Facts, verbatim messages, or both.")] = "both",
    explain: Annotated[bool, typer.Option(help="Show the parts of each score.")] = False,
    timezone: Annotated[
        str | None, typer.Option(help='Where "yesterday" is meant; without it the zone of this machine.')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask memory a question."""
    begin, end = asked_time("--since", since, timezone), asked_time("--until", until, timezone)
    then = asked_time("--as-of", as_of, timezone)
    api = connect()
    asked: dict[str, Any] = {"query": " ".join(query), "limit": limit, "explain": explain}
    asked["timezone"] = timezone or local_zone()
    scope = scope or ("session" if session else None)
    asked |= {"scope": scope, "project": project, "session_id": resolve_session(api, session) if session else None}
    asked |= {"kinds": kind or None, "tags": tag or None, "min_priority": min_priority, "tier": tier}
    asked |= {"since": begin and as_sent(begin.start), "until": end and as_sent(end.end)}
    # What expires tonight still holds today.
    asked |= {"as_of": then and as_sent(min(then.end, max(then.start, system_clock())))}
    asked |= {"include_superseded": superseded}
    found = api.post("/v1/recall", {name: value for name, value in asked.items() if value is not None})
    if as_json:
        print_json(found)
    else:
        show_recalled(found)


def show_recalled(found: dict[str, Any]) -> None:
    """Print the answer to a recall: a line for each memory with its score, age and source."""
    if found["abstained"]:
        say("Nothing in memory is about this.")
    if unknown := found["unknown_project"]:
        say(f"{unknown_line(UnknownProject(**unknown))}{' This belongs to no project:' if found['hits'] else ''}")
    for hit in found["hits"]:
        mark = MARK[hit["priority"]] if hit["priority"] else SAID
        # A passage has several lines.
        say(f"{hit['score']:.2f} {mark} " + hit["content"].replace("\n", "\n     "))
        say(f"     {hit['age']}, {_source(hit)}")
        if hit["parts"]:
            say("     " + ", ".join(f"{name} {value}" for name, value in hit["parts"].items() if value is not None))
    if found["semantic"] == "degraded":
        say(f"Found by keyword only: {found['reason']}.")
    elif found["semantic"] == "weak":
        say(f"Found mostly by keyword: {found['reason']}.")
    elif found["pending"]:
        say(f"{counted(found['pending'], 'memory', 'memories')} cannot be found by meaning yet.")
    if found["omitted"]:
        say(f"{counted(found['omitted'], 'more is', 'more are')} relevant.")
    if found["unobserved_tokens"]:
        waiting = counted(found["unobserved_tokens"], "token of messages is", "tokens of messages are")
        say(f"{waiting} not observed yet.")


def _source(hit: dict[str, Any]) -> str:
    origin = "; ".join(map(_origin, hit["sources"])) or f"a {hit['kind']}"
    return f"{origin}{', project ' + hit['project'] if hit['project'] else ''} [{hit['id']}]"


def _origin(source: dict[str, Any]) -> str:
    if source["seqs"]:
        return f"messages {', '.join(map(str, source['seqs']))} of {source['session_id']}"
    count = counted(len(source["memory_ids"]), "memory")
    return f"reflected from {count} of {source['session_id'] or 'the pool'}"


@app.command()
def memories(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The most memories to show.")] = 20,
    project: ProjectOption = None,
    session: Annotated[str | None, typer.Option(help="Only of this session: our id or the client's own.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Also what was replaced or has expired.")] = False,
    as_json: AsJson = False,
) -> None:
    """List memories, newest first."""
    api = connect()
    asked = {"limit": limit, "project": project, "session_id": resolve_session(api, session) if session else None}
    found = api.get("/v1/memories", **asked, include_superseded=str(superseded).lower())["memories"]
    if as_json:
        print_json(found)
        return
    if not found:
        say("None.")
    for row in found:
        gone = f", replaced by {row['superseded_by']}" if row["superseded_by"] else ""
        reserved = ", tentative" if row["tentative"] else ""
        say(
            f"{row['id']} {MARK[row['priority']]} {row['said_at'][:10]} {row['kind']}{reserved}{gone}: {row['content']}"
        )


@app.command()
def remember(
    content: Annotated[list[str], typer.Argument(help="One fact, in one or two sentences.")],
    priority: Annotated[Priority, typer.Option(help="How much it matters.")] = "medium",
    pin: Annotated[bool, typer.Option(help="Show it first in every pack.")] = False,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; can be given several times.")] = None,
    project: Annotated[
        str | None, typer.Option(help="The project that it is about; else that of the repository you are in.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="It is about all projects, not about the one you are in.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a memory, about the repository you are in; outside of one, for all projects."""
    if project and everywhere:
        raise typer.BadParameter("A memory is about one project or about all of them.", param_hint="--everywhere")
    body: dict[str, Any] = {"content": " ".join(content), "priority": priority, "kind": "manual" if pin else "note"}
    body |= {"tags": tag or []}
    if about := None if everywhere else project or _project_here():
        body["project"] = about
    written = connect().post("/v1/memories", body)
    if as_json:
        print_json(written)
    else:
        where = f"project {written['project']}" if written["project"] else "all projects"
        say(f"Remembered as {written['id']}, for {where}.")


def _project_here() -> str | None:
    """Return the project of the repository that the command is run in, as its sessions name it.

    None outside of one, where a directory has a name but is no project, and in one that is to be left alone.
    """
    here = os.getcwd()
    project = repository_of(here)
    settings = ClientSettings.from_environment(os.environ)
    return None if is_excluded(here, project, settings.exclude) else project


@app.command()
def forget(
    text_id: Annotated[str, typer.Argument(help="The id of a memory or a passage: mem_… or psg_…", metavar="ID")],
    messages: Annotated[bool, typer.Option(help="Also forget the words of the messages it came from.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a memory and all that says the same, or a passage and its messages' words."""
    receipt = connect().delete(f"/v1/memories/{quote(text_id, safe='')}?messages={str(messages).lower()}")
    if as_json:
        print_json(receipt)
    else:
        names = {"memories": "memory", "vectors": "vector", "packs": "pack", "messages": "message"}
        say(f"Forgotten: {', '.join(counted(receipt[many], one) for many, one in names.items())}.")
        if receipt["restored"]:
            again = counted(receipt["restored"], "memory that it had replaced is", "memories that it had replaced are")
            say(f"{again} live again.")
