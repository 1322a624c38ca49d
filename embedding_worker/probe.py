"""A small HTTP server that says whether the worker moves, for health checks and for Prometheus."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, generate_latest

from esker.server.core.errors import Misconfigured
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

LONGEST = timedelta(minutes=10)
"""The longest time without a step of the loop; a batch of long texts on a slow machine takes minutes."""
_HEAD_SECONDS = 5.0
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def probed(parts: Parts, host: str, port: int | None) -> AsyncGenerator[int | None]:
    """Answer `/livez` and `/metrics` during the block; yield the port, None if there is none to listen on.

    Raises Misconfigured if it cannot listen there.
    """
    if port is None:
        yield None
        return

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_answer(parts, head.split(b" ")[1:2] or [b""]))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(accept, host, port)
    except OSError as error:
        raise Misconfigured(
            f"The worker cannot listen on {host} port {port}: {error.strerror}.",
            hint="Choose another ESKER_WORKER_PORT.",
        ) from error
    async with server:
        chosen: int = server.sockets[0].getsockname()[1]
        log.info("the worker's probe listens on port %d", chosen)
        yield chosen


def _answer(parts: Parts, paths: list[bytes]) -> bytes:
    if paths == [b"/livez"]:
        stopped = parts.pulse.stopped_for(parts.clock(), LONGEST)
        state = f"has not moved for {stopped.total_seconds():.0f} s" if stopped else "alive"
        return _http(
            "503 Service Unavailable" if stopped else "200 OK", "application/json", json.dumps({"status": state})
        )
    if paths == [b"/metrics"]:
        return _http("200 OK", _TEXT, _metrics(parts))
    return _http("404 Not Found", "text/plain", "The worker has /livez and /metrics.")


def _http(status: str, media_type: str, body: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {len(body.encode())}\r\nConnection: close"
    )
    return f"{head}\r\n\r\n{body}".encode()


def _metrics(parts: Parts) -> str:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    idle = Gauge("esker_worker_idle_seconds", "Seconds since the worker's last step.", registry=registry)
    if moved := parts.pulse.moved_at:
        idle.set((parts.clock() - moved).total_seconds())
    return (generate_latest(registry) + generate_latest(parts.instruments.registry)).decode()
