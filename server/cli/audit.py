"""`esker audit`: who wrote, read in bulk, exported, forgot or changed keys."""

from typing import Annotated, Any

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, print_json, say, table

app = typer.Typer(add_completion=False)


@app.command("audit")
def audit_command(
    actor: Annotated[str | None, typer.Option(help="Only what this key (key_…, `local` or `operator`) did.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Only this action, such as memory.write; `memory`: all on memories.")
    ] = None,
    before: Annotated[int | None, typer.Option(min=1, help="Only entries before this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="The most entries.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show who wrote, read in bulk, exported, forgot or changed keys, newest first."""
    page = connect().get("/v1/audit", actor=actor, action=action, before=before, limit=limit)
    if as_json:
        print_json(page)
        return
    table(("entry", "at", "who", "what", "of", "how much"), [_row(entry) for entry in page["entries"]])
    if page["next"]:
        say(f"Older ones: --before {page['next']}")


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    detail = ", ".join(f"{name} {value}" for name, value in entry["detail"].items())
    return (str(entry["id"]), entry["at"][:19], entry["actor"], entry["action"], entry["target"], detail)
