"""`esker serve` and `esker worker`."""

import asyncio
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated

import typer

from esker.server.cli.exporting_spans import exporting_spans
from esker.server.cli.late_imports import imported
from esker.server.cli.output import AsJson, DataDir
from esker.server.cli.server_resources import listening, server_resources
from esker.server.core.child_command import child_command
from esker.server.core.config.logs import configure_logs
from esker.server.core.config.settings import Settings
from esker.server.core.stop_signals import stop_signals

app = typer.Typer(add_completion=False)

# It is imported while Postgres starts.
_SERVER = "esker.server.cli.server_run"


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0: any free one.")] = None,
    data_dir: DataDir = None,
    worker: Annotated[bool | None, typer.Option(help="Whether to start an embedding worker.")] = None,
    until_stdin_closes: Annotated[
        bool,
        typer.Option(
            "--until-stdin-closes", help="Stop when standard input is closed, as when the parent process dies."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the server: HTTP, MCP and an embedding worker. Ctrl-C stops all of it."""
    settings = Settings.from_environment(os.environ, host=host, port=port, data_dir=data_dir, worker=worker)
    configure_logs(settings.log_level, settings.log_format)
    for number in stop_signals():
        signal.signal(number, signal.default_int_handler)  # all ask for a clean stop
    if until_stdin_closes:
        threading.Thread(target=_stop_with_stdin, daemon=True).start()
    with suppress(KeyboardInterrupt), listening(settings) as listener, ThreadPoolExecutor(1) as beside_postgres:
        server = beside_postgres.submit(imported, _SERVER)
        with server_resources(settings, listener) as resources, exporting_spans(settings):
            asyncio.run(server.result().run(resources, as_json=as_json))


def _stop_with_stdin() -> None:
    """Stop when standard input closes; a pipe closes when the process at its other end dies, however it dies."""
    # Read without a buffer: after a failed start, the interpreter would abort at exit on the lock of a buffer in use.
    while os.read(sys.stdin.fileno(), 65_536):
        pass
    os.kill(os.getpid(), signal.SIGINT)


@app.command("worker")
def worker_command(data_dir: DataDir = None) -> None:
    """Run an embedding worker alone.

    It works on the database of ESKER_DATABASE_URL or, without one, of the server that runs on the data directory.
    """
    environment = dict(os.environ) | ({"ESKER_DATA_DIR": str(data_dir)} if data_dir else {})
    command = child_command("esker.embedding_worker")
    os.execve(command[0], command, environment)  # noqa: S606 - signals then reach the worker itself
