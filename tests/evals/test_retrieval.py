"""A run of retrieval against real servers, over HTTP: both ways of storing, four rankings, and the command itself."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from rich.progress import Progress
from typer.testing import CliRunner

from esker.server.core.errors import InvalidInput, Unavailable
from esker.server.providers.local_embedder import LocalEmbedder
from evals import __main__ as program
from evals.retrieval.asking import AskingOptions, QueryReplies
from evals.retrieval.command import ARMS
from evals.retrieval.dataset import DataSet, checked, read_simple
from evals.retrieval.figures import arm_figures
from evals.retrieval.metrics import Abstention
from evals.retrieval.storing import StoredAs, StoredDataSet, store
from evals.retrieval.traces import Traces
from evals.serving import Server
from tests.support.api import PATIENCE
from tests.support.processes import ROOT, environment
from tests.support.serving import serving_meaning

# Two conversations that share a turn id, and whose words would answer each other's questions.
DATA = """\
{"conversation": "trip"}
{"turn": "1", "speaker": "Ann", "text": "Decision: we fly to Lisbon on 3 May.", "said_at": "2026-03-01T10:00:00Z"}
{"turn": "2", "speaker": "Ben", "text": "I always want a hotel by the river, never one at the airport."}
{"turn": "3", "speaker": "Ann", "text": "   "}
{"turn": "4", "speaker": "Ann", "text": "My passport expires in June."}
{"query": "flight", "text": "When do they fly to Lisbon?", "evidence": ["1"], "kind": "date"}
{"query": "pet", "text": "Does anybody keep whippets?", "answerable": false}
{"conversation": "kennel"}
{"turn": "1", "text": "I always keep two whippets at home, never more."}
{"turn": "2", "role": "assistant", "text": "Two whippets, noted."}
{"query": "pet", "text": "Does anybody keep whippets?", "evidence": ["1"]}
{"query": "flight", "text": "When do they fly to Lisbon?", "answerable": false}
"""


NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def data(tmp_path: Path) -> DataSet:
    """Two small conversations."""
    (tmp_path / "small.jsonl").write_text(DATA, encoding="utf-8")
    return checked(read_simple(tmp_path / "small.jsonl"))


@pytest.fixture
async def url(database_url: str, minilm: LocalEmbedder) -> AsyncGenerator[str]:
    """The URL of a server that embeds."""
    async with serving_meaning(database_url, minilm) as serving:
        yield serving


def run(url: str, data: DataSet, way: StoredAs, *, reflect: bool = False) -> tuple[StoredDataSet, list[QueryReplies]]:
    """Store a data set and ask all of its questions."""
    with Server(url) as server, Progress(disable=True) as shown:
        stored = store(server, data, way, shown, shared=True, reflect=reflect)
        return stored, list(AskingOptions(server, stored.traces, ARMS).ask(data))


@pytest.mark.parametrize("way", ["rows", "sessions"])
async def test_each_ranking_finds_the_evidence_only_in_its_own_conversation(
    url: str, data: DataSet, way: StoredAs
) -> None:
    stored, asked = await asyncio.to_thread(run, url, data, way)
    assert [one.id for one in asked] == ["trip/flight", "trip/pet", "kennel/pet", "kennel/flight"]
    for arm in ARMS:
        figures = arm_figures(asked, arm)
        assert (figures.queries, figures.shares["recall@5"], figures.shares["mrr"]) == (2, 1.0, 1.0), arm
        # Facts of the other conversation are not found.
        assert figures.abstention == Abstention(precision=1.0, recall=1.0, wrongly=0.0), arm
        assert figures.tokens
        assert figures.p95_ms
    assert stored.sent_seconds <= stored.found_seconds


async def test_a_second_run_on_the_same_server_adds_nothing(url: str, data: DataSet) -> None:
    await asyncio.to_thread(run, url, data, "rows")
    before = await rows(url)
    stored, _ = await asyncio.to_thread(run, url, data, "rows")
    assert await rows(url) == before
    assert {row["id"] for row in before} == stored.traces.memories.keys()


async def rows(url: str) -> list[dict[str, Any]]:
    """Return all rows of the pool."""
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        return (await client.get("/v1/memories", params={"limit": 1_000})).json()["memories"]


async def test_blank_turns_are_counted_and_long_ones_cut(url: str, tmp_path: Path) -> None:
    lines = [{"turn": "1", "text": " "}, {"turn": "2", "text": "whippets " * 3_000}]
    lines += [{"query": "1", "text": "whippets", "evidence": ["2"]}]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    stored, [asked] = await asyncio.to_thread(run, url, read_simple(tmp_path / "odd.jsonl"), "rows")
    assert (stored.blank, stored.cut) == (1, 1)
    assert asked.replies["full"].covers == (frozenset({"2"}),)


@pytest.mark.parametrize(("way", "sitting"), [("rows", ""), ("rows", "later"), ("sessions", "later")])
async def test_a_hit_covers_every_turn_in_which_it_was_said(
    url: str, tmp_path: Path, way: StoredAs, sitting: str
) -> None:
    said = {"text": "I always keep two whippets at home, never more."}
    lines: list[dict[str, Any]] = [{"turn": "1", **said}, {"turn": "2", **said, "session": sitting}]
    lines += [{"query": "1", "text": "whippets", "evidence": ["1", "2"]}]
    (tmp_path / "twice.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    _, [asked] = await asyncio.to_thread(run, url, read_simple(tmp_path / "twice.jsonl"), way)
    assert asked.replies["full"].covers == (frozenset({"1", "2"}),)


async def test_a_reflection_covers_the_turns_behind_its_sources(url: str, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for place, word in enumerate(["harbour", "ticket", "ferry", "invoice", "cabin", "bridge"]):
        said = f"The cause is that the id of the {word} was renamed. Fixed the {word} test."
        lines += [{"turn": f"fixed-{place}", "role": "assistant", "text": said}]
        lines += [{"turn": f"asked-{place}", "text": f"Please also look at the {word} page, slow on my aunt's phone."}]
    lines += [{"query": "1", "text": "Which test of the ferry was fixed?", "evidence": ["fixed-2"]}]
    (tmp_path / "work.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    _, [asked] = await asyncio.to_thread(run, url, read_simple(tmp_path / "work.jsonl"), "sessions", reflect=True)
    found = {row["id"]: row for row in await rows(url)}
    reply = asked.replies["full"]
    reflected = [covers for hit, covers in zip(reply.hits, reply.covers, strict=True) if _is_reflection(found[hit])]
    assert any("fixed-2" in covers for covers in reflected)


def _is_reflection(row: dict[str, Any]) -> bool:
    return row["kind"] == "reflection" and not row["source_seqs"]


def test_a_hit_covers_its_turn_its_repeats_and_its_sources() -> None:
    traces = Traces({}, {"m1": frozenset({"1"}), "m2": frozenset({"2"})}, {("s", 7): "7", ("s", 8): "8"})
    source = {"session_id": "s", "seqs": [7, 99], "memory_ids": ["m2"]}
    with Server(NOWHERE) as nobody:
        assert traces.covered(nobody, {"id": "m1", "same": ["m2"], "sources": []}) == {"1", "2"}
        assert traces.covered(nobody, {"id": "x", "same": [], "sources": [source]}) == {"2", "7"}
        assert traces.covered(nobody, {"id": "x", "sources": []}) == frozenset()


def test_an_unreachable_server_is_named() -> None:
    with Server(NOWHERE) as nobody, pytest.raises(Unavailable, match=f"No Esker answers at {NOWHERE}"):
        nobody.get("/readyz")


async def test_a_refusal_of_the_server_names_the_field(url: str) -> None:
    with Server(url) as server, pytest.raises(InvalidInput, match=r"422 to POST /v1/recall.*rankng"):
        await asyncio.to_thread(server.post, "/v1/recall", {"query": "x", "rankng": "full"})


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_starts_a_server_prints_a_table_and_writes_everything(data: DataSet, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "evals", "retrieval", str(tmp_path / "small.jsonl"), "--json", str(out)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("small as rows: 2 conversations, 6 turns, 2 queries with evidence, 2 without an answer")
    assert [line.split()[0] for line in lines[2:]] == [*ARMS]
    told = json.loads(out.read_text())
    assert told["data"]["sha256"] == data.sha256()
    assert told["run"]["seed"] == 0
    assert told["run"]["server"]["embedder"] == "none"
    assert {"esker", "python", "torch"} <= told["versions"].keys()
    assert "cores" in told["hardware"]
    assert told["arms"]["keyword"]["shares"]["recall@10"] == 1
    assert told["arms"]["vector"]["shares"]["recall@10"] == 0
    assert told["kinds"].keys() == {"date"}
    [flight, *_] = told["queries"]
    assert flight["arms"]["full"]["hits"][0]["evidence"] == ["1"]
    assert flight["arms"]["full"]["figures"]["recall@10"] == 1
    again = CliRunner().invoke(program.app, ["compare", str(out), str(out)])
    assert again.exit_code == 0
    assert "full recall@10" in again.output


def test_wrong_usage_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"turn": 1}', encoding="utf-8")
    for file, code, why in (
        ("bad.jsonl", 1, "evals: bad.jsonl, line 1: id must be a text."),
        ("missing.jsonl", 2, "Usage: python -m evals retrieval"),
    ):
        monkeypatch.setattr(sys, "argv", ["evals", "retrieval", str(tmp_path / file)])
        with pytest.raises(SystemExit) as raised:
            program.run()
        said = capsys.readouterr()
        assert (raised.value.code, said.out) == (code, ""), file
        assert why in said.err
