"""`python -m evals load`: scripted agents against one server, a spike and a large import, with figures."""

import asyncio
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from esker.server.core.errors import InvalidInput
from evals.load.importing import import_file, write_pool_file
from evals.load.report import report, show
from evals.load.run import Plan, run_load
from evals.load.watching import Watch
from evals.options import JsonOption, KeyOption, Url
from evals.output import progress, remark, write_json
from evals.serving import started

Minutes = Annotated[float, typer.Option(min=0.05, help="How long the agents work before the spike.")]
Agents = Annotated[int, typer.Option(min=1, max=1_000, help="How many agents work at a time.")]
Seed = Annotated[int, typer.Option(help="Seed of what they do and say.")]
Pause = Annotated[float, typer.Option(min=0.01, help="Mean seconds between two actions of an agent.")]
Spike = Annotated[int, typer.Option(min=0, max=100, help="How many times as many agents work in the spike; 0: none.")]
SpikeSeconds = Annotated[float, typer.Option(min=1, help="How long the spike takes.")]
Import = Annotated[int, typer.Option("--import", min=0, help="Megabytes to import while the agents work; 0: none.")]


def load(
    minutes: Minutes = 10.0,
    agents: Agents = 50,
    seed: Seed = 1,
    pause: Pause = 5.0,
    spike: Spike = 10,
    spike_seconds: SpikeSeconds = 20.0,
    import_megabytes: Import = 0,
    url: Url = None,
    key: KeyOption = None,
    json_file: JsonOption = None,
) -> None:
    """Let agents ingest, recall, read packs, run hooks and reflect, and report latencies, errors and memory."""
    if url is not None and import_megabytes:
        raise InvalidInput("--import needs a server of this run.", hint="Leave out --url.")
    with ExitStack() as stack:
        watch = stack.enter_context(_server(url))
        importing = None
        if import_megabytes:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="esker-evals-")))
            path = write_pool_file(folder / "pool.jsonl", import_megabytes, seed)
            importing = partial(import_file, path, watch.url)
        plan = Plan(agents, 60 * minutes, seed, pause, spike, spike_seconds, importing=importing)
        shown = stack.enter_context(progress())
        watch.start()
        try:
            ran = asyncio.run(run_load(plan, watch.url, key, watch, shown))
        finally:
            watch.stop()
    found = report(plan, ran, watch)
    show(found)
    for problem, count in ran.outcomes.problems.most_common(10):
        remark(f"{count} × {problem}")
    if json_file:
        write_json(json_file, found)


@contextmanager
def _server(url: str | None) -> Generator[Watch]:
    """Yield a watch over the server at `url`, or over one that runs during the block."""
    if url is not None:
        yield Watch(url.rstrip("/"), time.perf_counter())
        return
    with (
        tempfile.TemporaryDirectory(prefix="esker-evals-") as directory,
        started(directory, {}) as (server, pid),
    ):
        yield Watch(server.url, time.perf_counter(), pid, Path(directory))
