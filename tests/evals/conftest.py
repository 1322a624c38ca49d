"""Fixtures of evals: servers and models in this process, and one embedding model for all commands."""

from collections.abc import Generator

import pytest
from anyio.from_thread import BlockingPortal

from evals import catching, reader_agreement, suites, written_rows
from evals.scoring.meaning import Meaning
from tests.support.model_server import ModelServer
from tests.support.suites import portal, scripted_model


@pytest.fixture(autouse=True)
def _one_model(meaning: Meaning, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for command in (reader_agreement, catching, suites, written_rows):
        monkeypatch.setattr(command, "Meaning", lambda: meaning)


@pytest.fixture(scope="module")
def loop() -> Generator[BlockingPortal]:
    """The loop in which servers and models run."""
    with portal() as running:
        yield running


@pytest.fixture
def model(loop: BlockingPortal) -> Generator[ModelServer]:
    """A scripted model."""
    with scripted_model(loop) as made:
        yield made
