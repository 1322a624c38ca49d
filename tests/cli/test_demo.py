"""The demo: on an empty data directory, with the real model, and a second time."""

import json
from pathlib import Path

import pytest

from esker.server.cli.demo import QUESTIONS
from esker.server.core.text.terms import terms
from tests.support.processes import esker

BUNDLED = {"ESKER_EMBEDDER": "sentence-transformers:bundled"}
# The answer to each question, in words that the question does not use.
ANSWERS = ("pnpm", "14 May", "Redis server drops sockets")


@pytest.mark.timeout(600)  # two demos, whose workers load the model when no other test wants the processor
def test_the_demo_uses_its_own_data_directory_and_a_second_run_changes_nothing(
    tmp_path: Path,
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
    for question, expected in zip(QUESTIONS, ANSWERS, strict=True):
        answer = first["recalls"][question]
        assert answer["semantic"] == "ok"
        best = answer["hits"][0]
        assert expected in best["content"]
        assert not set(terms(question)) & set(terms(best["content"])), "the answer shares no word with the question"
        assert best["age"]
        assert best["sources"][0]["memory_ids"]
    assert "There is no database" in esker("pool", "list", **home).stderr

    second = esker("demo", "--data-dir", first["data_dir"], **BUNDLED)
    assert second.returncode == 0, second.stderr
    shown = one_line(second.stdout)
    for part in (
        "0 messages stored, 60 already known. 0 memories written, 0 condensed into 0",
        first["pack"]["text"],
        *QUESTIONS,
        *(answer["hits"][0]["content"] for answer in first["recalls"].values()),
        "Observer: extractive",
        f"{first['tokens']['history']:,} tokens as raw history, the pack {first['tokens']['pack']:,}",
    ):
        assert one_line(part) in shown


def one_line(text: str) -> str:
    """Return a text with each of its gaps as one space."""
    return " ".join(text.split())
