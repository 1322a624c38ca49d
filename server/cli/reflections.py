"""`esker reflect` and `esker reflections`."""

from typing import Annotated

import typer
from rich.text import Text

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, console, print_json, progress, say, table
from esker.server.cli.sessions import (
    SessionOutcomes,
    Wait,
    all_sessions,
    ask_each,
    ask_until_done,
    report_outcomes,
    resolve_session,
)
from esker.server.core.counts import counted
from esker.server.core.json_input import JsonObject
from esker.server.core.pack.rendering import MARK
from esker.server.core.text.fencing import fenced

app = typer.Typer(add_completion=False)
reflections = typer.Typer(add_completion=False)
app.add_typer(reflections, name="reflections")
ReflectionIdArgument = Annotated[str, typer.Argument(help="The id of the reflection, ref_…")]


@app.command()
def reflect(
    session: Annotated[
        str | None, typer.Argument(help="A session: Esker's id or the client's own. Default: the whole pool.")
    ] = None,
    sessions: Annotated[bool, typer.Option("--sessions", help="All sessions that have new observations.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which memories would be considered.")] = False,
    project: Annotated[str | None, typer.Option(help="For the pool: only this project.")] = None,
    min_age_days: Annotated[
        float | None,
        typer.Option(min=0, help="For the pool: only memories at least this old. Default: 3, or as configured."),
    ] = None,
    target_tokens: Annotated[
        int | None, typer.Option(help="Maximum number of tokens that a batch is condensed to; at least 100.")
    ] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Condense memories of one session, of all sessions, or of the pool.

    For the pool, those are memories that sessions left there days ago.
    """
    options = {"project": project, "min_age_days": min_age_days, "target_tokens": target_tokens}
    body: JsonObject = {name: value for name, value in options.items() if value is not None}
    if (session or sessions) and (body or dry_run):
        raise typer.BadParameter(
            "--dry-run, --project, --min-age-days and --target-tokens apply only to the whole pool."
        )
    if session and sessions:
        raise typer.BadParameter("Give either a session or --sessions.")
    api = connect()
    if session or sessions:
        names = [resolve_session(api, session)] if session else all_sessions(api, unreflected="true")
        with progress(shown=wait and not as_json) as shown:
            done = ask_each(api, names, "reflect", wait, shown)
        _show_sessions(done, as_json)
    elif dry_run:
        _show_plan(api.post("/v1/reflect", {**body, "dry_run": True}), as_json)
    else:
        with progress(shown=wait and not as_json) as shown:
            task = shown.add_task("Reflecting the pool", total=1)
            report = ask_until_done(api, f"/v1/reflect?wait={str(wait).lower()}", body, wait=wait)
            shown.advance(task)
        _show_pool(report, as_json)


def _show_sessions(done: SessionOutcomes, as_json: bool) -> None:
    for report in done.reports:
        if report["rejected"] and not as_json:
            some = "Some of " if report["reflection_ids"] else ""
            say(f"{some}{report['session_id']} was not condensed: {report['rejected']}.")
    condensed = [report for report in done.reports if report["reflection_ids"] or not report["rejected"]]
    report_outcomes(done, f"reflected: {_condensed_text(condensed)}", as_json)


def _condensed_text(reports: list[JsonObject]) -> str:
    before, after = (sum(report[f"tokens_{when}"] for report in reports) for when in ("before", "after"))
    old, new, out = (sum(report[which] for report in reports) for which in ("superseded", "memories", "left_out"))
    if not old:
        return "nothing to condense"
    text = f"{counted(old, 'memory', 'memories')} became {new:,}, {counted(before, 'token')} became {after:,}"
    return text + (f"; {counted(out, 'minor memory was', 'minor memories were')} left out" if out else "")


def _show_plan(plan: JsonObject, as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    say(f"{counted(plan['rows'], 'memory', 'memories')} ({counted(plan['tokens'], 'token')}) would be considered.")
    rows = [
        (b["project"] or "(none)", b["rows"], b["tokens"], b["first_said_at"][:10], b["last_said_at"][:10])
        for b in plan["batches"]
    ]
    table(("project", "memories", "tokens", "from", "to"), rows)


def _show_pool(report: JsonObject, as_json: bool) -> None:
    if as_json:
        print_json(report)
    elif report["queued"]:
        say("The pool will be reflected in the background.")
    elif report["rejected"]:
        say(f"Some of the pool was not condensed: {report['rejected']}.")
    elif not report["reflection_ids"]:
        looked_at = report["tokens_before"]
        say(f"Nothing in {counted(looked_at, 'token')} could be condensed." if looked_at else "There is nothing to do.")
    if not as_json and report["reflection_ids"]:
        say(f"The pool is reflected: {_condensed_text([report])}.")
        say(f"`esker reflections diff {report['reflection_ids'][-1]}` shows the changes.")


@reflections.callback(invoke_without_command=True)
def list_reflections(
    context: typer.Context,
    session: Annotated[str | None, typer.Option(help="Only of this session: Esker's id or the client's own.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of reflections.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List reflections, show the changes of one, or undo it."""
    if context.invoked_subcommand:
        return
    api = connect()
    session_id = resolve_session(api, session) if session else None
    found = api.get("/v1/reflections", session_id=session_id, limit=limit)["reflections"]
    if as_json:
        print_json(found)
        return
    columns = ("id", "of", "when", "by", "state", "memories", "tokens")
    table(columns, [_listed(reflection) for reflection in found])
    for reflection in found:
        if reflection["reason"]:
            say(f"{reflection['id']}: {reflection['reason']}")


def _listed(reflection: JsonObject) -> tuple[object, ...]:
    origin = reflection["session_id"] or f"the pool{', ' + reflection['project'] if reflection['project'] else ''}"
    rows = f"{len(reflection['input_ids']):,}"
    tokens = f"{reflection['tokens_before']:,}"
    if reflection["state"] != "rejected":
        rows += f" → {len(reflection['output_ids']):,}"
        tokens += f" → {reflection['tokens_after']:,}"
    when = reflection["created_at"][:16].replace("T", " ")
    return reflection["id"], origin, when, reflection["reflector"], reflection["state"], rows, tokens


@reflections.command()
def diff(reflection_id: ReflectionIdArgument, as_json: AsJson = False) -> None:
    """Show the changes of a reflection: removed rows (red), new rows (green), kept rows."""
    found = connect().get(f"/v1/reflections/{reflection_id}/diff")
    if as_json:
        print_json(found)
        return
    reflection = found["reflection"]
    say(f"{reflection['id']} by {reflection['reflector']}, {reflection['state']}")
    if reflection["reason"]:
        say(f"Nothing was changed: {reflection['reason']}.")
    for change in found["changes"]:
        say()
        _show_change(change)
    say()
    say(f"{counted(reflection['tokens_before'], 'token')} became {reflection['tokens_after']:,}.")


def _show_change(change: JsonObject) -> None:
    """Print one change; the signs carry the same information as the colours."""
    sign, style = {"became": ("-", "red"), "dropped": ("-", "red"), "kept": (" ", ""), "insight": (" ", "dim")}[
        change["change"]
    ]
    if change["after"] and [row["content"] for row in change["before"]] == [change["after"]["content"]]:
        console.print(Text(f"  {_line(change['after'])}", "dim"))  # word for word
        return
    for row in change["before"]:
        console.print(Text(f"{sign} {_line(row)}", style))
    if change["after"]:
        label = "insight, " if change["change"] == "insight" else ""
        console.print(Text(f"+ {label}{_line(change['after'])}", "green"))
    elif change["change"] == "dropped":
        console.print(Text("  (left out; `esker memories --superseded` still shows it)", "dim"))


def _line(row: JsonObject) -> str:
    return f"{MARK[row['priority']]} {row['said_at'][:10]} {fenced(row['content'])} [{row['id']}]"


@reflections.command()
def undo(reflection_id: ReflectionIdArgument, as_json: AsJson = False) -> None:
    """Undo a reflection: the memories it replaced are live again."""
    undone = connect().post(f"/v1/reflections/{reflection_id}/undo")
    if as_json:
        print_json(undone)
    else:
        restored = counted(undone["restored"], "memory is", "memories are")
        say(f"{restored} live again; {counted(undone['taken_back'], 'row')} of the reflection removed.")
