"""`esker briefing`: show the most important memories of a project or of the pool."""

from typing import Annotated

import typer

from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, note, print_json, say
from esker.server.core.counts import counted

app = typer.Typer(add_completion=False)


@app.command()
def briefing(
    project: Annotated[str | None, typer.Option(help="A project. Default: the whole pool.")] = None,
    tokens: Annotated[int, typer.Option(min=100, max=100_000, help="Maximum number of tokens.")] = 2_000,
    as_json: AsJson = False,
) -> None:
    """Show the most important memories of a project, and the state of its latest session."""
    found = connect().get("/v1/briefing", project=project, tokens=tokens)
    if as_json:
        print_json(found)
        return
    say(found["text"])
    if found["left_out"]:
        note(f"{counted(found['left_out'], 'more row')} did not fit into {tokens:,} tokens.")
