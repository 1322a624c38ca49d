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
    url: Annotated[str | None, typer.Option(help="The server's address; takes precedence over ESKER_URL.")] = None,
    state_dir: Annotated[
        str | None, typer.Option(help="The state directory; takes precedence over ESKER_STATE_DIR.")
    ] = None,
) -> None:
    """Handle an event of an agent CLI, with JSON on standard input. Always exits with 0."""
    options = {"--url": url, "--state-dir": state_dir}
    words = [word for name, value in options.items() if value for word in (name, value)]
    raise typer.Exit(run_hook([*words, client, event], os.environ))
