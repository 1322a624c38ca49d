"""Looks at a server during a run, from a thread of its own: latency floors, memory and connections."""

import http.client
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit

import psutil
import psycopg

from esker.server.core.config.settings import Settings
from esker.server.db.embedded import database_url

_PAUSE_SECONDS = 0.5
_TIMEOUT_SECONDS = 60.0
_MEGABYTE = 2**20
_WORKER = "esker.embedding_worker"
_CONNECTIONS: LiteralString = """
    SELECT count(*), round(max(extract(epoch FROM clock_timestamp() - state_change))
        FILTER (WHERE state ^@ 'idle in transaction'), 1)::float
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look: seconds since the start of the run, latencies in seconds, resident memory in MB by part.

    `idle_in_transaction` is the longest time for which a connection has been idle in a transaction, in seconds.
    """

    at: float
    phase: str
    empty_route: float | None
    raw_sql: float | None
    megabytes: dict[str, float]
    connections: int | None
    idle_in_transaction: float | None


@dataclass(slots=True)
class Watch:
    """Looks twice a second until it is stopped. Without `data_dir` the server is another machine's: only HTTP is asked.

    `phase` is noted with each look.
    """

    url: str
    began: float
    pid: int | None = None
    data_dir: Path | None = None
    phase: str = "steady"
    samples: list[Sample] = field(default_factory=list[Sample])
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stop.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        address = urlsplit(self.url)
        web = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT_SECONDS)
        database: psycopg.Connection | None = None
        if self.data_dir:
            settings = Settings.from_environment({"ESKER_DATA_DIR": str(self.data_dir)})
            database = psycopg.connect(database_url(settings), autocommit=True)
        while not self._stop.wait(_PAUSE_SECONDS):
            self.samples.append(self._sample(web, database))
        web.close()
        if database:
            database.close()

    def _sample(self, web: http.client.HTTPConnection, database: psycopg.Connection | None) -> Sample:
        at, phase = time.perf_counter() - self.began, self.phase
        empty = _seconds(web)
        raw_sql = connections = idle = None
        if database:
            start = time.perf_counter()
            database.execute("SELECT 1").fetchone()
            raw_sql = time.perf_counter() - start
            row = database.execute(_CONNECTIONS).fetchone()
            connections, idle = row or (None, None)
        return Sample(at, phase, empty, raw_sql, self._memory(), connections, idle)

    def _memory(self) -> dict[str, float]:
        """Return the resident memory of the server, its worker, and the processes that read long texts."""
        if self.pid is None:
            return {}
        found: dict[str, float] = {}
        server = psutil.Process(self.pid)
        for process in (server, *server.children(recursive=True)):
            try:
                words = process.cmdline()
                part = "server" if process.pid == self.pid else "worker" if _WORKER in words else "other"
                if "postgres" not in process.name():
                    found[part] = found.get(part, 0.0) + process.memory_info().rss / _MEGABYTE
            except psutil.Error:
                continue
        return found


def _seconds(web: http.client.HTTPConnection) -> float | None:
    """Return how long the empty route takes, which is as long as the event loop is busy; None without an answer."""
    start = time.perf_counter()
    try:
        web.request("GET", "/livez")
        web.getresponse().read()
    except (OSError, http.client.HTTPException):
        web.close()
        return None
    return time.perf_counter() - start
