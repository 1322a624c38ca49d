"""Apps on real sockets, in the test's own event loop."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from starlette.types import ASGIApp

from esker.embedding_worker.worker import run_worker
from esker.server.app import make_app, make_parts
from esker.server.cli.server_run import ServerWithoutSignals
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.rest.connections import server_config
from esker.server.usecases.parts import Parts


@asynccontextmanager
async def serving(parts: Parts) -> AsyncGenerator[str]:
    """Run the server while the block runs; yield its URL."""
    app = make_app(parts)
    async with serving_app(app, stopping=app.state.stopping) as url:
        yield url


@asynccontextmanager
async def serving_meaning(
    database_url: str, embedder: LocalEmbedder, settings: Settings | None = None
) -> AsyncGenerator[str]:
    """Run a server and an embedding worker that share a model while the block runs; yield the URL."""
    await embedder.load()
    settings = settings or Settings.from_environment({})
    made = make_parts(settings, Database(database_url), system_clock)
    parts = replace(made, embedders=QueryEmbedders(lambda _: embedder, settings.embedder))
    stop = asyncio.Event()
    worker_parts = Parts(Database(database_url, connections=2), system_clock, settings)
    worker = asyncio.create_task(run_worker(worker_parts, embedder, stop))
    try:
        async with serving(parts) as url:
            yield url
    finally:
        stop.set()
        await worker


@asynccontextmanager
async def serving_app(
    app: ASGIApp, *, access_log: bool = False, stopping: asyncio.Event | None = None
) -> AsyncGenerator[str]:
    """Run any app on a free port while the block runs; yield its URL."""
    started = asyncio.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        # On a busy machine a client would reuse a connection just as the server closes it for being idle.
        config = server_config(app, timeout_keep_alive=300, timeout_graceful_shutdown=5, access_log=access_log)
        server = ServerWithoutSignals(config, started.set, stopping or asyncio.Event())
        task = asyncio.create_task(server.serve(sockets=[listener]))
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        try:
            if task.done():
                await task
                raise RuntimeError("the app did not start")
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.stop()
            await task
