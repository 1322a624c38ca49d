"""`esker project` and `esker session`: list, rename, merge and delete projects; delete a session."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from esker.server.agents.api import Api
from esker.server.cli.asking import agreed, require_answerable
from esker.server.cli.connection import connect
from esker.server.cli.forgetting import show_plan, show_proof, show_receipt
from esker.server.cli.output import AsJson, print_json, say, table
from esker.server.cli.sessions import resolve_session
from esker.server.core.counts import counted

app = typer.Typer(add_completion=False)
projects = typer.Typer(add_completion=False, no_args_is_help=True, help="List, rename, merge and delete projects.")
sessions = typer.Typer(add_completion=False, no_args_is_help=True, help="Delete a session.")
app.add_typer(projects, name="project")
app.add_typer(sessions, name="session")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
_COUNTED = {
    "sessions": "session",
    "memories": "memory",
    "passages": "passage",
    "reflections": "reflection",
    "quarantines": "quarantine",
}


@projects.command("list")
def list_projects(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of projects.")] = 100,
    as_json: AsJson = False,
) -> None:
    """List the projects that have memories, the most memories first."""
    found = connect().get("/v1/projects", limit=limit)["projects"]
    if as_json:
        print_json(found)
        return
    table(("project", "memories", "latest"), [(p["project"], p["memories"], p["latest_at"][:10]) for p in found])


@projects.command("rename")
def rename(
    project: Annotated[str, typer.Argument(help="The project.")],
    name: Annotated[str, typer.Argument(help="Its new name.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give a project another name, under which everything of it is found from then on.

    Agents may go on naming it as before: what they send belongs to the new name. Renaming it back undoes it.
    """
    _rename({"project": project, "name": name}, dry_run=dry_run, yes=yes, as_json=as_json)


@projects.command("merge")
def merge(
    project: Annotated[str, typer.Argument(help="The project that is merged into another.")],
    into: Annotated[str, typer.Argument(help="The other project.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Merge a project into another. This cannot be undone: afterwards no row says in which of the two it was."""
    _rename({"project": project, "name": into, "merge": True}, dry_run=dry_run, yes=yes, as_json=as_json)


def _rename(body: dict[str, Any], *, dry_run: bool, yes: bool, as_json: bool) -> None:
    require_answerable(as_json=as_json, is_agreed=dry_run or yes)
    api = connect()
    question = "Merge them?" if body.get("merge") else "Rename it?"

    def show(plan: dict[str, Any]) -> str | None:
        _show_move(plan)
        return None if plan["repeated"] else question

    if not agreed(api, "/v1/projects/rename", body, show, dry_run=dry_run, yes=yes, as_json=as_json):
        return
    move = api.post("/v1/projects/rename", body)
    if as_json:
        print_json(move)
    else:
        say(f"{move['project']} is {'part of ' if body.get('merge') else ''}{move['name']} now.")


def _show_move(plan: dict[str, Any]) -> None:
    if plan["repeated"]:
        say(f"{plan['project']} is {plan['name']} already.")
        return
    say(f"{plan['project']} → {plan['name']}: {_counts(plan['moved'])}.")
    if any(plan["there"].values()):
        say(f"{plan['name']} has {_counts(plan['there'])}. A merge cannot be undone.")
    say("Packs that sessions have already stay as they are until the next reflection.")


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(counted(counts[many], one) for many, one in _COUNTED.items() if counts[many]) or "nothing"


@projects.command("delete")
def delete_project(
    project: Annotated[str, typer.Argument(help="The project.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Forget everything of a project, messages included, with what was drawn from it; then prove it.

    The effect is shown first. It cannot be undone.
    """
    require_answerable(as_json=as_json, is_agreed=dry_run or yes)
    _delete(connect(), {"project": project}, dry_run=dry_run, yes=yes, as_json=as_json)


@sessions.command("delete")
def delete_session(
    session: Annotated[str, typer.Argument(help="A session: Esker's id or the client's own.")],
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Forget everything of a session, messages included, with what was drawn from it; then prove it.

    The effect is shown first. It cannot be undone. The session stays in the list, without words.
    """
    require_answerable(as_json=as_json, is_agreed=dry_run or yes)
    api = connect()
    _delete(api, {"session_id": resolve_session(api, session)}, dry_run=dry_run, yes=yes, as_json=as_json)


def _delete(api: Api, limits: dict[str, Any], *, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Forget all within some limits, show the receipt, and prove it; exit with 1 if something is left."""
    body = {**limits, "messages": True}
    if not agreed(api, "/v1/forget", body, show_plan, dry_run=dry_run, yes=yes, as_json=as_json):
        return
    receipt = api.post("/v1/forget", body)
    if not as_json:
        show_receipt(receipt)
    # An empty session leaves nothing to search for.
    has_words = receipt["memories"] or receipt["messages"]
    proof = api.get(f"/v1/forget/{quote(receipt['id'], safe='')}") if has_words else None
    if as_json:
        print_json({"receipt": receipt, "proof": proof})
    elif proof:
        show_proof(proof, as_json=False)
    if proof and proof["left"]:
        raise typer.Exit(1)
