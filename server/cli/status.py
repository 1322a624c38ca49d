"""`esker status`."""

import typer
from pydantic import TypeAdapter

from esker.server.cli.connection import connect, read_as
from esker.server.cli.output import AsJson, print_json, say
from esker.server.core.reports import PoolStatus, status_text

app = typer.Typer(add_completion=False)

_STATUS = TypeAdapter(PoolStatus)


@app.command()
def status(as_json: AsJson = False) -> None:
    """Show what memory contains, and how much of it cannot be found yet."""
    found = connect().get("/v1/status")
    if as_json:
        print_json(found)
    else:
        say(status_text(read_as(_STATUS, found)))
