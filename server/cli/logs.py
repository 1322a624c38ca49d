"""`esker logs`: the log of a server that runs by itself."""

import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from esker.server.agents.server_start import LOG
from esker.server.cli.output import AsJson, print_json, say
from esker.server.cli.service_managers import manager_of
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import NotFound, Unavailable

app = typer.Typer(add_completion=False)

_LOOK_SECONDS = 0.5


@app.command()
def logs(
    lines: Annotated[int, typer.Option("--lines", "-n", min=1, help="How many of the last lines to show.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Also show new lines, until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the log of the server that a service or a hook started. A server in a terminal writes there."""
    show_log(lines, follow=follow, as_json=as_json)


def show_log(lines: int, *, follow: bool, as_json: bool) -> None:
    """Print the last lines of the log; with `as_json` one document, or with `follow` one for each line.

    Raises NotFound if there is no log.
    """
    state_dir = ClientSettings.from_environment(os.environ).state_dir
    manager = manager_of(sys.platform, os.environ, state_dir)
    command = manager.log_command(lines, follow=follow) if manager.state().installed else None
    file = state_dir / LOG
    if command is None and not file.exists():
        raise NotFound(
            "There is no log: neither a service nor a hook has started a server.",
            hint="`esker service install` has one run by itself. `esker serve` writes its log into its terminal.",
        )
    shown = _of_command(command) if command else _of_file(file, lines, follow=follow)
    if as_json and not follow:
        print_json({"source": command[0] if command else str(file), "lines": list(shown)})
        return
    for line in shown:
        if as_json:
            print_json({"line": line})
        else:
            say(line)


def _of_command(command: list[str]) -> Iterator[str]:
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
            assert process.stdout is not None  # it is a pipe
            for line in process.stdout:
                yield line.rstrip("\n")
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} has the log, and is not installed here.") from None


def _of_file(file: Path, lines: int, *, follow: bool) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace") as opened:
        yield from (line.rstrip("\n") for line in deque(opened, lines))
        while follow:
            if line := opened.readline():
                yield line.rstrip("\n")
            else:
                time.sleep(_LOOK_SECONDS)
