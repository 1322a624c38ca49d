"""A run of retrieval against real servers, over HTTP: both ways of storing, four rankings, and the command itself."""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal
from rich.progress import Progress
from typer.testing import CliRunner

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import InvalidInput, Unavailable
from esker.server.core.records import AskedTier
from esker.server.db.database import Database
from esker.server.db.embedded import Cluster
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.usecases.authenticate import SCOPES, create_key, create_pool
from esker.server.usecases.parts import Parts
from evals import __main__ as program
from evals.retrieval.asking import AskingOptions, QueryReplies
from evals.retrieval.command import ARMS
from evals.retrieval.dataset import DataSet, checked, read_simple
from evals.retrieval.figures import arm_figures
from evals.retrieval.metrics import Abstention
from evals.retrieval.storing import StoredAs, StoredDataSet, store
from evals.retrieval.traces import Traces
from evals.serving import Server
from tests.support.databases import cloned
from tests.support.serving import serving, serving_meaning

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


_numbers = itertools.count()

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def data(tmp_path: Path) -> DataSet:
    """Two small conversations."""
    (tmp_path / "small.jsonl").write_text(DATA, encoding="utf-8")
    return checked(read_simple(tmp_path / "small.jsonl"))


@pytest.fixture(scope="module")
def running(loop: BlockingPortal, cluster: Cluster) -> Generator[tuple[str, Parts]]:
    """The URL and the parts of a server without an embedder."""
    with cloned(cluster) as name:
        settings = Settings.from_environment({"ESKER_EMBEDDER": "none"})
        parts = make_parts(settings, Database(cluster.url(database=name)), system_clock)
        with loop.wrap_async_context_manager(serving(parts)) as url:
            yield url, parts


@pytest.fixture
def server(loop: BlockingPortal, running: tuple[str, Parts]) -> Generator[Server]:
    """That server, with an empty pool of this test alone."""
    url, parts = running
    name = f"pool-{next(_numbers)}"
    loop.call(create_pool, parts, name)
    key = loop.call(partial(create_key, parts, name=name, pool=name, scopes=[*SCOPES]))
    with Server(url, key.key) as connected:
        yield connected


@pytest.fixture
async def url(database_url: str, minilm: LocalEmbedder) -> AsyncGenerator[str]:
    """The URL of a server that embeds."""
    async with serving_meaning(database_url, minilm) as serving:
        yield serving


def run(
    server: Server, data: DataSet, way: StoredAs, *, reflect: bool = False, tier: AskedTier | None = None
) -> tuple[StoredDataSet, list[QueryReplies]]:
    """Store a data set and ask all of its questions."""
    with Progress(disable=True) as shown:
        stored = store(server, data, way, shown, shared=True, reflect=reflect)
        return stored, list(AskingOptions(server, stored.traces, ARMS, tier).ask(data))


@pytest.mark.parametrize("way", ["rows", "sessions"])
async def test_each_ranking_finds_the_evidence_only_in_its_own_conversation(
    url: str, data: DataSet, way: StoredAs
) -> None:
    with Server(url) as server:
        stored, asked = await asyncio.to_thread(run, server, data, way)
    assert [one.id for one in asked] == ["trip/flight", "trip/pet", "kennel/pet", "kennel/flight"]
    for arm in ARMS:
        figures = arm_figures(asked, arm)
        assert (figures.queries, figures.shares["recall@5"], figures.shares["mrr"]) == (2, 1.0, 1.0), arm
        # Facts of the other conversation are not found.
        assert figures.abstention == Abstention(precision=1.0, recall=1.0, wrongly=0.0), arm
        assert figures.tokens
        assert figures.p95_ms
    assert stored.sent_seconds <= stored.found_seconds


def test_a_second_run_on_the_same_server_adds_nothing(server: Server, data: DataSet) -> None:
    run(server, data, "rows")
    before = rows(server)
    stored, _ = run(server, data, "rows")
    assert rows(server) == before
    assert {row["id"] for row in before} == stored.traces.memories.keys()


def rows(server: Server) -> list[dict[str, Any]]:
    """Return all rows of the pool."""
    return server.get("/v1/memories", limit=1_000)["memories"]


def test_blank_turns_are_counted_and_long_ones_cut(server: Server, tmp_path: Path) -> None:
    lines = [{"turn": "1", "text": " "}, {"turn": "2", "text": "whippets " * 3_000}]
    lines += [{"query": "1", "text": "whippets", "evidence": ["2"]}]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    stored, [asked] = run(server, read_simple(tmp_path / "odd.jsonl"), "rows")
    assert (stored.blank, stored.cut) == (1, 1)
    assert asked.replies["full"].covers == (frozenset({"2"}),)


@pytest.mark.parametrize(("way", "sitting"), [("rows", ""), ("rows", "later"), ("sessions", "later")])
def test_a_hit_covers_every_turn_in_which_it_was_said(
    server: Server, tmp_path: Path, way: StoredAs, sitting: str
) -> None:
    said = {"text": "I always keep two whippets at home, never more."}
    lines: list[dict[str, Any]] = [{"turn": "1", **said}, {"turn": "2", **said, "session": sitting}]
    lines += [{"query": "1", "text": "whippets", "evidence": ["1", "2"]}]
    (tmp_path / "twice.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    _, [asked] = run(server, read_simple(tmp_path / "twice.jsonl"), way)
    assert asked.replies["full"].covers == (frozenset({"1", "2"}),)


async def test_a_reflection_covers_the_turns_behind_its_sources(url: str, tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for place, word in enumerate(["harbour", "ticket", "ferry", "invoice", "cabin", "bridge"]):
        said = f"The cause is that the id of the {word} was renamed. Fixed the {word} test."
        lines += [{"turn": f"fixed-{place}", "role": "assistant", "text": said}]
        lines += [{"turn": f"asked-{place}", "text": f"Please also look at the {word} page, slow on my aunt's phone."}]
    # The second value overtakes the first, so that the reflection has something to leave out.
    for place, limit in enumerate((30, 40)):
        said = f"The limit of the queue in the worker is {limit} jobs."
        lines += [{"turn": f"limit-{place}", "role": "assistant", "text": said}]
        lines += [{"turn": f"looked-{place}", "text": "Please look again."}]
    lines += [{"query": "1", "text": "Which test of the ferry was fixed?", "evidence": ["fixed-2"]}]
    (tmp_path / "work.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with Server(url) as server:
        work = read_simple(tmp_path / "work.jsonl")
        _, [asked] = await asyncio.to_thread(run, server, work, "sessions", reflect=True, tier="memories")
        found = {row["id"]: row for row in await asyncio.to_thread(rows, server)}
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


def test_a_refusal_of_the_server_names_the_field(server: Server) -> None:
    with pytest.raises(InvalidInput, match=r"422 to POST /v1/recall.*rankng"):
        server.post("/v1/recall", {"query": "x", "rankng": "full"})


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_prints_a_table_and_writes_everything(
    server: Server, data: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.json"
    monkeypatch.setattr("evals.retrieval.command.connected", lambda *_: nullcontext(server))  # pyright: ignore
    done = CliRunner().invoke(program.app, ["retrieval", str(tmp_path / "small.jsonl"), "--json", str(out)])
    assert done.exit_code == 0, done.output
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
