"""Fixtures: the tools that `make generators` installs."""

import shutil

import pytest


@pytest.fixture(scope="session", autouse=True)
def _tools() -> None:
    """Skip without the tools, which `make test` does not need."""
    if not shutil.which("openapi-python-client"):
        pytest.skip("`make generators` installs what this needs")
