"""`esker service`: a server that starts with its user's login, or when a hook needs it."""

import os
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import psutil
import typer

from esker.server.agents.server_start import Autostart, ServerCommand, is_alive
from esker.server.cli.logs import logs
from esker.server.cli.output import AsJson, DataDir, print_json, say
from esker.server.cli.service_files import kept_environment
from esker.server.cli.service_managers import ServiceManager, manager_of
from esker.server.core.child_command import child_command
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Conflict, Misconfigured, NotFound, Unavailable
from esker.server.db.data_dir import Holder, holder

app = typer.Typer(add_completion=False)
service = typer.Typer(
    no_args_is_help=True, help="Have the server run by itself: systemd, launchd, or a start by hooks."
)
app.add_typer(service, name="service")
service.command()(logs)

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_STOP_SECONDS = 90.0
_INSTALL = "`esker service install` has it start at each login, `esker service autostart on` when a hook needs it."
Port = Annotated[int | None, typer.Option(help="The port to listen on.")]


@service.command()
def install(
    data_dir: DataDir = None,
    port: Port = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start the server now and at each login, with the settings that hold here; again to take over other settings."""
    client, manager = _client(), _manager()
    settings = Settings.from_environment(os.environ, port=port, data_dir=data_dir)
    _require_address(settings, client)
    files = manager.files(_command(), _environment(settings, client))
    if dry_run:
        _show_files(files, as_json)
        return
    manager.require()
    if not manager.state().running and (other := _server(settings)):
        raise Conflict(f"Esker already runs (process {other.pid} at {other.url}).", hint="Stop it first.")
    manager.install(files)
    if as_json:
        print_json({"installed": [str(path) for path in files], "manager": manager.name, "url": _address(settings)})
        return
    for path in files:
        say(f"Wrote {path}.")
    say(f"{manager.name} starts Esker at {_address(settings)}, now and at each login. `esker service status` shows it.")
    if manager.name == "systemd" and not Path("/var/lib/systemd/linger", os.environ.get("USER", "")).is_file():
        say("It stops when you log out; `loginctl enable-linger` keeps it running.")


@service.command()
def uninstall(as_json: AsJson = False) -> None:
    """Stop the service and remove its files. The database stays."""
    manager = _manager()
    if not manager.state().installed:
        raise NotFound("The service is not installed.", hint=_INSTALL)
    manager.require()
    removed = manager.uninstall()
    if as_json:
        print_json({"removed": [str(path) for path in removed]})
        return
    for path in removed:
        say(f"Removed {path}.")
    say("The database and the settings are as they were.")


@service.command()
def start(as_json: AsJson = False) -> None:
    """Start the service, or the server that hooks would start."""
    manager, client = _manager(), _client()
    autostart = Autostart(client.state_dir)
    if manager.state().installed:
        manager.require()
        manager.start()
    elif (kept := autostart.command()) is None:
        raise NotFound("No service is installed.", hint=_INSTALL)
    elif kept.url != client.url:
        raise Conflict(
            f"Hooks start the server at {kept.url}, and ESKER_URL is {client.url}.",
            hint="Unset ESKER_URL, or have them start another server: `esker service autostart on`.",
        )
    else:
        autostart.start(client.url, despite_failure=True)
        if not is_alive(client.url):
            raise Unavailable(f"No server answers at {client.url}.", hint="`esker logs` shows why.")
    if as_json:
        print_json({"started": True})
    else:
        say(f"Started. `esker service status` shows whether {client.url} answers, `esker logs` the log.")


@service.command()
def stop(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Stop the service, or the server that hooks started, until the next start."""
    manager = _manager()
    stopped = "the service"
    if manager.state().installed:
        manager.require()
        manager.stop()
    else:
        settings = Settings.from_environment(os.environ, data_dir=data_dir)
        server = _server(settings)
        if not server:
            raise NotFound(f"No server runs on {settings.data_dir}.", hint=_INSTALL)
        _end(server)
        stopped = f"the server at {server.url} (process {server.pid})"
    if as_json:
        print_json({"stopped": True})
    else:
        say(f"Stopped {stopped}.")


@service.command()
def status(as_json: AsJson = False) -> None:
    """Show whether the service is installed and runs, and whether hooks start the server."""
    manager, client = _manager(), _client()
    state, hooks = manager.state(), Autostart(client.state_dir).command() is not None
    answers = is_alive(client.url)
    if as_json:
        print_json(
            {"manager": manager.name, **asdict(state), "url": client.url, "answers": answers, "autostart": hooks}
        )
        return
    where = f"process {state.pid}" if state.pid else manager.name
    say(f"Service: {f'runs ({where})' if state.running else 'stopped' if state.installed else 'not installed'}.")
    say(f"Server: {client.url} {'answers' if answers else 'does not answer'}.")
    say(f"Hooks {'start the server when it is not there' if hooks else 'do not start the server'}.")


@service.command()
def autostart(
    switch: Annotated[Literal["on", "off"], typer.Argument(help="Whether hooks start the server.")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Have hooks start the server when it is not there, with the settings that hold here, or not."""
    client = _client()
    kept = Autostart(client.state_dir)
    if switch == "on":
        parts = urlsplit(client.url)
        if parts.scheme != "http" or parts.hostname not in _LOOPBACK or parts.path.strip("/"):
            raise Misconfigured(
                f"Hooks send to {client.url}, which is not on this machine.",
                hint="Unset ESKER_URL, or let that machine start its server itself.",
            )
        settings = Settings.from_environment(os.environ, host=parts.hostname, port=parts.port or 80, data_dir=data_dir)
        environment = _environment(settings, client) | {"ESKER_HOST": settings.host}
        kept.keep(ServerCommand(client.url, _command(), environment))
    else:
        kept.drop()
    if as_json:
        print_json({"autostart": switch == "on", "file": str(kept.path)})
    elif switch == "on":
        say(f"Hooks start the server at {client.url} when it is not there. Its settings are in {kept.path}.")
    else:
        say("Hooks do not start the server.")


def _client() -> ClientSettings:
    return ClientSettings.from_environment(os.environ)


def _manager() -> ServiceManager:
    return manager_of(sys.platform, os.environ, _client().state_dir)


def _command() -> list[str]:
    """Return the command of the server. Raises Misconfigured if it would not outlive this one."""
    if "uv" in Path(sys.prefix).parts and {"archive-v0", "environments-v2"} & {*Path(sys.prefix).parts}:
        raise Misconfigured(
            "This Esker is in a temporary environment of uvx.",
            hint="Install it first: `uv tool install esker` or `pipx install esker`.",
        )
    return child_command("esker", "serve")


def _environment(settings: Settings, client: ClientSettings) -> dict[str, str]:
    given = kept_environment(os.environ, settings.data_dir, client.state_dir.absolute())
    return given | {"ESKER_PORT": str(settings.port)}


def _require_address(settings: Settings, client: ClientSettings) -> None:
    """Raise Conflict if ESKER_URL is set to another port of this machine: no command would find the service."""
    asked = urlsplit(client.url)
    is_here = asked.scheme == "http" and asked.hostname in _LOOPBACK and not asked.path.strip("/")
    if "ESKER_URL" in os.environ and is_here and (asked.port or 80) != settings.port:
        raise Conflict(
            f"The service would listen at {_address(settings)}, and ESKER_URL is {client.url}.",
            hint=f"Give --port {asked.port or 80}, or unset ESKER_URL.",
        )


def _address(settings: Settings) -> str:
    return f"http://{settings.host}:{settings.port}"


def _server(settings: Settings) -> Holder | None:
    found = holder(settings.data_dir)
    return found if found and found.role == "serve" else None


def _end(server: Holder) -> None:
    """Ask a server to stop, and wait for that. Raises Unavailable."""
    try:
        process = psutil.Process(server.pid)
        process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
            time.sleep(0.1)
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            raise Unavailable(f"The server (process {server.pid}) did not stop within {_STOP_SECONDS:.0f} s.")
    except psutil.NoSuchProcess:
        return


def _show_files(files: dict[Path, str], as_json: bool) -> None:
    if as_json:
        print_json({"files": {str(path): text for path, text in files.items()}})
        return
    for path, text in files.items():
        say(f"{path}:")
        say(text)
