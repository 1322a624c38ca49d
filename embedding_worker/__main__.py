"""`python -P -m esker.embedding_worker`: the worker as a process.

`esker serve` starts it with `--until-stdin-closes`: a pipe closes when the process at its other end dies, however it
dies, so no worker outlives its server.
"""

import asyncio
import os
import sys
import threading
from contextlib import suppress

from esker.embedding_worker.probe import probed
from esker.embedding_worker.worker import run_worker
from esker.server.core.config.logs import configure_logs
from esker.server.core.config.settings import Settings
from esker.server.core.errors import EskerError, Misconfigured
from esker.server.core.stop_signals import stop_signals
from esker.server.core.worker_health import UNUSABLE, state_line
from esker.server.db.database import Database
from esker.server.db.embedded import database_url
from esker.server.providers.embedders import embedder_of
from esker.server.providers.roles import Embedder
from esker.server.usecases.parts import Parts

_CONNECTIONS = 2


def main(arguments: list[str]) -> int:
    """Run the worker until a signal or the end of its input; return the exit code."""
    is_child = "--until-stdin-closes" in arguments
    try:
        settings = Settings.from_environment(os.environ)
        configure_logs(settings.log_level, settings.log_format)
        embedder = embedder_of(settings)
        if embedder is None:
            raise Misconfigured("ESKER_EMBEDDER is none, so the worker has nothing to do.")
        database = Database.configured(settings, database_url(settings), connections=_CONNECTIONS)
        parts = Parts(database, database.clock, settings)
        asyncio.run(_run(parts, embedder, watch_stdin=is_child))
    except EskerError as error:
        if is_child and isinstance(error, Misconfigured):
            _tell(state_line(UNUSABLE, f"{error} {error.hint or ''}".strip()))
        print(f"esker worker: {error}", *([error.hint] if error.hint else []), file=sys.stderr)
        return 1
    return 0


async def _run(parts: Parts, embedder: Embedder, *, watch_stdin: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        loop.add_signal_handler(number, stop.set)
    if watch_stdin:
        threading.Thread(target=_stop_when_stdin_closes, args=(loop, stop), daemon=True).start()
    try:
        async with probed(parts, parts.settings.host, None if watch_stdin else parts.settings.worker_port):
            await run_worker(parts, embedder, stop, _tell if watch_stdin else None)
    finally:
        await embedder.close()


def _tell(line: str) -> None:
    """Send a line about this worker to the server that started it."""
    with suppress(OSError):
        print(line, flush=True)


def _stop_when_stdin_closes(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    sys.stdin.buffer.read()
    loop.call_soon_threadsafe(stop.set)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
