"""`esker serve` and `esker worker`."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import typer
import uvicorn

from esker.server.app import make_app, make_parts
from esker.server.background import beside, until
from esker.server.cli.backing_up import back_up, folder_of
from esker.server.cli.catching_up import catch_up
from esker.server.cli.output import AsJson, DataDir, print_json, say
from esker.server.cli.worker_process import keep_worker
from esker.server.core.child_command import child_command
from esker.server.core.config.local_token import own_token
from esker.server.core.config.logs import configure_logs
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import EskerError, Misconfigured
from esker.server.core.reports import WorkerHealth
from esker.server.core.stop_signals import stop_signals
from esker.server.db.data_dir import explained, holder
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster, embedded, prepare
from esker.server.db.migrate import pending
from esker.server.rest.access import is_loopback
from esker.server.rest.connections import server_config
from esker.server.usecases.authenticate import keys_required
from esker.server.usecases.parts import Parts

app = typer.Typer(add_completion=False)
log = logging.getLogger(__name__)

_DRAIN_SECONDS = 4
"""Seconds that requests have to end when the server stops: with what comes after, within the 10 of `docker stop`."""
_LOOK_AFTER_POSTGRES_SECONDS = 5


@dataclass(frozen=True, slots=True)
class _ServerResources:
    """The listening socket and the database of a server; `cluster` is the embedded Postgres, if it is used.

    `local_token` is in the data directory, which a server on an outside database does not have.
    """

    settings: Settings
    listener: socket.socket
    url: str
    database_url: str
    cluster: Cluster | None
    local_token: str | None = None


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
    with suppress(KeyboardInterrupt), listening(settings) as listener, _resources(settings, listener) as resources:
        asyncio.run(_run(resources, as_json))


def _stop_with_stdin() -> None:
    """Stop when standard input closes; a pipe closes when the process at its other end dies, however it dies."""
    # Without a buffer: the interpreter would abort at its end, after a failed start, on the lock of one that is in use.
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


@contextmanager
def listening(settings: Settings) -> Generator[socket.socket]:
    """Yield a listening socket. Raises Misconfigured when the address is in use or not an address of this machine."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Only with the protocol named does asyncio switch off Nagle's delay (40 ms) for accepted connections.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            _raise_cannot_listen(settings, error)
        except (TypeError, ValueError) as error:  # the name cannot be encoded
            raise Misconfigured(
                f"{settings.host!r} is not the address of a machine.", hint="Set ESKER_HOST, or --host, to 127.0.0.1."
            ) from error
        listener.listen(1024)
        yield listener


def _raise_cannot_listen(settings: Settings, error: OSError) -> None:
    other = None if settings.database_url else holder(settings.data_dir)
    if other and other.role == "serve":
        raise Misconfigured(
            f"Esker already runs on {settings.data_dir} (process {other.pid} at {other.url}).",
            hint="Use that one, stop it, or give this one its own --data-dir and --port.",
        )
    raise Misconfigured(
        f"Esker cannot listen on {settings.host} port {settings.port}: {error.strerror}.",
        hint="Choose another with --port or ESKER_PORT.",
    )


@contextmanager
def _resources(settings: Settings, listener: socket.socket) -> Generator[_ServerResources]:
    """Yield a server's resources; the database has the current schema, an embedded one until the block ends."""
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if settings.database_url:
        database_url = settings.database_url.get_secret_value()
        _require_schema(settings.direct_database or database_url)
        yield _ServerResources(settings, listener, url, database_url, None)
        return
    with embedded(settings.data_dir, "serve", url=url) as cluster:
        prepare(cluster)
        with explained(settings.data_dir):
            token = own_token(settings.data_dir)
        try:
            yield _ServerResources(settings, listener, url, cluster.url(), cluster, token)
        finally:
            # A second Ctrl-C must not prevent Postgres from being stopped.
            for number in stop_signals():
                signal.signal(number, signal.SIG_IGN)


def _require_schema(database_url: str) -> None:
    if missing := pending(database_url):
        raise Misconfigured(
            f"The database lacks {counted(len(missing), 'migration')}, beginning with {missing[0].version:04d}.",
            hint="Run `esker migrate`.",
        )


async def _run(resources: _ServerResources, as_json: bool) -> None:
    settings = resources.settings
    parts = make_parts(
        settings,
        Database.configured(
            settings, resources.database_url, connections=settings.database_connections, with_replica=True
        ),
    )
    if settings.worker and settings.embedder != "none":
        parts = replace(parts, worker=WorkerHealth())
    await _require_keys(parts, resources.database_url)
    started = asyncio.Event()
    server = ServerWithoutSignals(
        server_config(
            make_app(parts, resources.local_token),
            access_log=settings.log_level == "debug",
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        ),
        lambda: _announce(parts, resources.url, as_json, started),
    )
    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            beside("catching up", lambda: catch_up(started, resources.url, resources.local_token))
        )
        if cluster := resources.cluster:
            await stack.enter_async_context(beside("looking after Postgres", lambda: _look_after(cluster)))
        if folder := folder_of(settings):
            owner_url = cluster.url(OWNER) if cluster else settings.direct_database or resources.database_url
            await stack.enter_async_context(beside("the backups", lambda: back_up(folder, owner_url)))
        if health := parts.worker:
            # It ends while the last requests are answered.
            keep = partial(keep_worker, resources.database_url, health)
            await stack.enter_async_context(beside("the embedding worker", lambda: until(server.stopping, keep())))
        await server.serve(sockets=[resources.listener])


class ServerWithoutSignals(uvicorn.Server):
    """A server that leaves signals to us: its own handlers would end the process before Postgres is stopped."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started
        self.stopping = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Capture nothing."""
        yield

    def stop(self) -> None:
        """Finish the current requests and stop; at the second call, stop at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self.stopping.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop, and close the parts of the server even when current requests are abandoned."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call back."""
        await super().startup(sockets)
        if self.started:
            self._on_started()


async def _require_keys(parts: Parts, database_url: str) -> None:
    """Raise Misconfigured if other machines could reach the server and no key is required."""
    if is_loopback(parts.settings.host):
        return
    async with Database.configured(parts.settings, database_url, connections=2) as database:
        if await keys_required(Parts(database, parts.clock, parts.settings)):
            return
    raise Misconfigured(
        f"Other machines can reach {parts.settings.host}, but no key exists yet.",
        hint=f"Create one first: `esker key create NAME{_data_dir(parts.settings)}`. Or listen on 127.0.0.1.",
    )


def _data_dir(settings: Settings) -> str:
    """Return the option that other commands need for this data directory, or an empty text."""
    usual = settings.database_url or settings.data_dir == Settings().data_dir or "ESKER_DATA_DIR" in os.environ
    return "" if usual else f" --data-dir {settings.data_dir}"


def _announce(parts: Parts, url: str, as_json: bool, started: asyncio.Event) -> None:
    """Print where the server listens, and its observer, reflector and embedder."""
    started.set()
    names = {
        "observer": parts.observer.name if parts.observer else "off",
        "reflector": parts.reflector.name if parts.reflector else "off",
        "embedder": parts.settings.embedder,
    }
    if as_json:
        print_json({"url": url, "pid": os.getpid(), **names})
        return
    say(f"Esker listens on {url} (MCP at {url}/mcp). Ctrl-C stops it.")
    say(", ".join(f"{part} {name}" for part, name in names.items()))


async def _look_after(cluster: Cluster) -> None:
    """Restart Postgres if it has stopped; until then requests are answered with 503."""
    while True:
        await asyncio.sleep(_LOOK_AFTER_POSTGRES_SECONDS)
        try:
            if await asyncio.to_thread(cluster.ensure_running):
                log.warning("Postgres had stopped and was restarted")
        except EskerError as error:
            log.error("%s %s", error, error.hint or "")
