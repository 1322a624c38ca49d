"""`esker gateway`: one command whose requests to models go through the gateway."""

import os
import shutil
from typing import Annotated

import typer

from esker.server.agents.behind_gateway import ADDRESSES, CLIENTS, Behind, behind_gateway, gateway_url
from esker.server.agents.project import is_excluded, project_of
from esker.server.cli.connection import connect
from esker.server.cli.output import AsJson, WrongUsage, print_json
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.gateway_rules import MODES
from esker.server.core.errors import InvalidInput, Misconfigured

app = typer.Typer(add_completion=False)

_PROGRAMS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "opencode": "opencode"}


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def gateway(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND…", help="The program to start, and its arguments.")],
    client: Annotated[
        str | None, typer.Option("--for", help=f"The client that it is: {', '.join(CLIENTS)}. Unset: by its name.")
    ] = None,
    mode: Annotated[str | None, typer.Option(help=f"{', '.join(MODES)}; unset: as the server is set.")] = None,
    recall: Annotated[
        bool | None,
        typer.Option(
            help="Whether models get the tool recall_memory, which the gateway answers. Unset: as the server is set."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a program whose requests to models go through the gateway.

    Esker keeps its transcript. With --json, show the command and the variables instead of starting it.
    """
    chosen = client or _PROGRAMS.get(os.path.basename(command[0]), "api")
    if chosen not in CLIENTS:
        raise WrongUsage(f"--for must be one of {', '.join(CLIENTS)}, not {chosen!r}.")
    if mode is not None and mode not in MODES:
        raise WrongUsage(f"--mode must be one of {', '.join(MODES)}, not {mode!r}.")
    found = _behind(chosen, command, mode, recall)
    if as_json:
        print_json({"command": found.command, "environment": found.environment})
        return
    program = shutil.which(found.command[0])
    if program is None:
        raise InvalidInput(
            f"There is no program {found.command[0]!r} on the PATH.", hint="Install it, or name its path."
        )
    os.execve(program, found.command, {**os.environ, **found.environment})  # noqa: S606 - the user named the program


def _behind(client: str, command: list[str], mode: str | None, recall: bool | None) -> Behind:
    """Return how to start a command. Raises Misconfigured if it goes to a provider of the user's own already."""
    for name in ADDRESSES:
        if (address := os.environ.get(name)) and "/gateway" not in address:
            raise Misconfigured(
                f"{name} leads to a provider of your own, and the gateway would lead elsewhere.",
                hint="Add that provider to ESKER_GATEWAY_UPSTREAMS of the server and set the variable to its address"
                f" there, such as {ClientSettings.url}/gateway/NAME.",
            )
    api = connect()
    api.get("/v1/key")  # says now what is wrong with the server or the key
    settings = ClientSettings.from_environment(os.environ)
    here = os.getcwd()
    project = project_of(here)
    if is_excluded(here, project, settings.exclude):
        mode = "off"
    options = {"client": client, "project": project, "cwd": here, "mode": mode}
    options["recall"] = None if recall is None else "on" if recall else "off"
    return behind_gateway(client, command, gateway_url(api.url, options), os.environ, settings.key)
