"""`python -m evals retrieval`: how much of the evidence recall finds, and its cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from esker.server.core.errors import InvalidInput
from esker.server.core.records import AskedTier, Ranking
from evals.input import expected
from evals.options import JsonOption, KeyOption, Url
from evals.output import progress, remark, write_json
from evals.retrieval.asking import AskingOptions, QueryReplies
from evals.retrieval.dataset import DataSet, checked, part_of, read_simple
from evals.retrieval.floors import bm25s, floors
from evals.retrieval.formats.beam import read_beam
from evals.retrieval.formats.locomo import read_locomo
from evals.retrieval.formats.madial import read_madial_en, read_madial_zh
from evals.retrieval.formats.qmsum import read_qmsum
from evals.retrieval.formats.realtalk import read_realtalk
from evals.retrieval.metrics import percentile
from evals.retrieval.report import document, show
from evals.retrieval.storing import StoredAs, StoredDataSet, store
from evals.serving import connected

Format = Literal["simple", "beam", "locomo", "madial-en", "madial-zh", "qmsum", "realtalk"]

READERS: dict[Format, Callable[[Path], DataSet]] = {
    "simple": read_simple,
    "beam": read_beam,
    "locomo": read_locomo,
    "madial-en": read_madial_en,
    "madial-zh": read_madial_zh,
    "qmsum": read_qmsum,
    "realtalk": read_realtalk,
}
ARMS: tuple[Ranking, ...] = ("keyword", "vector", "fused", "full")


def retrieval(
    path: Annotated[Path, typer.Argument(exists=True, help="A file or a folder of data.")],
    data_format: Annotated[Format, typer.Option("--format", help="The format of the data.")] = "simple",
    way: Annotated[
        StoredAs, typer.Option("--as", help="Store every turn as a note, or as messages to be observed.")
    ] = "rows",
    arm: Annotated[Ranking | None, typer.Option(help="Only this ranking; by default all four.")] = None,
    tier: Annotated[
        AskedTier | None, typer.Option(help="The tier that recall searches; by default the server's.")
    ] = None,
    reflect: Annotated[
        bool, typer.Option("--reflect", help="Have each session reflected before the questions.")
    ] = False,
    with_floors: Annotated[bool, typer.Option("--floors", help="Add plain searches, computed without Esker.")] = False,
    conversations: Annotated[
        int | None, typer.Option(min=1, help="Only this many conversations, from the first.")
    ] = None,
    queries: Annotated[int | None, typer.Option(min=1, help="Only a sample of this many queries.")] = None,
    seed: Annotated[int, typer.Option(help="The seed of the sample.")] = 0,
    url: Url = None,
    key: KeyOption = None,
    json_file: JsonOption = None,
) -> None:
    """Store conversations in a server, ask the questions about them, and score the hits."""
    if reflect and way == "rows":
        raise InvalidInput("Notes are not reflected by session.", hint="Use --reflect with --as sessions.")
    with expected(f"data set of format {data_format}", path, "docs/evals.md describes each format."):
        read = READERS[data_format](path)
    data = checked(part_of(read, conversations=conversations, queries=queries, seed=seed))
    with progress() as shown, connected(url, key) as server:
        stored = store(server, data, way, shown, shared=url is not None, reflect=reflect)
        questions = AskingOptions(server, stored.traces, (arm,) if arm else ARMS, tier)
        asked = list(shown.track(questions.ask(data), total=data.queries, description="Asking"))
        serving = server.get("/readyz")
    if with_floors:
        asked = _with_floors(data, asked)
    run = {"format": data_format, "as": way, "tier": tier, "reflect": reflect, "seed": seed}
    run |= {"server": {role: serving[role] for role in ("observer", "reflector", "embedder")}}
    run |= {"storing": _storing(data, stored), "cold_recall_ms": _cold(asked)}
    written = document(data, asked, run)
    _report(written, stored)
    if json_file:
        write_json(json_file, written)


def _with_floors(data: DataSet, asked: Sequence[QueryReplies]) -> list[QueryReplies]:
    """Return the queries with the replies of plain searches added."""
    if bm25s() is None:
        remark("bm25s is not installed (pip install bm25s): plain dense search is the only floor.")
    with progress() as shown:
        plain = floors(data, shown)
    return [replace(one, replies=one.replies | plain[one.id]) for one in asked]


def _storing(data: DataSet, stored: StoredDataSet) -> dict[str, float]:
    """Return the time until a data set was stored and found by meaning, in seconds and turns per second."""
    return {
        "sent_seconds": stored.sent_seconds,
        "found_seconds": stored.found_seconds,
        "sent_turns_per_second": data.turns / stored.sent_seconds,
        "found_turns_per_second": data.turns / stored.found_seconds,
        "blank_turns": stored.blank,
        "cut_turns": stored.cut,
    }


def _cold(asked: Sequence[QueryReplies]) -> dict[str, float | None]:
    times = [one.cold_ms for one in asked if one.cold_ms is not None]
    return {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)}


def _report(written: Mapping[str, Any], stored: StoredDataSet) -> None:
    """Print the figures, and remarks about data that was left out or cut."""
    for text in written["data"]["remarks"]:
        remark(text)
    if stored.blank or stored.cut:
        remark(f"{stored.blank} blank turns were not stored, {stored.cut} were cut to the longest note.")
    show(written)
    run, storing = written["run"], written["run"]["storing"]
    remark(
        f"Stored in {storing['sent_seconds']:.1f} s, found by meaning after {storing['found_seconds']:.1f} s. "
        f"The first recall of a query took {run['cold_recall_ms']['p50']:.1f} ms (p50). {written['hardware']}."
    )
