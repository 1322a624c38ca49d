"""The demo: on a bare data directory, with the real model, and again."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from server.cli import demo
from server.core.terms import terms
from tests.support.processes import esker

BUNDLED = {"ESKER_EMBEDDER": "sentence-transformers:bundled"}
# What each question is about, in words that it does not use.
ANSWERS = ("pnpm", "14 May", "Redis server drops sockets")


def test_the_demo_shows_what_it_promises_beside_the_usual_data_directory_and_a_second_run_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    first = json.loads(esker("demo", "--json", **BUNDLED, **home).stdout)
    assert first["messages"] == {"stored": 60, "known": 0}
    assert first["memories_written"] > 20
    assert first["condensed"]["into"] < first["condensed"]["memories"]
    assert (first["observer"], first["reflector"], first["embedder"]) == (
        "extractive",
        "extractive",
        "all-MiniLM-L6-v2",
    )
    assert first["tokens"]["saved"] > first["tokens"]["history"] / 2
    assert first["pack"]["text"].startswith("<global_observations>")
    for question, expected in zip(demo.QUESTIONS, ANSWERS, strict=True):
        answer = first["recalls"][question]
        assert answer["semantic"] == "ok"
        best = answer["hits"][0]
        assert expected in best["content"]
        assert not set(terms(question)) & set(terms(best["content"])), "the answer shares no word with the question"
        assert best["age"]
        assert best["sources"][0]["memory_ids"]
    assert "There is no database" in esker("pool", "list", **home).stderr

    second = json.loads(esker("demo", "--json", "--data-dir", first["data_dir"], **BUNDLED).stdout)
    assert second["messages"] == {"stored": 0, "known": 60}
    assert (second["memories_written"], second["condensed"]["memories"]) == (0, 0)
    assert second["pack"] == first["pack"]
    assert second["recalls"] == first["recalls"]

    shown = shown_of(first, monkeypatch)
    for part in (
        "<global_observations>",
        *demo.QUESTIONS,
        *ANSWERS,
        "60 messages stored",
        "Observer: extractive",
        "tokens as raw history",
    ):
        assert part in shown


def shown_of(result: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the demo shows to people of a result."""

    @contextmanager
    def server(*_: object) -> Generator[tuple[None, dict[str, Any]]]:
        yield None, result

    monkeypatch.setattr(demo, "_server", server)
    monkeypatch.setattr(demo, "_run", lambda *_: result)
    done = CliRunner().invoke(demo.app, [])
    assert done.exit_code == 0, done.exception
    return done.stdout
