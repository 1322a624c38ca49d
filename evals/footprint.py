"""`python -m evals.footprint`: how soon `esker serve` answers after its start, and how much memory all of it takes.

A data directory with a few rows is filled first, so that a start finds its database and its vectors. Each round starts
the server, asks by keyword until there is an answer, then by meaning, and adds up the memory of the server, its worker
and its Postgres. The memory is the proportional set size, in which a page that n processes share counts as an nth.
Linux only. `ESKER_…` variables apply, so that another model can be measured. Prints JSON.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from evals.serving import Server, started

_ROWS = (
    "The nightly backup is written to a bucket in Frankfurt.",
    "The user's sister lives in Rotterdam and breeds whippets.",
    "Releases are never shipped on a Friday.",
)
_BY_KEYWORD = {"query": "nightly backup", "ranking": "keyword"}
_BY_MEANING = {"query": "Does anybody in the family keep dogs?", "ranking": "vector"}
_ROUNDS = 3
_PAUSE_SECONDS = 0.02
_LONGEST_SECONDS = 300.0
_UNIT = 1_000_000  # bytes


@dataclass(frozen=True, slots=True)
class _Footprint:
    """Seconds from the start to the first answers, and megabytes of each part after them."""

    keyword_seconds: float
    meaning_seconds: float
    server_mb: float
    worker_mb: float
    postgres_mb: float
    together_mb: float


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="esker-evals-") as directory:
        with started(directory, {}) as (server, _):
            server.post("/v1/memories/batch", {"memories": [{"content": row} for row in _ROWS]})
            _until(server, _BY_MEANING, lambda answer: answer["hits"] and not answer["pending"])
        rounds = [_round(directory) for _ in range(_ROUNDS)]
    figures = [asdict(each) for each in rounds]
    medians = {name: round(statistics.median(each[name] for each in figures), 2) for name in figures[0]}
    load = f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    json.dump({"median": medians, "rounds": figures, "load at the end": load}, sys.stdout, indent=2)
    print()


def _round(directory: str) -> _Footprint:
    began = time.perf_counter()
    with started(directory, {}) as (server, pid):
        _until(server, _BY_KEYWORD, lambda answer: answer["hits"])
        keyword = time.perf_counter() - began
        _until(server, _BY_MEANING, lambda answer: answer["hits"] and answer["semantic"] == "ok")
        meaning = time.perf_counter() - began
        # The worker starts beside the server and is ready a little later.
        parts = _until_settled(pid)
    return _Footprint(keyword, meaning, **parts, together_mb=sum(parts.values()))


def _until(server: Server, body: Mapping[str, str], enough: Callable[[Any], object]) -> None:
    limit = time.monotonic() + _LONGEST_SECONDS
    while not enough(server.post("/v1/recall", body)):
        if time.monotonic() > limit:
            raise SystemExit(f"No answer to {body} within {_LONGEST_SECONDS:.0f} seconds.")
        time.sleep(_PAUSE_SECONDS)


def _until_settled(pid: int) -> dict[str, float]:
    """Return the memory of the parts once the worker has loaded its model: when it no longer uses the processor."""
    [worker] = [child for child in psutil.Process(pid).children() if "esker.embedding_worker" in child.cmdline()]
    before = -1.0
    while (now := sum(worker.cpu_times()[:2])) > before:
        before = now
        time.sleep(1)
    return _memory(pid)


def _memory(pid: int) -> dict[str, float]:
    found = {"server_mb": 0.0, "worker_mb": 0.0, "postgres_mb": 0.0}
    server = psutil.Process(pid)
    for process in (server, *server.children(recursive=True)):
        if process.pid == pid:
            part = "server_mb"
        else:
            part = "worker_mb" if "esker.embedding_worker" in process.cmdline() else "postgres_mb"
        found[part] += _proportional_bytes(process.pid) / _UNIT
    return found


def _proportional_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith("Pss:")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
