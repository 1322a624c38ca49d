"""Runs the server of `esker serve`: HTTP, MCP, and what goes on beside them."""

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial

import uvicorn

from esker.server.app import make_app, make_parts
from esker.server.background import beside, until
from esker.server.cli.backing_up import archive_bases, back_up, folder_of
from esker.server.cli.catching_up import catch_up
from esker.server.cli.output import print_json, say
from esker.server.cli.server_resources import ServerResources
from esker.server.cli.worker_process import keep_worker
from esker.server.core.config.client_settings import excluded
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError, Misconfigured
from esker.server.core.stop_signals import stop_signals
from esker.server.core.worker_health import WorkerHealth
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.rest.access import is_loopback
from esker.server.rest.connections import server_config
from esker.server.usecases.authenticate import keys_required
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

_DRAIN_SECONDS = 3
"""Seconds in which requests must end when the server stops; with the steps after, less than the 10 of `docker stop`."""
_LOOK_AFTER_POSTGRES_SECONDS = 5
_SWITCH_SECONDS = 0.0005
"""Seconds for which a thread keeps the interpreter while others wait. With the usual 5 ms, each step of a request waits
so long whenever a thread looks for secrets in what another session has said."""


async def run(resources: ServerResources, *, as_json: bool) -> None:
    """Serve until a signal asks to stop. Raises Misconfigured."""
    sys.setswitchinterval(_SWITCH_SECONDS)
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
    app = make_app(parts, resources.local_token, lambda: excluded(os.environ))
    server = ServerWithoutSignals(
        server_config(
            app,
            access_log=settings.log_level == "debug",
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        ),
        lambda: _announce(parts, resources.url, as_json, started),
        app.state.stopping,
    )
    for number in stop_signals():
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(
            beside("catching up", lambda: catch_up(started, resources.url, resources.local_token))
        )
        if cluster := resources.cluster:
            await stack.enter_async_context(beside("looking after Postgres", lambda: _look_after(cluster)))
            last = partial(_write_out, server.stopping, cluster)
            await stack.enter_async_context(beside("the last checkpoint", last))
        if cluster and cluster.archive:
            keep_bases = partial(archive_bases, cluster.archive, settings, cluster.url(OWNER))
            await stack.enter_async_context(beside("the base backups", keep_bases))
        if folder := folder_of(settings):
            owner_url = cluster.url(OWNER) if cluster else settings.direct_database or resources.database_url
            await stack.enter_async_context(beside("the backups", lambda: back_up(folder, owner_url)))
        if health := parts.worker:
            # The worker ends while the last requests are answered.
            keep = partial(keep_worker, resources.database_url, health, parts.clock)
            await stack.enter_async_context(beside("the embedding worker", lambda: until(server.stopping, keep())))
        await server.serve(sockets=[resources.listener])


class ServerWithoutSignals(uvicorn.Server):
    """A server that leaves signals to us: its own handlers would end the process before Postgres is stopped."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None], stopping: asyncio.Event) -> None:
        """`stopping` is set when the server begins to stop; it ends work that would otherwise never end."""
        super().__init__(config)
        self._on_started = on_started
        self.stopping = stopping

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
        """Start, and call `on_started` if that succeeded."""
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


async def _write_out(stopping: asyncio.Event, cluster: Cluster) -> None:
    """Have Postgres write its pages out while the last requests are answered: it then stops quickly."""
    await stopping.wait()
    await asyncio.to_thread(cluster.checkpoint)


async def _look_after(cluster: Cluster) -> None:
    """Restart Postgres if it has stopped; until then requests are answered with 503."""
    while True:
        await asyncio.sleep(_LOOK_AFTER_POSTGRES_SECONDS)
        try:
            if await asyncio.to_thread(cluster.ensure_running):
                log.warning("Postgres had stopped and was restarted")
        except EskerError as error:
            log.error("%s %s", error, error.hint or "")
