"""`esker recall` (and `search`), `memories`, `remember`, `edit`, `pin` and `confirm`."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

import typer

from esker.server.agents.local_zone import local_zone
from esker.server.agents.project import is_excluded, repository_of
from esker.server.cli.connection import Api, connect
from esker.server.cli.output import AsJson, WrongUsage, note, print_json, say
from esker.server.cli.sessions import resolve_session
from esker.server.cli.times import ACCEPTED, as_sent, typed_time
from esker.server.core.clock import system_clock
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.conversation.readable_calls import readable
from esker.server.core.counts import counted
from esker.server.core.errors import Misconfigured
from esker.server.core.http_answers import ServerRefused
from esker.server.core.json_input import JsonObject
from esker.server.core.pack.rendering import MARK, SAID, unknown_line
from esker.server.core.records import KINDS, AskedTier, Category, Priority, Scope
from esker.server.core.similar_projects import UnknownProject
from esker.server.core.text.fencing import neutral

app = typer.Typer(add_completion=False)

ProjectOption = Annotated[str | None, typer.Option(help="Only this project, and memories that belong to none.")]


@app.command("search", help="Ask memory a question: another name of `recall`.")
@app.command()
def recall(
    query: Annotated[list[str], typer.Argument(help="The question, in plain words, with or without quotation marks.")],
    limit: Annotated[int, typer.Option(min=1, max=50, help="Maximum number of memories.")] = 8,
    project: ProjectOption = None,
    scope: Annotated[
        Scope | None, typer.Option(help="Where to look. Default: the project if one is named, else the whole pool.")
    ] = None,
    session: Annotated[str | None, typer.Option(help="Only this session: Esker's id or the client's own.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option(help="Only memories of this kind; if repeated, of any of them.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only memories with this tag; if repeated, with all of them.")
    ] = None,
    min_priority: Annotated[Priority, typer.Option(help="Only memories of at least this priority.")] = "low",
    since: Annotated[
        str | None, typer.Option(help=f"Only memories said, or about a time, from this on: {ACCEPTED}.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only memories said, or about a time, up to this; a whole day counts.")
    ] = None,
    as_of: Annotated[str | None, typer.Option(help="Answer as of this time; a day means its end.")] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Include superseded memories.")] = False,
    tier: Annotated[AskedTier, typer.Option(help="Facts, verbatim messages, or both.")] = "both",
    explain: Annotated[bool, typer.Option(help="Show the parts of each score.")] = False,
    timezone: Annotated[
        str | None, typer.Option(help='Time zone of words like "yesterday". Default: that of this machine.')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask memory a question."""
    _check_kinds(kind or [])
    begin, end = typed_time("--since", since, timezone), typed_time("--until", until, timezone)
    then = typed_time("--as-of", as_of, timezone)
    api = connect()
    body: dict[str, Any] = {"query": " ".join(query), "limit": limit, "explain": explain}
    body["timezone"] = timezone or local_zone()
    scope = scope or ("session" if session else None)
    body |= {"scope": scope, "project": project, "session_id": resolve_session(api, session) if session else None}
    body |= {"kinds": kind or None, "tags": tag or None, "min_priority": min_priority, "tier": tier}
    body |= {"since": begin and as_sent(begin.start), "until": end and as_sent(end.end)}
    # If the day is today, use now, not its end: a memory that expires tonight still holds.
    body |= {"as_of": then and as_sent(min(then.end, max(then.start, system_clock())))}
    body |= {"include_superseded": superseded}
    found = api.post("/v1/recall", {name: value for name, value in body.items() if value is not None})
    if as_json:
        print_json(found)
    else:
        show_recalled(found)
        if found["abstained"] and _is_empty(api.get("/v1/status")):
            say("Memory is empty: `esker install` connects your agents, `esker ingest --all` reads earlier sessions.")


def _check_kinds(given: list[str]) -> None:
    """Raise WrongUsage for a kind that no memory has; the library has no choices for options that can be repeated."""
    for kind in given:
        if kind not in KINDS:
            raise WrongUsage(f"--kind must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {kind!r}.")


def _is_empty(status: JsonObject) -> bool:
    return not status["messages"] and not status["memories"]


def show_recalled(found: dict[str, Any]) -> None:
    """Print the answer to a recall: each memory with its score, age and source."""
    if found["abstained"]:
        say("Nothing in memory is about this.")
    if unknown := found["unknown_project"]:
        say(f"{unknown_line(UnknownProject(**unknown))}{' These belong to no project:' if found['hits'] else ''}")
    for hit in found["hits"]:
        mark = MARK[hit["priority"]] if hit["priority"] else SAID
        # A passage has several lines, and has no kind.
        content = neutral(hit["content"] if hit["kind"] else readable(hit["content"]))
        say(f"{hit['score']:.2f} {mark} " + content.replace("\n", "\n     "))
        say(f"     {hit['age']}, {_sources_text(hit)}")
        if hit["parts"]:
            say("     " + ", ".join(f"{name} {value}" for name, value in hit["parts"].items() if value is not None))
    if found["semantic"] == "degraded":
        say(f"Searched by keyword only: {found['reason']}.")
    elif found["semantic"] == "weak":
        say(f"Found mostly by keyword: {found['reason']}.")
    elif found["pending"]:
        say(f"{counted(found['pending'], 'memory', 'memories')} cannot be found by meaning yet.")
    if found["omitted"]:
        say(f"{counted(found['omitted'], 'more is', 'more are')} relevant.")
    if found["unobserved_tokens"]:
        waiting = counted(found["unobserved_tokens"], "token of messages is", "tokens of messages are")
        say(f"{waiting} not observed yet.")


def _sources_text(hit: dict[str, Any]) -> str:
    origin = "; ".join(map(_source_text, hit["sources"])) or f"a {hit['kind']}"
    return f"{origin}{', project ' + hit['project'] if hit['project'] else ''} [{hit['id']}]"


def _source_text(source: dict[str, Any]) -> str:
    if source["seqs"]:
        noun = "message" if len(source["seqs"]) == 1 else "messages"
        return f"{noun} {', '.join(map(str, source['seqs']))} of {source['session_id']}"
    count = counted(len(source["memory_ids"]), "memory")
    return f"reflected from {count} of {source['session_id'] or 'the pool'}"


@app.command()
def memories(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of memories.")] = 20,
    project: ProjectOption = None,
    session: Annotated[
        str | None, typer.Option(help="Only memories of this session: Esker's id or the client's own.")
    ] = None,
    superseded: Annotated[bool, typer.Option("--superseded", help="Include superseded and expired memories.")] = False,
    as_json: AsJson = False,
) -> None:
    """List memories, newest first."""
    api = connect()
    body = {"limit": limit, "project": project, "session_id": resolve_session(api, session) if session else None}
    found = api.get("/v1/memories", **body, include_superseded=str(superseded).lower())["memories"]
    if as_json:
        print_json(found)
        return
    if not found:
        say("There are no memories.")
    for row in found:
        replaced_by = f", replaced by {row['superseded_by']}" if row["superseded_by"] else ""
        reserved = ", tentative" if row["tentative"] else ""
        head = f"{row['id']} {MARK[row['priority']]} {row['said_at'][:10]} {row['kind']}"
        say(f"{head}{reserved}{replaced_by}: {neutral(row['content'])}")


@app.command()
def remember(
    content: Annotated[
        list[str], typer.Argument(help="One fact, in one or two sentences; `-` reads it from standard input.")
    ],
    priority: Annotated[Priority, typer.Option(help="Its priority.")] = "medium",
    pin: Annotated[bool, typer.Option(help="Put it first in every pack.")] = False,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; can be repeated.")] = None,
    project: Annotated[
        str | None, typer.Option(help="The project it is about. Default: that of the current repository.")
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="It is about all projects, not only the current one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a memory about the current repository; outside of one, about all projects."""
    if project and everywhere:
        raise typer.BadParameter("--project and --everywhere cannot be combined.", param_hint="--everywhere")
    words = _given(content)
    body: dict[str, Any] = {"content": words, "priority": priority, "kind": "manual" if pin else "note"}
    body |= {"tags": tag or []}
    if project_name := None if everywhere else project or _current_project():
        body["project"] = project_name
    api = connect()
    written = api.post("/v1/memories", body)
    # A person at a terminal confirms what they write; an agent's commands seldom have one.
    if pin and sys.stdin.isatty():
        try:
            written = _confirmed(api, written["id"])
        except ServerRefused as error:
            # The row is written, so report it even if this key may not confirm it.
            note(f"It is not confirmed: {error}")
    if as_json:
        print_json(written)
        return
    where = f"project {written['project']}" if written["project"] else "all projects"
    say(f"Remembered as {written['id']}, for {where}.")
    if pin and written["trust"] != "user":
        say(f"Packs mark it as pinned by an agent until a person runs `esker confirm {written['id']}`.")


@app.command()
def edit(
    memory_id: Annotated[str, typer.Argument(help="The id of a memory: mem_…", metavar="ID")],
    content: Annotated[
        list[str] | None,
        typer.Argument(help="The right words, with or without quotation marks; `-` reads them from standard input."),
    ] = None,
    priority: Annotated[Priority | None, typer.Option(help="Another priority.")] = None,
    category: Annotated[Category | None, typer.Option(help="Another category.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="The tags that it has from now on; can be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replace a memory by one with other words, priority, category or tags; the old one is kept as superseded."""
    changed = {"content": _given(content or []), "priority": priority, "category": category, "tags": tag}
    given = {name: value for name, value in changed.items() if value}
    if not given:
        raise WrongUsage(
            "Nothing to change was given.",
            hint="Write the right words behind the id (`esker edit ID …`), or --priority, --category or --tag.",
        )
    _replace(memory_id, given, as_json)


@app.command()
def pin(
    memory_id: Annotated[str, typer.Argument(help="The id of a memory: mem_…", metavar="ID")],
    undo: Annotated[bool, typer.Option("--undo", help="Let it take its place by its rank again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Put a memory first in every pack; the row that it was is kept as superseded."""
    _replace(memory_id, {"pinned": not undo}, as_json)


def _given(content: Sequence[str]) -> str:
    """Return the words of a memory, which stand in the command or, for `-`, in standard input."""
    if list(content) != ["-"]:
        return " ".join(content)
    if not (words := sys.stdin.read().strip()):
        raise WrongUsage("Standard input is empty.", hint="Send the words of the memory: `echo … | esker remember -`.")
    return words


def _replace(memory_id: str, changed: Mapping[str, Any], as_json: bool) -> None:
    row = connect().patch(f"/v1/memories/{quote(memory_id, safe='')}", changed)
    if as_json:
        print_json(row)
        return
    say(f"{row['id']} replaces {memory_id}: {row['content']}")
    if row["kind"] == "manual" and row["trust"] != "user":
        say(f"Packs mark it as pinned by an agent until a person runs `esker confirm {row['id']}`.")


@app.command()
def confirm(
    memory_ids: Annotated[list[str], typer.Argument(help="The ids of notes or pinned memories.")],
    as_json: AsJson = False,
) -> None:
    """Confirm that a memory which an agent wrote is your word. Packs mark an agent's pinned rows until then."""
    if not sys.stdin.isatty():
        raise Misconfigured(
            "Only a person confirms a memory, and no terminal is attached.",
            hint="Run this in a terminal, or send POST /v1/memories/ID/confirm.",
        )
    api = connect()
    rows = [_confirmed(api, memory_id) for memory_id in memory_ids]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        say(f"{row['id']} is confirmed: {row['content']}")


def _confirmed(api: Api, memory_id: str) -> dict[str, Any]:
    return api.post(f"/v1/memories/{quote(memory_id, safe='')}/confirm", {})


def _current_project() -> str | None:
    """Return the project of the current repository, as its sessions name it.

    None outside of a repository, and in an excluded one.
    """
    here = os.getcwd()
    project = repository_of(here)
    settings = ClientSettings.from_environment(os.environ)
    return None if is_excluded(here, project, settings.exclude) else project
