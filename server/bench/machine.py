"""One line about the measured machine; between machines only ratios are comparable."""

import os
import platform
from pathlib import Path

import psutil

from esker.server import VERSION
from esker.server.bench.bench_server import BenchServer


async def machine_line(place: BenchServer) -> str:
    """Return the processor, the memory, the versions and the load."""
    [[postgres]] = await place.rows("postgres_version")
    gigabytes = psutil.virtual_memory().total / 2**30
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    return (
        f"{_processor()}, {os.cpu_count()} cores, {gigabytes:.0f} GiB, {platform.system()}, Python"
        f" {platform.python_version()}, Postgres {postgres}, Esker {VERSION}; load {load:.1f}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
