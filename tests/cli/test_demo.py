"""The demo: on a bare data directory, with the real model, and again."""

import json
from pathlib import Path

from server.cli.demo import QUESTIONS
from server.core.terms import terms
from tests.support.processes import esker

BUNDLED = {"ESKER_EMBEDDER": "sentence-transformers:bundled"}
# What each question is about, in words that it does not use.
ANSWERS = ("pnpm", "14 May", "Redis server drops sockets")


def test_the_demo_shows_what_it_promises_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    first = json.loads(esker("demo", "--json", "--data-dir", str(tmp_path / "d"), **BUNDLED).stdout)
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
    for question, expected in zip(QUESTIONS, ANSWERS, strict=True):
        answer = first["recalls"][question]
        assert answer["semantic"] == "ok"
        best = answer["hits"][0]
        assert expected in best["content"]
        assert not set(terms(question)) & set(terms(best["content"])), "the answer shares no word with the question"
        assert best["age"]
        assert best["sources"][0]["memory_ids"]

    second = json.loads(esker("demo", "--json", "--data-dir", str(tmp_path / "d"), **BUNDLED).stdout)
    assert second["messages"] == {"stored": 0, "known": 60}
    assert (second["memories_written"], second["condensed"]["memories"]) == (0, 0)
    assert second["pack"] == first["pack"]
    assert second["recalls"] == first["recalls"]


def test_the_demo_leaves_the_usual_data_directory_to_the_server(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    shown = esker("demo", **BUNDLED, **home)
    assert shown.returncode == 0
    assert "Traceback" not in shown.stderr
    assert "There is no database" in esker("pool", "list", **home).stderr
    for part in ("<global_observations>", *QUESTIONS, *ANSWERS, "Observer: extractive", "tokens as raw history"):
        assert part in shown.stdout
