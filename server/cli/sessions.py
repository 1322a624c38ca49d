"""`esker sessions`, `observe` and `pack`, and requests for several sessions at once."""

from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich.progress import Progress

from esker.server.agents.api import Api
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, console, note, print_json, progress, say, table
from esker.server.cli.session_view import show_memory
from esker.server.core.counts import counted
from esker.server.core.errors import EskerError, NotFound
from esker.server.core.ids import is_session
from esker.server.core.json_input import JsonObject

app = typer.Typer(add_completion=False)

SessionArgument = Annotated[
    str | None, typer.Argument(help="A session: Esker's id or the client's own. Default: all sessions.")
]
Wait = Annotated[bool, typer.Option(help="Wait until it has finished.")]


@app.command()
def sessions(
    session: Annotated[str | None, typer.Argument(help="A session to show: Esker's id or the client's own.")] = None,
    project: Annotated[str | None, typer.Option(help="Only sessions of this project.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of sessions.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List sessions, the most recently begun first, or show the memory of one."""
    api = connect()
    if session:
        memory = api.get(f"/v1/sessions/{resolve_session(api, session)}/memory")
        if as_json:
            print_json(memory)
        else:
            show_memory(memory)
        return
    found = api.get("/v1/sessions", project=project, limit=limit)["sessions"]
    if as_json:
        print_json(found)
        return
    columns = ("id", "client", "the client's own id", "project", "messages", "observed", "unobserved tokens")
    table((*columns, "begun (UTC)", "last message (UTC)"), [_row(session) for session in found])


def _row(session: JsonObject) -> tuple[object, ...]:
    return (
        session["id"],
        session["client"],
        session["external_id"],
        session["project"] or "",
        session["messages"],
        session["observed_messages"],
        session["unobserved_tokens"],
        _minute(session["begun_at"]),
        _minute(session["last_sent_at"]),
    )


def _minute(moment: str | None) -> str:
    return (moment or "")[:16].replace("T", " ")


@dataclass(slots=True)
class SessionOutcomes:
    """The results of a request to several sessions: reports, and errors by session."""

    reports: list[JsonObject] = field(default_factory=list[JsonObject])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    queued: int = 0


@app.command()
def observe(session: SessionArgument = None, wait: Wait = False, as_json: AsJson = False) -> None:
    """Observe the unobserved messages of one session or of all."""
    api = connect()
    names = [resolve_session(api, session)] if session else all_sessions(api, unobserved="true")
    with progress(shown=wait and not as_json) as shown:
        done = observe_all(api, names, wait=wait, shown=shown)
    written = sum(report["memories"] for report in done.reports)
    report_outcomes(done, f"observed, {counted(written, 'memory', 'memories')} written{_others(done)}", as_json)


def _others(done: SessionOutcomes) -> str:
    """Return the counts of facts that did not become a row of their own, in brackets."""
    merged, replaced = (sum(report[name] for report in done.reports) for name in ("merged", "replaced"))
    refused = sum(count for report in done.reports for count in report["refused"].values())
    parts = [
        *([f"{merged:,} already known"] if merged else []),
        *([f"{counted(replaced, 'old one')} replaced"] if replaced else []),
        *([f"{refused:,} refused"] if refused else []),
    ]
    return f" ({', '.join(parts)})" if parts else ""


def observe_all(api: Api, names: list[str], *, wait: bool, shown: Progress) -> SessionOutcomes:
    """Observe sessions; a failure of one does not stop the others."""
    return ask_each(api, names, "observe", wait, shown)


def ask_each(api: Api, names: list[str], verb: str, wait: bool, shown: Progress) -> SessionOutcomes:
    """Send one request for each session; a failure of one does not stop the others."""
    done = SessionOutcomes()
    for name in shown.track(names, description=f"{verb.capitalize().removesuffix('e')}ing"):
        try:
            report = ask_until_done(api, f"/v1/sessions/{name}/{verb}?wait={str(wait).lower()}", wait=wait)
        except EskerError as error:
            done.failed[name] = str(error)
            continue
        done.reports.append({"session_id": name, **report})
        done.queued += report["queued"]
    return done


def ask_until_done(api: Api, path: str, body: JsonObject | None = None, *, wait: bool) -> JsonObject:
    """Send a request; with `wait`, repeat it until its work is no longer queued."""
    while True:
        report = api.post(path, body)
        if not (wait and report["queued"]):
            return report


def report_outcomes(done: SessionOutcomes, outcome: str, as_json: bool) -> None:
    """Print the results of a request to several sessions; exit with 1 if one of them failed."""
    if as_json:
        print_json({"sessions": done.reports, "failed": done.failed})
    else:
        for name, reason in done.failed.items():
            say(f"{name} failed: {reason}")
        finished = len(done.reports) - done.queued
        if not done.reports and not done.failed:
            say("There is nothing to do.")
        if finished:
            say(f"{counted(finished, 'session')} {outcome}.")
        if done.queued:
            say(f"{counted(done.queued, 'session')} will be done in the background.")
    if done.failed:
        raise typer.Exit(1)


def all_sessions(api: Api, **filters: str) -> list[str]:
    """Return the ids of all sessions that match a filter of the API."""
    names: list[str] = []
    before = None
    while True:
        page = api.get("/v1/sessions", before=before, limit=1000, **filters)
        names += [session["id"] for session in page["sessions"]]
        before = page["next"]
        if before is None:
            return names


@app.command()
def pack(
    session: Annotated[str, typer.Argument(help="A session: Esker's id or the client's own.")],
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why each row is in the pack and why others are not.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the context pack of a session."""
    api = connect()
    found = api.get(f"/v1/sessions/{resolve_session(api, session)}/pack", explain="true" if explain else None)
    if as_json:
        print_json(found)
        return
    if explain:
        _show_reasons(found)
    else:
        console.print(found["text"], markup=False)
    left = f" {counted(found['pins_left'], 'pinned row')} did not fit." if found["pins_left"] else ""
    made = _minute(found["created_at"])
    size = counted(found["tokens"], "token")
    note(f"Version {found['version']} ({found['reason']}), {size}, frozen at {made} UTC.{left}")


def _show_reasons(found: JsonObject) -> None:
    explanation = found["explanation"]
    if explanation is None:
        say("This pack was frozen before explanations were stored; the next one will have an explanation.")
        return
    # Each row is one line of the text, in the same order.
    lines = [line.removeprefix("* ") for line in found["text"].splitlines() if line.startswith("* ")]
    shown = [(*_reason(row), line) for row, line in zip(explanation["rows"], lines, strict=True)]
    table((*_REASON_COLUMNS, "row"), shown)
    if explanation["left_out"]:
        say()
        say("Candidates left out:")
        table((*_REASON_COLUMNS, "row"), [(*_reason(row), row["id"]) for row in explanation["left_out"]])


_REASON_COLUMNS = ("section", "rank", "why", "score", "kind", "priority", "days since use", "tokens")
_WHY = {"pinned": "pinned", "rank": "its rank", "budget": "does not fit", "same_words": "same words as"}


def _reason(row: JsonObject) -> tuple[object, ...]:
    return (
        row["section"],
        row["rank"] or "",
        _WHY[row["why"]] + (f" {row['like']}" if row["like"] else ""),
        "" if row["score"] is None else f"{row['score']:.3f}",
        row["kind"],
        row["priority"],
        f"{row['age_days']:.1f}",
        row["tokens"],
    )


def resolve_session(api: Api, name: str) -> str:
    """Return Esker's id of a session given by that id or by the client's own. Raises NotFound, ServerRefused."""
    if is_session(name):
        return name
    found = api.get("/v1/sessions", external_id=name)["sessions"]
    if not found:
        raise NotFound(f"There is no session {name!r} in this pool.", hint="`esker sessions` lists the existing ones.")
    return found[0]["id"]
