"""Fixtures of evals: commands that run in this process use its model instead of loading one more."""

import pytest

from evals import catching, reader_agreement, suites, written_rows
from evals.scoring.meaning import Meaning


@pytest.fixture(autouse=True)
def _one_model(meaning: Meaning, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    for command in (reader_agreement, catching, suites, written_rows):
        monkeypatch.setattr(command, "Meaning", lambda: meaning)
