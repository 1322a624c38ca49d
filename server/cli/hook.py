"""`esker hook` for the help; `server/cli/entry.py` runs hooks without importing this module."""

import os
from typing import Annotated

import typer

from esker.server.agents.hook_input import STEPS
from esker.server.agents.hooks import run_hook

app = typer.Typer(add_completion=False)


@app.command()
def hook(
    client: Annotated[str, typer.Argument(help=f"The agent CLI: {', '.join(STEPS)}.")],
    event: Annotated[str, typer.Argument(help="The client's name of the event, such as SessionStart.")],
    url: Annotated[str | None, typer.Option(help="The server's address if ESKER_URL is not set.")] = None,
) -> None:
    """Handle an event of an agent CLI, with JSON on standard input. Always exits with 0."""
    raise typer.Exit(run_hook([*(("--url", url) if url else ()), client, event], os.environ))
